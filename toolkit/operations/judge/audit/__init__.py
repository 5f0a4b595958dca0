"""The audit: sales that lack the demanded evidence, and the reasons, as of now or of any observed moment.

``expression`` judges all sales at once, ``observed`` reads what was there at a moment, ``census`` counts,
``run`` does it on PostgreSQL, and ``result`` holds the outcome: ``totals``, ``lists`` and ``life``.
"""

from toolkit.operations.judge.audit.expression import missing_evidence
from toolkit.operations.judge.audit.result import AuditResult
from toolkit.operations.judge.audit.run import run_audit

__all__ = ["AuditResult", "missing_evidence", "run_audit"]
