"""Stamp observations with one clock for all processes, so that an answer about a past moment is final.

Whoever writes an observation, a check or a withdrawal takes its time from here and holds the clock until the
commit. So stamps never go back, whatever the clocks of the machines say, and no transaction commits what is older
than what another one committed before. An audit moves the clock past its own moment: whatever it does not see yet
will be stamped later.

The clock is a row that is locked: it needs no session and is given back with the transaction.
"""

import time
from datetime import datetime, timedelta
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.database.connection import Database, database_of
from toolkit.database.tables import observation_clock
from toolkit.errors import DatabaseError, DatabaseUnavailable

TICK: Final = timedelta(microseconds=1)
PATIENCE: Final = 60.0  # seconds that a replica may be behind
_PAUSE: Final = 0.2
AHEAD: Final = timedelta(minutes=5)  # by which this machine's clock may be ahead of the server's


def stamp(connection: Connection) -> datetime:
    """Return the moment of what this transaction observed; others wait for its commit before they get theirs.

    Take it after every other lock and after reading from elsewhere. The clock of the database is asked once the
    wait is over.

    Raises:
        DatabaseError: the clock of this machine is far ahead of the server's.
    """
    stands_at = _stands_at(connection, held=True)
    moment = max(stands_at, checked(connection, database_of(connection).clock()))
    if moment > stands_at:
        _move(connection, moment)
    return moment


def final_moment(database: Database, as_of: datetime | None = None) -> datetime:
    """Return the moment to judge, now or ``as_of``, after which nothing more is stamped at or before it.

    Where the session can write nothing, the clock cannot be moved. Then the latest moment that is final is
    taken, if the one asked for is later.
    """
    with database.transaction() as connection:
        if connection.scalar(sa.text(_WRITES_NOTHING)):
            return min(as_of or database.clock(), _stands_at(connection) - TICK)
        stands_at = _stands_at(connection, held=True)
        moment = as_of or max(stands_at, checked(connection, database.clock()))
        if moment >= stands_at:
            _move(connection, moment + TICK)
    return moment


_WRITES_NOTHING: Final = """
    SELECT current_setting('transaction_read_only')::boolean
        OR NOT has_table_privilege('audit.observation_clock', 'UPDATE')
"""
"""True on a replica, and for a role that may not move the clock."""


def wait_for(replica: Database, moment: datetime) -> float:
    """Wait until a replica has seen everything stamped up to ``moment``; return the seconds that it was behind.

    Raises:
        DatabaseUnavailable: it is further behind than ``PATIENCE``.
    """
    started = time.monotonic()
    while True:
        with replica.transaction() as connection:
            stands_at = _stands_at(connection)
        waited = time.monotonic() - started
        if stands_at > moment:
            return waited
        if waited > PATIENCE:
            raise DatabaseUnavailable(
                "The replica at {} has seen nothing after {}. It is behind, or not a replica of this "
                "database; check DATABASE_READ_URL.",
                replica.address,
                stands_at.isoformat(timespec="seconds"),
            )
        time.sleep(_PAUSE)


def latest(connection: Connection) -> datetime:
    """Return now, or where this machine's clock went back the moment up to which everything was stamped."""
    return max(_stands_at(connection), database_of(connection).clock())


def _stands_at(connection: Connection, *, held: bool = False) -> datetime:
    query = sa.select(observation_clock.c.stands_at)
    stands_at: datetime = connection.execute(query.with_for_update() if held else query).scalar_one()
    return stands_at


def _move(connection: Connection, moment: datetime) -> None:
    connection.execute(sa.update(observation_clock).values(stands_at=moment))


def checked(connection: Connection, now: datetime) -> datetime:
    """Return ``now`` by this machine's clock.

    Raises:
        DatabaseError: it is far ahead of the server's.
    """
    servers: datetime = connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
    if now > servers + AHEAD:
        raise DatabaseError(
            "The clock of this machine is more than {} minutes ahead of the database server's clock. Set it "
            "right: what is observed now would be dated in the future.",
            AHEAD.seconds // 60,
        )
    return now
