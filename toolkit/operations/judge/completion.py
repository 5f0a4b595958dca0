"""Complete a sale, only when its evidence in the bucket at that moment allows it (contract, "States")."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Row

from toolkit.domain.evidence import EvidenceType, FileKind
from toolkit.domain.findings import Status, Verdict
from toolkit.domain.rules import Evidence, Sale, evaluate, evidence_state
from toolkit.domain.signatures import SIGNATURE_BYTES, kind_of_bytes
from toolkit.errors import SaleNotFound
from toolkit.operations import Clock
from toolkit.operations.observe.sale_history import observe
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database
from toolkit.storage.tables import content_checks, evidences, object_observations, sales, withdrawals


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer to a wish to complete a sale.

    ``completed_at`` is ``None`` where the verdict did not allow it; ``already`` tells that it was completed
    before, and then its evidence was not looked at again.
    """

    sale_id: str
    completed_at: datetime | None
    already: bool
    verdict: Verdict | None


def complete_sale(database: Database, bucket: Bucket, sale_id: str, clock: Clock) -> Completion:
    """Mark a sale as completed if the files that lie in the bucket right now satisfy the rules.

    The sale is locked meanwhile: of two callers at once the second one waits and finds it completed, and a
    withdrawal comes wholly before or wholly after.

    Raises:
        SaleNotFound: no sale has this id.
        BucketError: the bucket could not be asked; nothing was changed.
    """
    with database.transaction() as connection:
        sale = connection.execute(sa.select(sales).where(sales.c.id == sale_id).with_for_update()).one_or_none()
        if sale is None:
            raise SaleNotFound(f"There is no sale with the id {sale_id!r}.")
        if sale.completed_at is not None:
            return Completion(sale_id, sale.completed_at, True, None)
        now = clock()
        verdict = evaluate(
            Sale(sale.utility_group, sale.is_client_financial_responsible),
            [_examined(bucket, record, now) for record in _records(connection, sale_id)],
        )
        if verdict.status is not Status.COMPLIANT:
            return Completion(sale_id, None, False, verdict)
        completed_at = clock()
        connection.execute(sa.update(sales).where(sales.c.id == sale_id).values(completed_at=completed_at))
        observe(connection, clock, sale_id)
        return Completion(sale_id, completed_at, False, verdict)


def _records(connection: Connection, sale_id: str) -> list[Row[Any]]:
    """The evidence records of the sale that are not withdrawn, with what a verification found wrong, if any."""
    faults = (
        sa.select(
            object_observations.c.key,
            object_observations.c.etag,
            object_observations.c.size,
            sa.func.bool_or(content_checks.c.problem.is_not(None)).label("damaged"),
        )
        .join(content_checks, content_checks.c.observation_id == object_observations.c.id)
        .where(object_observations.c.gone_at.is_(None))
        .group_by(object_observations.c.id)
        .subquery("faults")
    )
    withdrawn = sa.select(withdrawals.c.evidence_id).where(withdrawals.c.evidence_id == evidences.c.id).exists()
    query = (
        sa.select(
            evidences.c.evidence_type,
            evidences.c.object_key,
            evidences.c.expires_at,
            faults.c.etag,
            faults.c.size,
            faults.c.damaged,
        )
        .outerjoin(faults, faults.c.key == evidences.c.object_key)
        .where(evidences.c.sale_id == sale_id, evidences.c.evidence_type.in_(list(EvidenceType)), ~withdrawn)
        .order_by(evidences.c.id)
    )
    return list(connection.execute(query))


def _examined(bucket: Bucket, record: Row[Any], now: datetime) -> Evidence:
    """The record by what lies in the bucket right now; a fault counts for the version that it was found in."""
    evidence_type = EvidenceType(record.evidence_type)
    found = bucket.head(record.object_key)
    kind: FileKind | None = None
    if found is not None and found.size:
        kind = kind_of_bytes(bucket.read(record.object_key, 0, SIGNATURE_BYTES))
    same_version = found is not None and (found.etag, found.size) == (record.etag, record.size)
    state = evidence_state(
        evidence_type,
        size=found.size if found is not None else None,
        kind=kind,
        damaged=same_version and bool(record.damaged),
        expired=record.expires_at <= now,
    )
    return Evidence(evidence_type, state)
