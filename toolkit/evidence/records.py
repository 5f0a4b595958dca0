"""The evidence records of a sale: read them with their files, open a file, withdraw a record."""

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection, Row

from toolkit.bucket.client import Bucket
from toolkit.contract.deadlines import Clock
from toolkit.contract.evidence import Withdrawal
from toolkit.contract.fields import MISLEADING, NOT_MISLEADING, TRIMMED
from toolkit.contract.people import Unmasking, person, same_person
from toolkit.contract.sales import is_possible_sale_id
from toolkit.database.belonging import check_bucket
from toolkit.database.connection import Database
from toolkit.database.identifiers import new_id
from toolkit.database.locks import Lock, take_for
from toolkit.database.observation_clock import stamp
from toolkit.database.service import evidences, sales
from toolkit.database.tables import evidence_openings, withdrawals
from toolkit.errors import EvidenceNotFound, InvalidInput, SaleNotFound, WithdrawalRefused
from toolkit.evidence.stored_records import EvidenceRecord, records_now
from toolkit.log.events import record_unmasking


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
    return records_now(connection, sale_id, now, named=unmasking is not None)


LONGEST_SECONDS: Final = 900
"""The longest life of a link."""


@dataclass(frozen=True, slots=True)
class Link:
    """An address under which whoever has it reads the file until ``expires_at``."""

    evidence_id: UUID
    sale_id: str
    url: str
    expires_at: datetime


def open_evidence(
    database: Database,
    bucket: Bucket,
    evidence_id: UUID,
    *,
    reason: str,
    opened_by: str,
    account: str | None = None,
    seconds: int,
    clock: Clock,
) -> Link:
    """Make a link to the file of one record; the custody log is told before the link is handed out.

    ``account`` is who is signed in, and kept beside the name.

    Raises:
        InvalidInput: the reason or the name is missing, or the life is too long.
        EvidenceNotFound: no evidence record has this id, or no file lies under its key.
        WrongBucket: the database belongs to another bucket.
        BucketError: the bucket could not be asked.
    """
    reason, opened_by = reason.strip(TRIMMED), opened_by.strip(TRIMMED)
    if not reason or not person(opened_by) or MISLEADING.search(reason + opened_by):
        raise InvalidInput("To open a file, say who opens it and why; the texts {}.", NOT_MISLEADING)
    if not 1 <= seconds <= LONGEST_SECONDS:
        raise InvalidInput("A link lives for 1 to {} seconds.", LONGEST_SECONDS)
    with database.transaction() as connection:
        check_bucket(connection, bucket)
        query = sa.select(evidences.c.sale_id, evidences.c.object_key).where(evidences.c.id == evidence_id)
        record = connection.execute(query).one_or_none()
    if record is None:
        raise EvidenceNotFound("There is no evidence record with the id {}.", evidence_id)
    if bucket.head(record.object_key) is None:
        raise EvidenceNotFound("There is no file in the bucket for the record {}.", evidence_id)
    opened_at = clock()
    expires_at = opened_at + timedelta(seconds=seconds)
    opening = {
        "id": new_id(),
        "evidence_id": evidence_id,
        "reason": reason,
        "opened_by": opened_by,
        "account": account,
        "opened_at": opened_at,
        "expires_at": expires_at,
    }
    with database.transaction() as connection:
        connection.execute(sa.insert(evidence_openings), opening)
    return Link(evidence_id, record.sale_id, bucket.presign_get(record.object_key, seconds), expires_at)


def withdraw(
    database: Database,
    evidence_id: UUID,
    *,
    reason: str,
    withdrawn_by: str,
    approved_by: str,
    account: str | None = None,
    clock: Clock,
) -> Withdrawal:
    """Withdraw one evidence record, once and for all.

    ``account`` is who is signed in, and kept beside the names. The sale is locked meanwhile, so that its
    completion comes wholly before or wholly after.

    Raises:
        EvidenceNotFound: no evidence record has this id.
        WithdrawalRefused: a text is missing, the approver is the same person, or it was withdrawn before.
    """
    reason, withdrawn_by, approved_by = (text.strip(TRIMMED) for text in (reason, withdrawn_by, approved_by))
    _check_people(reason, withdrawn_by, approved_by)
    with database.transaction() as connection:
        sale_id = _sale_of(connection, evidence_id)
        take_for(connection, Lock.SALE, sale_id)
        _check_first_time(connection, evidence_id)
        taken = Withdrawal(evidence_id, sale_id, reason, withdrawn_by, approved_by, stamp(connection, clock))
        row = asdict(taken) | {"account": account}
        del row["sale_id"]
        connection.execute(sa.insert(withdrawals), row)
    return taken


def _check_people(reason: str, withdrawn_by: str, approved_by: str) -> None:
    if not reason or not person(withdrawn_by) or not person(approved_by):
        raise WithdrawalRefused("A withdrawal needs a reason, who asked for it and who approved it.")
    if MISLEADING.search(reason + withdrawn_by + approved_by):
        raise WithdrawalRefused("The reason and the names of a withdrawal {}.", NOT_MISLEADING)
    if same_person(withdrawn_by, approved_by):
        raise WithdrawalRefused(
            "A withdrawal is approved by somebody else than who asked for it, and these two names look alike."
        )


def _sale_of(connection: Connection, evidence_id: UUID) -> str:
    query = (
        sa.select(sales.c.id)
        .join(evidences, evidences.c.sale_id == sales.c.id)
        .where(evidences.c.id == evidence_id)
    )
    sale_id: str | None = connection.execute(query).scalar_one_or_none()
    if sale_id is None:
        raise EvidenceNotFound("There is no evidence record with the id {}.", evidence_id)
    return sale_id


def _check_first_time(connection: Connection, evidence_id: UUID) -> None:
    query = sa.select(withdrawals.c.withdrawn_at).where(withdrawals.c.evidence_id == evidence_id)
    before: datetime | None = connection.execute(query).scalar_one_or_none()
    if before is not None:
        raise WithdrawalRefused("The record was withdrawn before, at {}.", before.isoformat(timespec="seconds"))
