"""After a load was killed or failed, the same command leaves each row in the database exactly once."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.support.client_rows import client, write_csv
from tests.support.waiting import PATIENCE, wait_until
from toolkit.cli import main
from toolkit.database.tables import addresses, clients, load_batches


@pytest.fixture
def environ(tmp_path, database):
    url = database.engine.url.render_as_string(hide_password=False)
    return {**os.environ, "TOOLKIT_HOME": str(tmp_path / "home"), "DATABASE_URL": url}


@pytest.fixture
def victim(environ, tmp_path):
    return Victim.prepare(tmp_path, environ, 20_000)


def test_a_kill_while_rows_are_being_stored(victim, database):
    with storing_load(victim, database) as (process, _):
        process.kill()
        process.communicate()
    check_nothing_or_all_in(victim, database)
    assert main(victim.words, victim.environ) == 3
    check_all_in_once(victim, database)


def test_a_lost_connection(victim, database):
    with storing_load(victim, database) as (process, pid):
        with database.transaction() as connection:
            connection.execute(sa.select(sa.func.pg_terminate_backend(pid)))
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "does not answer" in errors
    assert "Traceback" not in errors
    check_nothing_or_all_in(victim, database)
    assert main(victim.words, victim.environ) == 3
    check_all_in_once(victim, database)


@contextmanager
def storing_load(victim, database):
    """A load whose INSERT of the addresses waits for a lock that is held here, and its backend."""
    waiting = sa.text(
        "SELECT pid FROM pg_stat_activity "
        "WHERE datname = current_database() AND query LIKE '%INTO %addresses%' AND wait_event_type = 'Lock'"
    )

    def backend():
        with database.transaction() as connection:
            return connection.scalar(waiting)

    with database.transaction() as holder:
        holder.execute(sa.text("LOCK TABLE addresses IN SHARE MODE"))
        process = victim.start()
        try:
            wait_until(lambda: backend() is not None or process.poll() is not None)
            pid = backend()
            assert pid is not None, "the load ended without storing"
            yield process, pid
        finally:
            process.kill()


def test_a_disk_that_is_full_for_the_rejected_rows(victim, database):
    """The system refuses to let a file grow, as a full disk does; nothing may be registered then."""

    process = victim.start()
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (20_000, 20_000))
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "Traceback" not in errors
    assert "cannot be written there (File too large); nothing was loaded. Make room" in errors
    assert list(victim.out.iterdir()) == []
    with database.transaction() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(clients)) == 0
    assert main(victim.words, victim.environ) == 3
    check_all_in_once(victim, database)


BAD_EVERY = 50


@dataclass(frozen=True)
class Victim:
    """A file to load, and how the command is started."""

    source: Path
    out: Path
    environ: Mapping[str, str]
    rows: int

    @classmethod
    def prepare(cls, folder, environ, rows):
        """A file of ``rows`` different clients, one in fifty of them bad."""
        made = (client(n, cpf="0") if n % BAD_EVERY == 0 else client(n) for n in range(rows))
        return cls(write_csv(folder / "clients.csv", made), folder / "out", environ, rows)

    @property
    def words(self):
        """The command, as ``toolkit`` reads it."""
        return ["-q", "clients", "load", str(self.source), "--out", str(self.out)]

    def start(self):
        """The command, running."""
        return subprocess.Popen(
            [sys.executable, "-m", "toolkit", *self.words],
            env=dict(self.environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def check_all_in_once(victim, database):
    """Each good row is registered once with its address, one batch is noted, the bad rows came back."""
    good = victim.rows - len(range(0, victim.rows, BAD_EVERY))
    with database.transaction() as connection:
        count = sa.select(sa.func.count(), sa.func.count(sa.distinct(clients.c.cpf))).select_from(clients)
        assert tuple(connection.execute(count).one()) == (good, good)
        matched = sa.select(sa.func.count()).select_from(
            addresses.join(clients, addresses.c.client_id == clients.c.id)
        )
        assert connection.scalar(matched) == good
        assert connection.scalar(sa.select(sa.func.count()).select_from(addresses)) == good
        assert connection.scalar(sa.select(sa.func.count()).select_from(load_batches)) == 1
    names = {path.name for path in victim.out.iterdir()}
    expected = {f"{victim.source.name}.rejected.csv", f"{victim.source.name}.rejected.xlsx"}
    assert expected <= names <= expected | {f"{victim.source.name}.skipped.csv"}
    lines = (victim.out / f"{victim.source.name}.rejected.csv").read_text("utf-8-sig").splitlines()
    assert len(lines) == 1 + victim.rows - good


def check_nothing_or_all_in(victim, database):
    """A load that was struck has registered all of its rows or none."""
    good = victim.rows - len(range(0, victim.rows, BAD_EVERY))
    with database.transaction() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(clients)) in (0, good)
