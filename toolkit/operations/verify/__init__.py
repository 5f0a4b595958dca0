"""Verify: the bytes of the files, and how they came to lie where they lie."""
