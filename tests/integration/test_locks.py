"""The advisory locks are taken in one order, and two holders of one lock come one after the other."""

from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import pytest

from tests.conftest import SettableClock
from tests.support.waiting import someone_waits, wait_until
from toolkit.database.connection import Database
from toolkit.database.locks import Lock, take, take_if_free
from toolkit.log.sealing import seal_events


def test_locks_are_taken_in_their_order_only(database: Database) -> None:
    with database.transaction() as connection:
        for lock in Lock:
            take(connection, lock)
            take(connection, lock)
    for first, second in combinations(Lock, 2):
        with database.transaction() as connection:
            take(connection, second)
            for other_way in (take, take_if_free):
                with pytest.raises(RuntimeError, match=f"{first.name} comes before {second.name}"):
                    other_way(connection, first)


def test_a_lock_is_free_again_after_the_transaction(database: Database) -> None:
    with database.transaction() as connection, database.transaction() as other:
        take(connection, Lock.SCHEMA)
        assert not take_if_free(other, Lock.SCHEMA)
        connection.rollback()
        assert take_if_free(other, Lock.SCHEMA)


def test_a_second_sealer_continues_the_chain_of_the_first(database: Database, clock: SettableClock) -> None:
    with ThreadPoolExecutor(1) as pool:
        with database.transaction() as connection:
            take(connection, Lock.CUSTODY_SEAL)
            second = pool.submit(seal_events, database, clock)
            wait_until(lambda: second.done() or someone_waits(database))
            assert not second.done()
        second.result()
