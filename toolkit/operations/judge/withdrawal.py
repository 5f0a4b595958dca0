"""Withdraw an evidence record, so that it counts no longer; its object stays in the bucket."""

from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.domain.fields import MISLEADING, NOT_MISLEADING, TRIMMED
from toolkit.domain.people import person, same_person
from toolkit.errors import EvidenceNotFound, WithdrawalRefused
from toolkit.operations import Clock
from toolkit.storage.database import Database
from toolkit.storage.observation_clock import stamp
from toolkit.storage.service_map.writing import can_write
from toolkit.storage.tables import evidences, sales, withdrawals


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """An evidence record that counts no longer, and the two people who decided it."""

    evidence_id: UUID
    sale_id: str
    reason: str
    withdrawn_by: str
    approved_by: str
    withdrawn_at: datetime


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
        # No completion has to wait where no sale can be completed here.
        sale_id = _sale_of(connection, evidence_id, locked=can_write(database, "sales.complete"))
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
        raise WithdrawalRefused(f"The reason and the names of a withdrawal {NOT_MISLEADING}.")
    if same_person(withdrawn_by, approved_by):
        raise WithdrawalRefused(
            "A withdrawal is approved by somebody else than who asked for it, and these two names look alike."
        )


def _sale_of(connection: Connection, evidence_id: UUID, *, locked: bool) -> str:
    query = (
        sa.select(sales.c.id)
        .join(evidences, evidences.c.sale_id == sales.c.id)
        .where(evidences.c.id == evidence_id)
    )
    if locked:
        query = query.with_for_update(of=sales)
    sale_id: str | None = connection.execute(query).scalar_one_or_none()
    if sale_id is None:
        raise EvidenceNotFound(f"There is no evidence record with the id {evidence_id}.")
    return sale_id


def _check_first_time(connection: Connection, evidence_id: UUID) -> None:
    query = sa.select(withdrawals.c.withdrawn_at).where(withdrawals.c.evidence_id == evidence_id)
    before: datetime | None = connection.execute(query).scalar_one_or_none()
    if before is not None:
        raise WithdrawalRefused(f"The record was withdrawn before, at {before.isoformat(timespec='seconds')}.")
