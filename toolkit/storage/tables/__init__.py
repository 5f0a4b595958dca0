"""Define the tables: the service's in ``audit_service``, the toolkit's in ``audit``.

Nothing here creates anything. ``audit`` is built by the migrations. ``audit_service`` holds views where a mapping
describes the service's tables; without one it is another name for ``public`` (``toolkit.storage.database``).
"""

from typing import Final

from toolkit.storage.tables.custody import custody_epochs, custody_events, custody_seals
from toolkit.storage.tables.jobs import job_notices, job_runs, job_schedules, job_steps, load_batches, load_keys
from toolkit.storage.tables.judged import (
    audit_runs,
    finding_observations,
    judged_sales,
    judgement,
    waiver_revocations,
    waivers,
)
from toolkit.storage.tables.metadata import AUDIT, OWN_TABLES, SERVICE, service, toolkit
from toolkit.storage.tables.observed import (
    OBSERVED_RELATIONS,
    adopted_buckets,
    adopted_services,
    bucket_syncs,
    content_checks,
    evidence_observations,
    moved_partitions,
    object_events,
    object_observations,
    observation_clock,
    sale_observations,
    service_readings,
    verification_failures,
)
from toolkit.storage.tables.people import (
    evidence_openings,
    evidence_requests,
    partner_subjects,
    token_revocations,
    withdrawals,
)
from toolkit.storage.tables.sales_service import addresses, clients, evidences, sales

__all__ = [
    "APPEND_ONLY",
    "AUDIT",
    "CLOSED_ONCE",
    "OBSERVED_RELATIONS",
    "OWN_TABLES",
    "SERVICE",
    "addresses",
    "adopted_buckets",
    "adopted_services",
    "audit_runs",
    "bucket_syncs",
    "clients",
    "content_checks",
    "custody_epochs",
    "custody_events",
    "custody_seals",
    "evidence_observations",
    "evidence_openings",
    "evidence_requests",
    "evidences",
    "finding_observations",
    "job_notices",
    "job_runs",
    "job_schedules",
    "job_steps",
    "judged_sales",
    "judgement",
    "load_batches",
    "load_keys",
    "moved_partitions",
    "object_events",
    "object_observations",
    "observation_clock",
    "partner_subjects",
    "sale_observations",
    "sales",
    "service",
    "service_readings",
    "token_revocations",
    "toolkit",
    "verification_failures",
    "waiver_revocations",
    "waivers",
    "withdrawals",
]

APPEND_ONLY: Final = (
    load_batches,
    content_checks,
    verification_failures,
    withdrawals,
    evidence_requests,
    token_revocations,
    bucket_syncs,
    moved_partitions,
    object_events,
    adopted_buckets,
    adopted_services,
    audit_runs,
    evidence_openings,
    waivers,
    waiver_revocations,
    custody_events,
    custody_seals,
    custody_epochs,
)
"""Rows of these tables are never changed or deleted; the database itself refuses it."""

CLOSED_ONCE: Final = (sale_observations, evidence_observations, object_observations, finding_observations)
"""Rows of these tables are never deleted, and change once: when ``gone_at`` is set.

So it is with ``partner_subjects``, when ``revoked_at`` and ``revoked_by`` are set.
"""
