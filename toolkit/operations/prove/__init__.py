"""Prove what happened to evidence: the custody log, a chain of hashes over its events."""
