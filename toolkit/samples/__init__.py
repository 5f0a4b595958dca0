"""Synthetic sample data: realistic, and about nobody real."""
