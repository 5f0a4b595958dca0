"""Synthetic sample data, made from a seed: realistic, and about nobody real."""
