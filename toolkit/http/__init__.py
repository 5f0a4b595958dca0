"""The contract's HTTP interface: two endpoints for partners, and probes and documentation for operators.

A request passes, from the outside in: the server's own limits (``server``), its id and log line, its host, its
bearer token and rate limits (``access``), the route and the body's limits (``app``), and one operation in a
thread. Every answer is one of the table in ``answers``.
"""
