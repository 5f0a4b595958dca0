"""Complete a sale, only when its evidence in the bucket at that moment allows it (contract, "States")."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Row

from toolkit.domain.evidence import EvidenceType, FileKind
from toolkit.domain.findings import Status, Verdict
from toolkit.domain.rules import Evidence, Sale, evaluate, evidence_state, ran_out
from toolkit.domain.sales import is_possible_sale_id
from toolkit.domain.signatures import SIGNATURE_BYTES, kind_of_bytes
from toolkit.errors import SaleNotFound
from toolkit.operations import Clock
from toolkit.operations.observe.service_history import observe_sales
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database
from toolkit.storage.service_map.writing import require_writable
from toolkit.storage.tables import content_checks, evidences, object_observations, sales, withdrawals


@dataclass(frozen=True, slots=True)
class Completion:
    """How an attempt to complete a sale ended.

    ``completed_at`` is ``None`` where the verdict did not allow it; ``already`` tells that it was completed
    before, and then its evidence was not looked at again.
    """

    sale_id: str
    completed_at: datetime | None
    already: bool
    verdict: Verdict | None


@dataclass(frozen=True, slots=True)
class _Known:
    """The sale and its evidence records that are not withdrawn, as the database holds them."""

    sale: Row[Any]
    records: list[Row[Any]]


def complete_sale(database: Database, bucket: Bucket, sale_id: str, clock: Clock) -> Completion:
    """Mark a sale as completed if the files that lie in the bucket right now satisfy the rules.

    The bucket is read without any lock. Then the sale is locked, and marked only if neither it nor its records
    changed since they were read; otherwise it is judged again. So of two callers at once one completes it and
    the other finds it completed, and a withdrawal comes wholly before or wholly after.

    Raises:
        SaleNotFound: no sale has this id.
        BucketError: the bucket could not be asked; nothing was changed.
    """
    require_writable(database, "sales.complete")
    if not is_possible_sale_id(sale_id):
        raise SaleNotFound(sale_id)
    while True:
        with database.transaction() as connection:
            known = _read(connection, sale_id)
        if known.sale.completed_at is not None:
            return Completion(sale_id, known.sale.completed_at, True, None)
        verdict = _judged(bucket, known, clock())
        if verdict.status is not Status.COMPLIANT:
            return Completion(sale_id, None, False, verdict)
        with database.transaction() as connection:
            connection.execute(sa.select(sales.c.id).where(sales.c.id == sale_id).with_for_update())
            if _read(connection, sale_id) == known:
                completed_at = clock()
                connection.execute(sa.update(sales).where(sales.c.id == sale_id).values(completed_at=completed_at))
                observe_sales(connection, clock, sale_id)
                return Completion(sale_id, completed_at, False, verdict)


def _read(connection: Connection, sale_id: str) -> _Known:
    sale = connection.execute(sa.select(sales).where(sales.c.id == sale_id)).one_or_none()
    if sale is None:
        raise SaleNotFound(sale_id)
    return _Known(sale, _records(connection, sale_id))


def _judged(bucket: Bucket, known: _Known, now: datetime) -> Verdict:
    sale = Sale(known.sale.utility_group, known.sale.is_client_financial_responsible)
    return evaluate(sale, [_examined(bucket, record, now) for record in known.records])


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
        expired=ran_out(record.expires_at, now),
    )
    return Evidence(evidence_type, state)
