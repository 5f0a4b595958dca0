"""`toolkit job`: a slot is run once, whole or not at all, and people are told."""

import json
import os
import shutil
import signal
import subprocess
from base64 import b64encode
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

import duckdb
import nbformat
import pytest

from tests.support.notebook_files import write_notebook
from tests.support.scripted_server import Answer, scripted
from tests.support.uploaded_sales import execute, unguarded
from tests.support.waiting import wait_until
from toolkit import embedded
from toolkit.cli import main
from toolkit.cli.jobs import CommandLine
from toolkit.database.connection import Database
from toolkit.samples.dataset import make_samples, write_sales

JOB = """
[jobs.nightly]
schedule = "0 2 * * *"
grace = "2d"
{more}

[[jobs.nightly.steps]]
name = "sync"
command = "bucket sync --full"

[[jobs.nightly.steps]]
name = "sales"
command = "sales load {file} --overwrite"

[[jobs.nightly.steps]]
name = "report"
command = "report --format csv,json --out {{out}}"
"""

AUDIT = '[[jobs.nightly.steps]]\nname = "audit"\ncommand = "audit"\n'


@dataclass
class Office:
    """A jobs file, a folder for its outputs, and the commands."""

    folder: Path
    environ: dict[str, str]
    capsys: pytest.CaptureFixture[str]

    def write(self, text=JOB, more=""):
        sales = self.folder / "sales.csv"
        (self.folder / "jobs.toml").write_text(text.format(more=more, file=sales))

    def sales(self, *ids):
        rows = [f"{each},,A,true,2026-03-01T10:00:00-03:00" for each in ids]
        head = "saleId,clientId,utilityGroup,isClientFinancialResponsible,createdAt"
        (self.folder / "sales.csv").write_text("\n".join([head, *rows]) + "\n")

    def run(self, *words, **environ):
        """The exit status, what was printed (as JSON where it is), and the log."""
        status = main(["job", *words], {**self.environ, **environ})
        printed = self.capsys.readouterr()
        try:
            return status, json.loads(printed.out), printed.err
        except ValueError:
            return status, printed.out, printed.err

    @property
    def out(self):
        return self.folder / "out" / "nightly"

    def published(self):
        return sorted(path for path in self.out.glob("20*") if path.is_dir())


@pytest.fixture
def office(embedded_environment, tmp_path, capsys):
    ours = {"TOOLKIT_JOBS": str(tmp_path / "jobs.toml"), "TOOLKIT_JOBS_OUT": str(tmp_path / "out")}
    made = Office(tmp_path, {**embedded_environment, **ours}, capsys)
    made.write()
    made.sales("V-1", "V-2")
    return made


@pytest.mark.parametrize(
    ("ends", "code"), [("1 / 0", "NOTEBOOK_FAILED"), ("os.kill(os.getpid(), 9)", "KERNEL_DIED")]
)
def test_a_notebook_that_ends_too_soon_has_its_code_and_is_mended(ends, code, office):
    mended, report = office.folder / "mended", "report --format csv,json --out {{out}}"
    half = "import os\nfrom pathlib import Path\nPath(out, 'half').write_text('x')\nprint('before')"
    ending = f"if not Path({str(mended)!r}).exists():\n    {ends}"
    write_notebook(office.folder / "ends.ipynb", half, ending, parameters="out = '.'  # folder")
    step = f"run {office.folder}/ends.ipynb -p out {{{{out}}}} --out {{{{out}}}}/ends.ipynb"
    office.write(JOB.replace(report, step))
    status, told, _ = office.run("run", "nightly", "--json")
    assert (status, told["code"]) == (1, code)
    [final] = office.published()
    assert sorted(path.name for path in final.iterdir()) == ["report.failed", "sales", "sync"]
    assert "before" in str(nbformat.read(final / "report.failed" / "ends.failed.ipynb", 4))
    mended.touch()
    assert office.run("run", "nightly")[0] == 0
    assert sorted(path.name for path in (final / "report").iterdir()) == ["ends.ipynb", "half"]


def test_a_database_that_is_away_at_the_start_is_told_at_once(office):
    with scripted(Answer(200)) as server:
        hook = {"TOOLKIT_WEBHOOK_URL": server.url, "TOOLKIT_WEBHOOK_SECRET": "geheim"}
        away = {"DATABASE_URL": "postgresql://127.0.0.1:9/x", **hook}
        status, told, _ = office.run("run", "nightly", "--json", **away)
    assert (status, told["code"]) == (1, "DATABASE_UNAVAILABLE")
    [notice] = [json.loads(sent.body) for sent in server.requests]
    assert (notice["kind"], notice["code"]) == ("failed", "DATABASE_UNAVAILABLE")
    assert office.run("run", "nightly")[0] == 0


def test_missed_dates_are_announced_once_and_the_last_one_is_caught_up_with(office, database):
    office.write(JOB + AUDIT, more="notify.findings = 0")
    office.run("missed")
    execute(database, "UPDATE audit.job_schedules SET watched_until = now() - interval '5 days'")
    reading = database.engine.url.update_query_dict({"options": "-cdefault_transaction_read_only=on"})
    status, told, _ = office.run("missed", DATABASE_URL=reading.render_as_string(hide_password=False))
    assert (status, told) == (1, "")  # and not that no date was missed
    settings = {"TOOLKIT_WEBHOOK_SECRET": "geheim", "TOOLKIT_LANGUAGE": "pt-BR"}
    with scripted(Answer(500)) as server:
        status, told, log = office.run("missed", "--json", TOOLKIT_WEBHOOK_URL=server.url, **settings)
    assert (status, len(told["missed"])) == (3, 3)
    assert "could not be delivered, and is tried again" in log
    with scripted(Answer(200)) as server:
        assert office.run("run", "nightly", TOOLKIT_WEBHOOK_URL=server.url, **settings)[0] == 0
    missed, attention = (json.loads(sent.body) for sent in server.requests)
    assert (missed["kind"], attention["kind"], attention["open"]) == ("missed", "attention", 2)
    assert "não foi iniciada" in missed["subject"]
    assert office.run("missed")[0] == 0


@pytest.mark.parametrize(
    ("error", "told_of"),
    [(KeyError("390.533.447-05"), "KeyError"), (OSError(30, "no", "390.533.447-05"), "Read-only file system")],
)
def test_an_unknown_error_is_told_by_its_kind_only(error, told_of, office, monkeypatch):
    def fails(*_):
        raise error

    monkeypatch.setattr(CommandLine, "run", fails)
    status, told, log = office.run("run", "nightly", "--json")
    assert (status, told["code"]) == (1, "UNEXPECTED")
    assert told_of in told["reason"]
    assert "390" not in log


def test_a_signal_that_stops_an_audit_in_the_middle_has_its_code(office, monkeypatch):
    def judges(*_):
        Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
        duckdb.sql("SELECT count(*) FROM range(1000000000000)").fetchall()

    monkeypatch.setattr(CommandLine, "run", judges)
    status, told, _ = office.run("run", "nightly", "--json")
    assert (status, told["code"]) == (1, "STOPPED")


@contextmanager
def small_disk(folder):
    """A disk of 1 MB at ``folder``; skips the test where that cannot be had."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)]
    if os.geteuid() or shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("only root can mount a small disk, and not on every machine")
    try:
        yield
    finally:
        embedded.stop(folder)
        wait_until(lambda: subprocess.run(["umount", folder], capture_output=True).returncode == 0)


def fill_up(filler):
    """Write into a file until its disk is full."""
    with pytest.raises(OSError, match="No space"), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def test_a_full_disk_has_its_code_and_the_next_start_mends_it(office, tmp_path):
    with small_disk(tmp_path / "out"):
        filler = tmp_path / "out" / "filler"
        fill_up(filler)
        status, told, _ = office.run("run", "nightly", "--json")
        assert (status, told["code"]) == (1, "DISK_FULL")
        filler.unlink()
        assert office.run("run", "nightly")[0] == 0
        assert (office.out / "latest" / "report" / "manifest.json").exists()


def test_the_packaged_jobs_do_their_work_on_embedded_services_as_they_are(run, own_home, tmp_path):
    environ = {"TOOLKIT_HOME": str(own_home)}
    run("job", "check", within=environ)
    nightly = ["job", "run", "nightly", "--late", "--json"]
    told = run(*nightly, ends=1, within=environ).told
    assert (told["code"], "there is no sale" in told["reason"]) == ("NOTHING_EVALUATED", True)

    sales = tmp_path / "sales.csv"
    write_sales(make_samples().sales[:3], sales, {})
    run("sales", "load", sales, within=environ)
    printed = run(*nightly, within=environ)
    assert json.loads(printed.out)["counts"]["report"]["sales"] == 3
    assert printed.err.count("done before") == 3  # sync, verify and check
    monthly = ["job", "run", "monthly", "--late", "--json"]
    assert run(*monthly, ends=1, within=environ).told["code"] == "NOTHING_EVALUATED"  # nothing was seen last month
    database = Database(embedded.database_url(own_home))
    earlier = "UPDATE audit.sale_observations SET seen_at = seen_at - interval '60 days'"
    unguarded(database, "sale_observations", earlier)
    database.dispose()
    date = run(*monthly, within=environ).told["logicalDate"]
    seal = run("job", "history", f"monthly@{date}", "--json", within=environ).told["seal"]
    [custody] = (own_home / "jobs" / "monthly" / "latest" / "custody").iterdir()
    assert b64encode(bytes.fromhex(seal)).decode() in (custody / "checkpoint").read_text()
    assert (custody / "tile" / "entries").is_dir()
    for folder in ("nightly", "monthly"):
        run("verify", own_home / "jobs" / folder / "latest" / "report", within=environ)
