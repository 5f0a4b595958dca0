"""The rights of persons: what is known of one, holds and requests, erasure that breaks no proof."""
