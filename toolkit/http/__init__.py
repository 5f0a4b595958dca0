"""The contract's HTTP interface: two endpoints for partners, and probes and documentation for operators.

A request passes, from the outside in: the server's own limits (``server``), its id and log line, its host, its
bearer token and rate limits (``access``), the route (``app``), the body's limits (``bodies``), and one operation
in a thread. Every answer is one of the table in ``answers``.
"""
