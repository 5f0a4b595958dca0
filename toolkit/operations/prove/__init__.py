"""Prove: the custody log, a chain of hashes over everything that happened to evidence."""
