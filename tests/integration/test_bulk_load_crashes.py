"""After a load was killed or failed, the same command leaves each row in the database exactly once."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from tests.client_rows import client, write_csv
from tests.kills import Victim, check_all_in_once, check_nothing_or_all_in
from tests.waiting import PATIENCE, wait_until
from toolkit.entrypoints.cli import main
from toolkit.errors import DatabaseError
from toolkit.operations.register.bulk_load import copying, load_clients
from toolkit.storage.database import Database
from toolkit.storage.tables import clients, load_batches


@pytest.fixture
def environ(home: Path, database: Database) -> Mapping[str, str]:
    url = database.engine.url.render_as_string(hide_password=False)
    return {**os.environ, "TOOLKIT_HOME": str(home), "DATABASE_URL": url}


@pytest.fixture
def victim(environ: Mapping[str, str], tmp_path: Path) -> Victim:
    return Victim.prepare(tmp_path, environ, 20_000)


def test_a_kill_while_rows_are_being_copied(victim: Victim, database: Database):
    with copying_load(victim, database) as (process, _):
        process.kill()
        process.communicate()
    check_nothing_or_all_in(victim, database)
    assert main(victim.words, victim.environ) == 3
    check_all_in_once(victim, database)


def test_a_lost_connection(victim: Victim, database: Database):
    with copying_load(victim, database) as (process, pid):
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
def copying_load(victim: Victim, database: Database) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A load whose COPY of the addresses waits for a lock that is held here, and its backend."""
    waiting = sa.text(
        "SELECT pid FROM pg_stat_activity "
        "WHERE datname = current_database() AND query LIKE 'COPY %' AND wait_event_type = 'Lock'"
    )

    def backend() -> int | None:
        with database.transaction() as connection:
            return connection.scalar(waiting)

    with database.transaction() as holder:
        holder.execute(sa.text("LOCK TABLE addresses IN SHARE MODE"))
        process = victim.start()
        try:
            wait_until(lambda: backend() is not None or process.poll() is not None)
            pid = backend()
            assert pid is not None, "the load ended without copying"
            yield process, pid
        finally:
            process.kill()


def test_a_disk_that_is_full_for_the_rejected_rows(victim: Victim, database: Database):
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


def test_a_database_that_refuses_a_row_keeps_the_file_out(
    database: Database, clock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As when its disk is full: an error inside of COPY, in the thread that copies."""

    def refuse(*_: Any) -> None:
        raise psycopg.errors.DiskFull("could not extend file")

    source = write_csv(tmp_path / "a.csv", [client(1), client(2, cpf="0")])
    with monkeypatch.context() as patched:
        patched.setattr(copying.Copying, "_copy", refuse)
        with pytest.raises(DatabaseError):
            load_clients(database, [source], out=tmp_path / "out", clock=clock)
    with database.transaction() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(load_batches)) == 0
    assert list((tmp_path / "out").iterdir()) == []
    assert load_clients(database, [source], out=tmp_path / "out", clock=clock).accepted == 1


def test_a_kill_between_the_commit_and_the_rejected_file(
    database: Database, clock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The rows are in, the files are not: the same command again brings them."""
    from toolkit.operations.register.bulk_load import rejects

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    source = write_csv(tmp_path / "a.csv", [client(1), client(2, cpf="0")])
    with monkeypatch.context() as patched:
        patched.setattr(rejects.Outputs, "publish", killed)
        with pytest.raises(KeyboardInterrupt):
            load_clients(database, [source], out=tmp_path / "out", clock=clock)
    again = load_clients(database, [source], out=tmp_path / "out", clock=clock)
    assert (again.accepted, again.rejected, again.skipped) == (0, 1, 1)
    assert all(path.exists() for path in again.rejected_files)
