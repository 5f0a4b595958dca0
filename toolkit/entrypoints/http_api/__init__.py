"""The contract's HTTP interface: two endpoints for partners, and probes and documentation for operators.

A request passes, from the outside in: the connection's own bounds (``connections``), its id and log line
(``access_log``), the reading of its host and path (``addresses``), the bearer token and the quotas
(``authentication``, ``revocations``, ``quotas``), the route (``endpoints``, ``probes``,
``pages``), the body's bounds (``bodies``), and one operation in a thread (``workers``). Every answer is one
of the table in ``answers``, which the OpenAPI document is made from as well.
"""
