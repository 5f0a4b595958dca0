"""After a load lost its connection or found no room, the same command leaves each row exactly once."""

import os
import resource
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.support.client_rows import client, write_csv
from tests.support.uploaded_sales import rows
from tests.support.waiting import PATIENCE, wait_until
from toolkit.cli import main

ROWS, BAD_EVERY = 20_000, 50
GOOD = ROWS - ROWS // BAD_EVERY
WAITING = """
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND query LIKE '%INTO %addresses%' AND wait_event_type = 'Lock'
"""


@pytest.fixture
def victim(tmp_path, database):
    """A load of many clients, one in fifty of them bad, as a process; and the same as a command."""
    url = database.engine.url.render_as_string(hide_password=False)
    environ = {**os.environ, "TOOLKIT_HOME": str(tmp_path / "home"), "DATABASE_URL": url}
    made = (client(n, cpf="0") if n % BAD_EVERY == 0 else client(n) for n in range(ROWS))
    source, out = write_csv(tmp_path / "clients.csv", made), tmp_path / "out"
    words = ["-q", "clients", "load", str(source), "--out", str(out)]

    def start():
        command = [sys.executable, "-m", "toolkit", *words]
        return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def again():
        """Each good row is registered once with its address, one batch is noted, the bad rows came back."""
        assert main(words, environ) == 3
        assert rows(database, "SELECT count(*), count(DISTINCT cpf) FROM clients") == [(GOOD, GOOD)]
        of_whom = "SELECT count(*), count(clients.id) FROM addresses LEFT JOIN clients ON clients.id = client_id"
        assert rows(database, of_whom) == [(GOOD, GOOD)]
        assert rows(database, "SELECT count(*) FROM audit.load_batches") == [(1,)]
        names = {path.name.removeprefix("clients.csv.") for path in out.iterdir()}
        assert {"rejected.csv", "rejected.xlsx"} <= names <= {"rejected.csv", "rejected.xlsx", "skipped.csv"}
        lines = (out / "clients.csv.rejected.csv").read_text("utf-8-sig").splitlines()
        assert len(lines) == 1 + ROWS - GOOD

    return SimpleNamespace(start=start, again=again, out=out)


def test_a_lost_connection(victim, database):
    with database.transaction() as holder:
        holder.exec_driver_sql("LOCK TABLE addresses IN SHARE MODE")
        process = victim.start()
        wait_until(lambda: rows(database, WAITING) or process.poll() is not None)
        [(pid,)] = rows(database, WAITING)
        rows(database, f"SELECT pg_terminate_backend({pid})")
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "does not answer" in errors
    assert "Traceback" not in errors
    assert rows(database, "SELECT count(*) FROM clients") in ([(0,)], [(GOOD,)])
    victim.again()


def test_a_disk_that_is_full_for_the_rejected_rows(victim, database):
    """The system refuses to let a file grow, as a full disk does; nothing may be registered then."""
    process = victim.start()
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (20_000, 20_000))
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "Traceback" not in errors
    assert "cannot be written there (File too large); nothing was loaded. Make room" in errors
    assert list(victim.out.iterdir()) == []
    assert rows(database, "SELECT FROM clients") == []
    victim.again()
