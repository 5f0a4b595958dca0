"""The audit: which sales lack the demanded evidence, and why, as of now or of any observed moment.

``extract`` reads what was observed, ``judge`` holds the rules as expressions, ``engines`` run them, ``findings``
compares with the nights before, ``run`` writes the audit folder, and ``folder`` opens one.
"""
