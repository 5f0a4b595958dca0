"""Read the evidence records of one sale, each with its file and its withdrawal."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection, Row

from toolkit.domain.codes import KindFault
from toolkit.domain.contents import Coverage
from toolkit.domain.evidence import KIND_OF, EvidenceType, FileKind
from toolkit.domain.masking import Unmasking
from toolkit.domain.rules import EvidenceState, evidence_state, ran_out
from toolkit.domain.sales import is_possible_sale_id
from toolkit.errors import SaleNotFound
from toolkit.operations import Clock
from toolkit.operations.judge.audit.details import latest_look_and_first_fault
from toolkit.operations.judge.withdrawal import Withdrawal
from toolkit.operations.prove.custody_log.events import record_unmasking
from toolkit.storage.database import Database
from toolkit.storage.tables import (
    evidence_requests,
    evidences,
    object_observations,
    sales,
    verification_failures,
    withdrawals,
)

WITHDRAWN: Final = "WITHDRAWN"
TYPE_UNKNOWN: Final = "TYPE_UNKNOWN"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """The object under the key of a record, by what was last seen of the bucket."""

    observation: int
    size: int
    seen_at: datetime
    coverage: Coverage
    media_type: str | None
    sha256: str | None
    seconds: float | None
    pages: int | None
    fault: str | None
    """A fault of ``toolkit.domain.codes``, ``None`` where none was found."""


@dataclass(frozen=True, slots=True)
class EvidenceRecord:
    """One record: its state by what was last seen of the bucket, and its withdrawal, if it was withdrawn."""

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
    expires_at: datetime | None
    file_name: str | None
    """May hold the name of a person: there only where it was asked for with a reason."""
    object_key: str
    file: StoredFile | None
    withdrawal: Withdrawal | None

    @property
    def told_state(self) -> str:
        """The state in words: a withdrawn record is withdrawn, whatever its file is."""
        return WITHDRAWN if self.withdrawal else str(self.state or TYPE_UNKNOWN)


def records_of(
    database: Database, sale_id: str, clock: Clock, *, unmasking: Unmasking | None = None
) -> list[EvidenceRecord]:
    """Return all records of the sale, oldest first; the bucket itself is not asked.

    With ``unmasking``, which the custody log is told of, they have the names of their files.

    Raises:
        SaleNotFound: no sale has this id.
    """
    now = clock()
    with database.transaction() as connection:
        return records_seen(connection, sale_row(connection, sale_id).id, now, unmasking)


def sale_row(connection: Connection, sale_id: str) -> Row[Any]:
    """Return the row of a sale.

    Raises:
        SaleNotFound: no sale has this id.
    """
    sale = None
    if is_possible_sale_id(sale_id):
        sale = connection.execute(sa.select(sales).where(sales.c.id == sale_id)).one_or_none()
    if sale is None:
        raise SaleNotFound(sale_id)
    return sale


def records_seen(
    connection: Connection, sale_id: str, now: datetime, unmasking: Unmasking | None
) -> list[EvidenceRecord]:
    """Return the same, as this connection sees the database, of a sale that is there."""
    if unmasking is not None:
        record_unmasking(connection, unmasking, "file names of a sale", now)
    seen = object_observations
    latest, first = latest_look_and_first_fault(seen)
    query = (
        sa.select(
            evidences,
            evidence_requests.c.account,
            evidence_requests.c.partner,
            withdrawals.c.reason,
            withdrawals.c.withdrawn_by,
            withdrawals.c.approved_by,
            withdrawals.c.withdrawn_at,
            seen.c.id.label("observation"),
            seen.c.size,
            seen.c.seen_at,
            latest.c.kind,
            latest.c.media_type,
            latest.c.sha256,
            latest.c.seconds,
            latest.c.pages,
            first.c.problem.label("fault"),
            verification_failures.c.failed_at,
            seen_before(evidences.c.object_key).label("seen_before"),
        )
        .outerjoin(withdrawals, withdrawals.c.evidence_id == evidences.c.id)
        .outerjoin(evidence_requests, evidence_requests.c.evidence_id == evidences.c.id)
        .outerjoin(seen, sa.and_(seen.c.key == evidences.c.object_key, seen.c.gone_at.is_(None)))
        .outerjoin(latest, sa.true())
        .outerjoin(first, sa.true())
        .outerjoin(verification_failures, verification_failures.c.observation_id == seen.c.id)
        .where(evidences.c.sale_id == sale_id)
        .order_by(evidences.c.requested_at, evidences.c.id)
    )
    return [_record(row, now, named=unmasking is not None) for row in connection.execute(query)]


def _record(row: Any, now: datetime, *, named: bool) -> EvidenceRecord:
    known = row.evidence_type in set(EvidenceType)
    state = None
    if known:
        state = evidence_state(
            EvidenceType(row.evidence_type),
            size=row.size,
            kind=FileKind(row.kind) if row.kind else None,
            damaged=row.fault is not None,
            expired=ran_out(row.expires_at, now),
            vanished=row.seen_before,
        )
    taken = Withdrawal(row.id, row.sale_id, row.reason, row.withdrawn_by, row.approved_by, row.withdrawn_at)
    return EvidenceRecord(
        row.id,
        row.evidence_type,
        state,
        row.requested_by,
        row.account,
        row.partner,
        row.requested_at,
        row.expires_at,
        row.file_name if named else None,
        row.object_key,
        None if row.observation is None else _file(row, known),
        None if row.withdrawn_at is None else taken,
    )


def _file(row: Any, known: bool) -> StoredFile:
    fault = row.fault
    if fault is None and known and row.kind is not None and KIND_OF[EvidenceType(row.evidence_type)] != row.kind:
        fault = str(KindFault.WRONG_KIND)
    coverage = Coverage.FIRST_BYTES if row.kind else Coverage.NEVER
    if row.sha256 is not None:
        coverage = Coverage.VERIFIED
    elif row.failed_at is not None:
        coverage = Coverage.UNREADABLE
    return StoredFile(
        row.observation,
        row.size,
        row.seen_at,
        coverage,
        row.media_type,
        row.sha256,
        row.seconds,
        row.pages,
        fault,
    )


def seen_before(key: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """Tell whether an object was ever seen under the key."""
    earlier = object_observations.alias("earlier")
    return sa.exists().where(sa.collate(earlier.c.key, "C") == key)
