"""The evidence records of one sale, as whoever has to mend a conflict needs to see them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from toolkit.domain.evidence import EvidenceType, FileKind
from toolkit.domain.rules import EvidenceState, evidence_state, ran_out
from toolkit.domain.sales import is_possible_sale_id
from toolkit.errors import SaleNotFound
from toolkit.operations import Clock
from toolkit.storage.database import Database
from toolkit.storage.tables import (
    content_checks,
    evidence_requests,
    evidences,
    object_observations,
    sales,
    withdrawals,
)


@dataclass(frozen=True, slots=True)
class EvidenceRecord:
    """One record: how far it got by what was last seen of the bucket, and when it was withdrawn, if it was."""

    id: UUID
    evidence_type: str
    state: EvidenceState | None
    """``None`` for a type that the contract does not know: it never counts."""
    requested_by: str | None
    """``None`` where the service does not say."""
    account: str | None
    """The signed-in identity behind ``requested_by``; ``None`` where it was not noted."""
    partner: str | None
    """The partner that it was requested for; ``None`` for an operator, and where it was not noted."""
    requested_at: datetime
    withdrawn_at: datetime | None


def records_of(database: Database, sale_id: str, clock: Clock) -> list[EvidenceRecord]:
    """All records of the sale, oldest first; the bucket itself is not asked.

    Raises:
        SaleNotFound: no sale has this id.
    """
    seen = object_observations
    kinds = sa.func.array_agg(
        sa.dialects.postgresql.aggregate_order_by(content_checks.c.kind, content_checks.c.id)
    )
    looked = (
        sa.select(
            content_checks.c.observation_id,
            kinds.label("kinds"),
            sa.func.bool_or(content_checks.c.problem.is_not(None)).label("damaged"),
        )
        .group_by(content_checks.c.observation_id)
        .subquery("looked")
    )
    query = (
        sa.select(
            evidences,
            evidence_requests.c.account,
            evidence_requests.c.partner,
            withdrawals.c.withdrawn_at,
            seen.c.size,
            looked.c.kinds,
            looked.c.damaged,
            seen_before(evidences.c.object_key).label("seen_before"),
        )
        .outerjoin(withdrawals, withdrawals.c.evidence_id == evidences.c.id)
        .outerjoin(evidence_requests, evidence_requests.c.evidence_id == evidences.c.id)
        .outerjoin(seen, sa.and_(seen.c.key == evidences.c.object_key, seen.c.gone_at.is_(None)))
        .outerjoin(looked, looked.c.observation_id == seen.c.id)
        .where(evidences.c.sale_id == sale_id)
        .order_by(evidences.c.requested_at, evidences.c.id)
    )
    now = clock()
    if not is_possible_sale_id(sale_id):
        raise SaleNotFound(sale_id)
    with database.transaction() as connection:
        if connection.scalar(sa.select(sales.c.id).where(sales.c.id == sale_id)) is None:
            raise SaleNotFound(sale_id)
        rows = connection.execute(query).all()
    return [
        EvidenceRecord(
            row.id,
            row.evidence_type,
            evidence_state(
                EvidenceType(row.evidence_type),
                size=row.size,
                kind=FileKind(row.kinds[-1]) if row.kinds else None,
                damaged=bool(row.damaged),
                expired=ran_out(row.expires_at, now),
                vanished=row.seen_before,
            )
            if row.evidence_type in set(EvidenceType)
            else None,
            row.requested_by,
            row.account,
            row.partner,
            row.requested_at,
            row.withdrawn_at,
        )
        for row in rows
    ]


def seen_before(key: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """Tell whether an object was ever seen under the key."""
    earlier = object_observations.alias("earlier")
    return sa.exists().where(sa.collate(earlier.c.key, "C") == key)
