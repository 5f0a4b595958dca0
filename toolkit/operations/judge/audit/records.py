"""Read evidence records, each with its file and its withdrawal: of one sale now, or of many as of a moment."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.domain.codes import KindFault
from toolkit.domain.contents import Coverage
from toolkit.domain.evidence import KIND_OF, EvidenceType, FileKind
from toolkit.domain.rules import EvidenceState, evidence_state, ran_out
from toolkit.operations.judge.audit.details import held, latest_look_and_first_fault, until
from toolkit.operations.judge.withdrawal import Withdrawal
from toolkit.storage.reader import Reader
from toolkit.storage.tables import (
    evidence_observations,
    evidence_requests,
    evidences,
    object_observations,
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
    sale_id: str
    evidence_type: str
    state: EvidenceState | None
    """``None`` for a type that the contract does not know: it never counts."""
    requested_by: str | None
    """``None`` where the service does not say, and where observations were read."""
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


def records_now(connection: Connection, sale_id: str, now: datetime, *, named: bool) -> list[EvidenceRecord]:
    """Return the records of a sale as the service has them, oldest first; with the names of files if ``named``."""
    by_indexes(connection)
    of = evidences.c
    record = (
        sa.select(
            *(of.id, of.sale_id, of.evidence_type, of.requested_by, of.requested_at, of.expires_at),
            *(of.file_name if named else sa.null().label("file_name"), of.object_key),
            *(evidence_requests.c.account, evidence_requests.c.partner),
        )
        .outerjoin(evidence_requests, evidence_requests.c.evidence_id == of.id)
        .where(of.sale_id == sale_id)
    )
    return list(_read(connection, record, now, None))


def by_indexes(connection: Connection) -> None:
    """Have this transaction read by indexes: PostgreSQL expects more rows of a sale, and would read them all."""
    names = ("enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit")
    connection.execute(sa.select(*(sa.func.set_config(name, "off", True) for name in names)))


def records_at(connection: Reader, sale_ids: Sequence[str], moment: datetime) -> Iterator[EvidenceRecord]:
    """Yield the records of these sales as they had been observed by then, oldest first."""
    of = evidence_observations.c
    unknown = ("requested_by", "file_name", "account", "partner")
    record = sa.select(
        *(of.evidence_id.label("id"), of.sale_id, of.evidence_type, of.requested_at, of.expires_at, of.object_key),
        *(sa.null().label(name) for name in unknown),
    ).where(of.sale_id == sa.any_(sa.cast(list(sale_ids), sa.ARRAY(sa.Text))), held(evidence_observations, moment))
    return _read(connection, record, moment, moment)


def _read(
    connection: Reader, chosen: sa.Select[Any], now: datetime, moment: datetime | None
) -> Iterator[EvidenceRecord]:
    """Yield the chosen records with what had been seen of their files by the moment, or by now."""
    record, seen, failed = chosen.subquery("record"), object_observations, verification_failures
    latest, first = latest_look_and_first_fault(seen, moment)
    query = (
        sa.select(
            record,
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
            failed.c.failed_at,
            seen_before(record.c.object_key, moment).label("seen_before"),
        )
        .outerjoin(
            withdrawals,
            sa.and_(withdrawals.c.evidence_id == record.c.id, until(withdrawals.c.withdrawn_at, moment)),
        )
        .outerjoin(seen, sa.and_(sa.collate(seen.c.key, "C") == record.c.object_key, held(seen, moment)))
        .outerjoin(latest, sa.true())
        .outerjoin(first, sa.true())
        .outerjoin(failed, sa.and_(failed.c.observation_id == seen.c.id, until(failed.c.failed_at, moment)))
        .order_by(record.c.requested_at, record.c.id)
    )
    return (_record(row, now) for row in connection.execute(query))


def seen_before(key: sa.ColumnElement[str], moment: datetime | None = None) -> sa.ColumnElement[bool]:
    """Tell whether an object was ever seen under the key, by the moment or by now."""
    earlier = object_observations.alias("earlier")
    return sa.exists().where(sa.collate(earlier.c.key, "C") == key, until(earlier.c.seen_at, moment))


def _record(row: Any, now: datetime) -> EvidenceRecord:
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
        row.sale_id,
        row.evidence_type,
        state,
        row.requested_by,
        row.account,
        row.partner,
        row.requested_at,
        row.expires_at,
        row.file_name,
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
