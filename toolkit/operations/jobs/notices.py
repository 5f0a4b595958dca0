"""Keep notices to people in the database until they are delivered.

A notice is written in the transaction of what it tells, once for each channel; delivering it comes after that, and
is tried again by every later start. It holds numbers and codes only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection, Row

from toolkit.operations import Clock
from toolkit.storage.database import Database
from toolkit.storage.identifiers import new_id
from toolkit.storage.tables import job_notices

MOST_TRIES: Final = 50
"""Attempts after which a notice that cannot be delivered is given up; the history keeps it."""


class NoticeKind(StrEnum):
    """The reason for a notice."""

    FAILED = "failed"
    MISSED = "missed"
    ATTENTION = "attention"
    RECOVERED = "recovered"


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice about one slot; its text is made of ``content``."""

    job: str
    slot: datetime
    kind: NoticeKind
    channel: str
    content: Mapping[str, Any]


def put_notices(connection: Connection, notices: Sequence[Notice], clock: Clock) -> None:
    """Write notices, to be delivered after the transaction.

    ``RECOVERED`` is written only where the last that this channel was told about the job was no good news.
    """
    for notice in notices:
        if notice.kind is NoticeKind.RECOVERED and not _last_was_bad(connection, notice):
            continue
        row = asdict(notice) | {"id": new_id(), "created_at": clock(), "tries": 0}
        connection.execute(sa.insert(job_notices).values(row))


def _last_was_bad(connection: Connection, notice: Notice) -> bool:
    told = job_notices.c
    last = (
        sa.select(told.kind)
        .where(told.job == notice.job, told.channel == notice.channel)
        .order_by(told.created_at.desc(), told.id.desc())
        .limit(1)
    )
    return connection.scalar(last) not in {None, NoticeKind.RECOVERED}


def undelivered(database: Database, channels: Sequence[str]) -> Sequence[Row[Any]]:
    """Return the notices that wait for one of ``channels``, the oldest first."""
    told = job_notices.c
    waiting = (
        sa.select(job_notices)
        .where(told.delivered_at.is_(None), told.tries < MOST_TRIES, told.channel.in_(channels))
        .order_by(told.created_at, told.id)
    )
    with database.transaction() as connection:
        return connection.execute(waiting).all()


def note_delivery(database: Database, notice: UUID, problem: str | None, clock: Clock) -> None:
    """Note that a notice was delivered, or the ``problem`` that its delivery met."""
    told = job_notices.c
    values = {"tries": told.tries + 1, "problem": problem, "delivered_at": None if problem else clock()}
    with database.transaction() as connection:
        connection.execute(sa.update(job_notices).where(told.id == notice).values(values))
