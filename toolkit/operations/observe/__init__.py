"""Observe: keep what the service and the bucket hold, each row from ``seen_at`` until ``gone_at``."""
