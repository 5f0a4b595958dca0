"""Loads of clients killed at random moments, then run again: each row is in exactly once, none is lost.

In turns: the load is killed at any moment; the load is killed while it writes; a process of the database server
is killed while the load writes, after which the server restarts and recovers. Nothing is timed here.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections import Counter
from contextlib import suppress

import psutil
import sqlalchemy as sa

from tests.kills import Victim, check_all_in_once, check_nothing_or_all_in
from tests.own_services import own_home
from toolkit.errors import DatabaseError
from toolkit.storage import embedded, schema
from toolkit.storage.database import Database
from toolkit.storage.tables import clients

_KILLS = 50
_ROWS = 40_000
_WRITING = 0.5
"""Seconds, about as long as the rows take to be written."""


def main(scale: float) -> None:
    """Kill, look, run again, look again."""
    random_moment = random.Random(1)
    ended: Counter[str] = Counter()
    with own_home() as home:
        url = embedded.database_url(home)
        environ = {**os.environ, "TOOLKIT_HOME": str(home), "DATABASE_URL": url}
        database = Database(url)
        schema.upgrade(database, service_tables=True)
        victim = Victim.prepare(home, environ, _ROWS)
        usual = victim.seconds()

        def kill_at_any_moment(process: subprocess.Popen[str]) -> None:
            time.sleep(random_moment.uniform(0.1, 1.0) * usual)
            process.kill()

        def kill_while_it_writes(process: subprocess.Popen[str]) -> None:
            _wait_for_writing(database, process)
            time.sleep(random_moment.uniform(0, _WRITING))
            process.kill()

        def kill_the_database(process: subprocess.Popen[str]) -> None:
            pid = _wait_for_writing(database, process)
            time.sleep(random_moment.uniform(0, _WRITING))
            with suppress(psutil.NoSuchProcess):
                psutil.Process(pid).kill()

        strikes = [
            ("killed at any moment", kill_at_any_moment),
            ("killed while it writes", kill_while_it_writes),
            ("database killed", kill_the_database),
        ]
        for number in range(max(1, round(_KILLS * scale))):
            _empty(database, victim)
            name, strike = strikes[number % len(strikes)]
            status = victim.disturb(0, strike)
            embedded.database_url(home)
            _wait_for_recovery(database)
            check_nothing_or_all_in(victim, database)
            with database.transaction() as connection:
                before = connection.scalar(sa.select(sa.func.count()).select_from(clients))
            victim.run_to_the_end()
            check_all_in_once(victim, database)
            ended[f"{name}: exit status {status}, {'all' if before else 'nothing'} in"] += 1
        print(f"{sum(ended.values())} times killed and run again: each row in once, none lost")
        for what, count in sorted(ended.items()):
            print(f"  {count:>3} × {what}")
        database.dispose()


def _empty(database: Database, victim: Victim) -> None:
    with database.transaction() as connection:
        connection.exec_driver_sql("SET LOCAL session_replication_role = replica")  # the triggers that forbid it
        connection.exec_driver_sql("TRUNCATE clients, addresses, sales, evidences, audit.load_batches")
    shutil.rmtree(victim.out, ignore_errors=True)


def _wait_for_writing(database: Database, process: subprocess.Popen[str]) -> int:
    """The server's process that writes for the load, as soon as there is one."""
    writes = sa.text(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_xid IS NOT NULL "
        "AND pid <> pg_backend_pid()"
    )
    while process.poll() is None:
        with database.transaction() as connection:
            pid = connection.scalar(writes)
        if pid is not None:
            return int(pid)
    raise AssertionError("The load ended without writing")


def _wait_for_recovery(database: Database) -> None:
    for _ in range(600):
        try:
            with database.transaction():
                return
        except DatabaseError:
            time.sleep(0.1)
    raise AssertionError("The database did not recover")
