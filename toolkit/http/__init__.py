"""The contract's HTTP interface: two endpoints for partners, three by which they read, probes and pages.

A request passes, from the outside in: the server's own limits (``server``), its id and log line, its host, its
bearer token and rate limits (``access``), the route and the body's limits (``app``), and one operation in a
thread; ``reading`` has what partners read. Every answer is one of the table in ``answers``.
"""
