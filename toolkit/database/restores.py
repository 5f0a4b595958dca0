"""A database that was restored in place: noticed by a seal that is missing, and confirmed by two people.

A dump that is restored over the same database takes back what was written since, such as a withdrawal, and leaves
no trace in it. Whoever kept a seal of the custody log notices: the log does not have it any more. Until two people
have confirmed what happened, every audit says so.
"""

from datetime import datetime
from hashlib import sha256

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.contract.deadlines import Clock
from toolkit.contract.events import CustodyEvent
from toolkit.contract.fields import MISLEADING, NOT_MISLEADING, TRIMMED
from toolkit.contract.people import person, same_person
from toolkit.database.connection import Database
from toolkit.database.observation_clock import stamp
from toolkit.database.tables import custody_events, restore_confirmations, restores
from toolkit.errors import InvalidInput


def notice_restore(connection: Connection, lost_seal: str, clock: Clock) -> None:
    """Note that the custody log lacks a seal that was kept of it; once for each seal."""
    known = sa.select(sa.exists().where(restores.c.lost_seal == lost_seal))
    if not connection.scalar(known):
        connection.execute(sa.insert(restores), {"lost_seal": lost_seal, "noticed_at": stamp(connection, clock)})


def pending_restore(connection: Connection, moment: datetime | None = None) -> str | None:
    """Return the sentence about a restore that nobody had confirmed by the moment, or by now."""
    query = sa.select(restores.c.noticed_at).order_by(restores.c.id.desc()).limit(1)
    confirmed = sa.select(sa.func.max(restore_confirmations.c.confirmed_at))
    if moment is not None:
        query = query.where(restores.c.noticed_at <= moment)
        confirmed = confirmed.where(restore_confirmations.c.confirmed_at <= moment)
    noticed, last = connection.scalar(query), connection.scalar(confirmed)
    if noticed is None or (last is not None and last >= noticed):
        return None
    return (
        f"The database was restored from an older dump, which was noticed at {noticed:%Y-%m-%d %H:%M} UTC: what "
        "was written between the dump and the restore, such as withdrawals and waivers, is gone. Find out what "
        "happened, and let two people confirm it: toolkit db confirm-restore"
    )


def confirm_restore(
    database: Database, *, confirmed_by: str, approved_by: str, reason: str, account: str | None, clock: Clock
) -> None:
    """Keep that two people know of the restore and of what it took back.

    Raises:
        InvalidInput: there is none to confirm, a text is missing, or both are the same person.
    """
    reason, confirmed_by, approved_by = (text.strip(TRIMMED) for text in (reason, confirmed_by, approved_by))
    if not reason or not person(confirmed_by) or not person(approved_by) or same_person(confirmed_by, approved_by):
        raise InvalidInput(
            "A restore is confirmed with a reason by two people, whose names in Latin letters are not alike."
        )
    if MISLEADING.search(reason + confirmed_by + approved_by):
        raise InvalidInput("The reason and the names {}.", NOT_MISLEADING)
    with database.transaction() as connection:
        if pending_restore(connection) is None:
            raise InvalidInput("There is no restore to confirm.")
        now = stamp(connection, clock)
        row = {"confirmed_by": confirmed_by, "approved_by": approved_by, "reason": reason, "account": account}
        connection.execute(sa.insert(restore_confirmations), row | {"confirmed_at": now})
        told = {"by": confirmed_by, "approvedBy": approved_by, "reason": reason, "account": account}
        detail = {name: sha256(text.encode()).hexdigest() for name, text in told.items() if text}
        event = {"kind": CustodyEvent.RESTORE_CONFIRMED, "happened_at": now, "detail": detail}
        connection.execute(sa.insert(custody_events), event)
