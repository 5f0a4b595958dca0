"""Decide on access: the partners that subjects act for, and tokens that are refused before they expire."""
