"""Wait for what another thread or process does, by looking for it."""

import time
from collections.abc import Callable
from typing import Final

import sqlalchemy as sa

from toolkit.database.connection import Database

PATIENCE: Final = 300
"""Seconds after which something that was waited for counts as not happening; a busy machine needs far less."""


def wait_until(happened: Callable[[], object], *, step: float = 0.01) -> None:
    """Look again and again until it happened; fail when it does not."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, "what the test waits for did not happen"
        time.sleep(step)


def sessions_waiting(database: Database) -> int:
    """Count the sessions of this database that wait for a lock that another one holds."""
    with database.transaction() as connection:
        return connection.scalar(sa.text(_WAITING)) or 0


_WAITING: Final = """
    SELECT count(*)
    FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
"""
