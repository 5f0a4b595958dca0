"""Commands that are killed or find no room: no copy of personal data is left, and each row is there once."""

import json
import os
import resource
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
import xlsxwriter
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support.client_rows import FIELDS, client, write_csv
from tests.support.evidence_files import pdf
from tests.support.notebook_files import write_notebook
from tests.support.process_pool import stalled, start_command
from tests.support.uploaded_sales import add_sale, credentials_line, rows, write_credentials
from tests.support.waiting import PATIENCE, sessions_waiting, wait_until
from toolkit.audit.folder import open_audit
from toolkit.cli import main
from toolkit.log.bundle import BUNDLE


@pytest.fixture
def environ(embedded_environment, tmp_path):
    (tmp_path / "scratch").mkdir()
    return {**os.environ, **embedded_environment, "TMPDIR": str(tmp_path / "scratch")}


def names(folder):
    return [str(path.relative_to(folder)) for path in folder.rglob("*")]


def table(path, *lines):
    path.write_text("\n".join(lines))
    return str(path)


@pytest.mark.parametrize(
    ("command", "place"),
    [
        ("evidence verify", ("toolkit.evidence.contents", "Inspector", "inspect")),
        ("sales complete sale-1", ("toolkit.evidence.contents", "Inspector", "inspect")),
        ("clients load clients.xlsx", ("toolkit.intake.workbooks", "subprocess", "run")),
    ],
)
def test_a_file_that_is_looked_at_is_copied_nowhere(
    command, place, environ, database, add_file, sync, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with xlsxwriter.Workbook(tmp_path / "clients.xlsx") as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, FIELDS)
        sheet.write_row(1, 0, client(1).values())
    add_file(add_sale(database), "KYC", file_name="CPF 390.533.447-05.pdf")
    sync()
    with stalled(environ, place, *command.split()):
        assert names(tmp_path) == ["clients.xlsx", "scratch"]
    assert names(tmp_path) == ["clients.xlsx", "scratch"]


def test_evidence_upload(environ, bucket, tmp_path):
    name = "CPF 390.533.447-05.pdf"
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / name).write_bytes(pdf())
    credentials = write_credentials(tmp_path / "out.jsonl", [credentials_line(bucket, "sale-1", name)])
    sending = ("toolkit.evidence", "upload", "post_file")
    with stalled(environ, sending, "evidence", "upload", str(credentials), "--from", str(tmp_path / "files")):
        pass
    assert {*names(tmp_path)} == {"files", f"files/{name}", "out.jsonl", "out.jsonl.done", "scratch"}
    assert "390.533.447-05" not in (tmp_path / "out.jsonl.done").read_text()


SALES = "saleId,clientId,utilityGroup,isClientFinancialResponsible,createdAt"
WANTED = "saleId,fileName,fileFormat,type,evidenceType"
FORMATS = ("html", "xlsx", "csv", "json", "pdf")
REJECTING = ("toolkit.intake.results", "Outputs", "publish")
DRAFTED = {
    "clients load clients.csv --out out": (
        REJECTING,
        3,
        ["clients.csv.rejected.csv", "clients.csv.rejected.xlsx"],
    ),
    "sales load sales.csv --out out": (REJECTING, 3, ["sales.csv.rejected.csv", "sales.csv.rejected.xlsx"]),
    "run job.ipynb --out out/run.ipynb": (("toolkit.notebooks", "running", "_write"), 0, ["run.ipynb"]),
    "credentials request wanted.csv --out out/a.jsonl": (("toolkit.atomic_files", "os", "fsync"), 0, ["a.jsonl"]),
    f"report --out out --format {','.join(FORMATS)}": (
        ("toolkit", "reports", "_write_manifest"),
        0,
        sorted(["manifest.json", *BUNDLE, *map("missing-evidence.{}".format, FORMATS)]),
    ),
}
"""Commands; where each stands when all is written and nothing has its name; how it ends later, and its files."""


@pytest.mark.parametrize("command", DRAFTED)
def test_what_a_kill_leaves_is_its_owners_and_the_next_one_sweeps_up(
    command, environ, database, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    place, status, files = DRAFTED[command]
    write_csv(tmp_path / "clients.csv", [client(1, cpf="39053344706")])
    table(tmp_path / "sales.csv", SALES, "V-1,,A,perhaps,x")
    table(tmp_path / "wanted.csv", WANTED, "sale-1,Ana.pdf,application/pdf,application/pdf,KYC")
    write_notebook(tmp_path / "job.ipynb", "print('390.533.447-05')", parameters="weeks = 1")
    add_sale(database)
    (out := tmp_path / "out").mkdir()
    with stalled(environ, place, *command.split()):
        (draft,) = out.iterdir()
        assert draft.stat().st_mode & 0o077 == 0
    assert [*out.iterdir()] == [draft]
    assert main(["-q", *command.split()], environ) == status
    assert sorted(names(out)) == files
    assert names(tmp_path / "scratch") == []


ROWS, BAD_EVERY = 20_000, 50
GOOD = ROWS - ROWS // BAD_EVERY


@pytest.fixture
def victim(tmp_path, database, environ):
    """A load of many clients, one in fifty of them bad, as a process; and the same as a command."""
    made = (client(n, cpf="0") if n % BAD_EVERY == 0 else client(n) for n in range(ROWS))
    source, out = write_csv(tmp_path / "clients.csv", made), tmp_path / "out"
    words = ["-q", "clients", "load", str(source), "--out", str(out)]

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

    return SimpleNamespace(start=lambda: start_command(environ, *words), again=again, out=out)


@settings(
    max_examples=settings().max_examples // 40,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(command=st.sampled_from(["load", "audit"]), seconds=st.floats(0, 3))
def test_what_is_killed_by_chance_is_as_if_it_had_not_been_when_it_is_run_again(
    command, seconds, database, environ, tmp_path
):
    before = len([*tmp_path.glob("*.csv")])
    add_sale(database, f"sale-{before}")
    people = write_csv(tmp_path / f"{before}.csv", (client(before * ROWS + row) for row in range(ROWS)))
    words = ["clients", "load", str(people), "--out", str(tmp_path / "out")] if command == "load" else ["audit"]
    process = start_command(environ, "-q", *words)
    process.join(seconds)
    process.kill()
    process.join()
    _check_whole(database, environ)
    if process.exitcode == -signal.SIGKILL:
        assert main(["-q", *words], environ) in (0, 3)
        _check_whole(database, environ)


def _check_whole(database, environ):
    [(count, people)] = rows(database, "SELECT count(*), count(DISTINCT cpf) FROM clients")
    assert (people, count % ROWS) == (count, 0)
    for folder in Path(environ["TOOLKIT_HOME"], "audits").glob("2*"):
        open_audit(folder).verify()


def test_a_lost_connection(victim, database):
    with database.transaction() as holder:
        holder.exec_driver_sql("LOCK TABLE addresses IN SHARE MODE")
        process = victim.start()
        wait_until(lambda: sessions_waiting(database) or not process.is_alive())
        waiting = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        assert rows(database, f"SELECT pg_terminate_backend(pid) FROM {waiting}") == [(True,)]
        status, errors = process.told.recv()
    assert status == 1
    assert "does not answer" in errors
    assert "Traceback" not in errors
    assert rows(database, "SELECT count(*) FROM clients") in ([(0,)], [(GOOD,)])
    victim.again()


@pytest.mark.parametrize("room", [0, 20_000])
def test_a_disk_that_is_full_for_the_rejected_rows(victim, database, room):
    """The system refuses to let a file grow, as a full disk does; nothing may be registered then."""
    process = victim.start()
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (room, room))
    status, errors = process.told.recv()
    assert status == 1
    assert "Traceback" not in errors
    assert "cannot be written there (File too large); nothing was loaded. Make room" in errors
    assert list(victim.out.iterdir()) == []
    assert rows(database, "SELECT FROM clients") == []
    victim.again()


FILES = (
    *(f"{kind}.x,audio/mpeg,audio/mpeg,{kind}" for kind in ("POV", "AUT")),
    "a.pdf,application/pdf,application/pdf,DOC_CONTRATANTE",
)
OLD, NEW = range(12), range(12, 40)
"""Sales that are there before, and others."""


@pytest.fixture
def commands(database, tmp_path):
    """Three kinds by turns; each file overlaps with the next one, and every other one runs backwards.

    Of the sales, which are of group D, some were of group A before; a row of their files is rejected.
    """
    for number in OLD:
        add_sale(database, f"S-{number}")
    found = []
    for at in range(4):
        order = -1 if at % 2 else 1
        people = [client(20 * at + n) for n in range(40)] + [client(900 + at, cpf="0")]
        sold = [f"S-{number},,D,true,2026-02-28T09:30:00Z" for number in (*OLD, *NEW[5 * at : 5 * at + 12])]
        asked = [f"S-{number},{files}" for number in OLD[2 * at : 2 * at + 6] for files in FILES]
        clients = write_csv(tmp_path / f"clients{at}.csv", people[::order])
        sales = table(tmp_path / f"sales{at}.csv", SALES, *sold[::order], ",,A,true,2026-02-28")
        wanted = table(tmp_path / f"wanted{at}.csv", WANTED, *asked[::order])
        found += [
            ["-q", "clients", "load", str(clients), "--out", str(tmp_path / f"out{at}")],
            ["-q", "sales", "load", sales, "--overwrite"],
            ["-q", "credentials", "request", wanted, "--out", str(tmp_path / f"credentials{at}.jsonl")],
        ]
    return found


def test_twelve_at_once_with_three_killed_in_the_middle_leave_each_row_once(
    commands, database, embedded_environment, run, tmp_path
):
    with database.transaction() as holder:
        holder.exec_driver_sql("LOCK TABLE clients, sales, evidences IN SHARE MODE")
        started = [start_command(os.environ | embedded_environment, *words) for words in commands]
        # Each has read its file and sent rows, and waits for the tables or for one that waits for them.
        wait_until(lambda: sessions_waiting(database) >= len(commands))
        for process in started[:3]:
            process.kill()
    for process in started:
        process.join(PATIENCE)
    assert [process.exitcode for process in started] == [-signal.SIGKILL] * 3 + [3, 3, 0] * 3
    for words, status in zip(commands, (3, 3, 0), strict=False):
        run(*words, ends=status)
    new_ones = (39, 39, "D")
    for found, expected in {
        "count(DISTINCT cpf) FROM clients": (100, 100),
        "count(DISTINCT client_id) FROM addresses": (100, 100),
        "count(DISTINCT id), min(utility_group) FROM sales": new_ones,
        "count(DISTINCT sale_id), min(utility_group) FROM audit.sale_observations WHERE gone_at IS NULL": new_ones,
        "count(DISTINCT (sale_id, evidence_type, file_name)) FROM evidences": (36, 36),
        "count(DISTINCT detail ->> 'evidence') FROM audit.custody_events WHERE kind = 'ISSUED'": (36, 36),
    }.items():
        assert rows(database, f"SELECT count(*), {found}") == [expected]
    ids = {str(each) for (each,) in rows(database, "SELECT id FROM evidences")}
    told = [
        {json.loads(line)["id"] for line in (tmp_path / f"credentials{at}.jsonl").read_text().splitlines()}
        for at in range(4)
    ]
    assert [len(each) for each in told] == [18] * 4
    assert set.union(*told) == ids
