"""Verify the contents of the files, and their integrity: origin, reuse and replacement."""
