"""Two holders of one advisory lock come one after the other."""

from concurrent.futures import ThreadPoolExecutor

from tests.support.waiting import someone_waits, wait_until
from toolkit.database.connection import Lock, take
from toolkit.log.sealing import seal_events


def test_a_second_sealer_continues_the_chain_of_the_first(database, clock):
    with ThreadPoolExecutor(1) as pool:
        with database.transaction() as connection:
            take(connection, Lock.CUSTODY_SEAL)
            second = pool.submit(seal_events, database, clock)
            wait_until(lambda: second.done() or someone_waits(database))
            assert not second.done()
        second.result()
