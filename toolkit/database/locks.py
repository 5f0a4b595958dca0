"""The advisory locks of the toolkit, each for one kind of work that must not run twice at the same time.

A transaction that needs several of them takes them in the order of ``Lock``, so that no two transactions wait for
each other, and the clock of observations is taken after everything else. PostgreSQL gives a lock back when the
transaction ends. Only completion asks the bucket while it holds ``SALE``: once for each file, all at once, and for
seconds at most.
"""

from enum import Enum, unique

import sqlalchemy as sa
from sqlalchemy import Connection


@unique
class Lock(Enum):
    """One member for each lock, in the order in which they are taken; the value is its number in PostgreSQL."""

    SCHEMA = 0x65766964
    """Schemas change: two upgrades at once become one after the other."""
    CLIENT_LOAD = 0x6C6F6164
    """A load of clients stores its rows: one after the other finds those that are registered already."""
    CREDENTIALS = 0x63726564
    """A manifest gets its credentials: two at once could each make a record for the same file."""
    OPEN_FORMS = 0x666F726D
    """The open forms of one sale are counted: two requests at once could each take the last place."""
    SALE = 0x73616C65
    """One sale is completed, or one of its records is withdrawn: one comes wholly before the other."""
    SALES_LOAD = 0x6D657267
    """Sales are merged from a file: two with the same new sale would fail each other."""
    OBJECT_HISTORY = 0x73796E63
    """The bucket is read: two readings become one after the other, so that none puts back an older listing."""
    FINDING_HISTORY = 0x66696E64
    """The lives of findings are noted: two audits at once become one after the other."""
    CUSTODY_SEAL = 0x7365616C
    """The chain of the custody log grows."""


def take(connection: Connection, lock: Lock) -> None:
    """Wait for the lock, and hold it until the transaction ends."""
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(lock.value)))


def take_for(connection: Connection, lock: Lock, name: str) -> None:
    """Wait for the lock of one thing, such as a sale, and hold it as ``take`` does."""
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(lock.value, sa.func.hashtext(name))))


def take_if_free(connection: Connection, lock: Lock) -> bool:
    """Hold the lock until the transaction ends, unless somebody else holds it."""
    return bool(connection.scalar(sa.select(sa.func.pg_try_advisory_xact_lock(lock.value))))
