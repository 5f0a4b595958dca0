"""`toolkit job`: a slot is run once, whole or not at all, and people are told."""

import json
import os
import signal
from base64 import b64encode
from threading import Timer
from unittest.mock import Mock

import duckdb
import pytest

from tests.support.scripted_server import Answer, scripted
from tests.support.uploaded_sales import add_sale, execute, unguarded
from toolkit import embedded
from toolkit.cli.jobs import CommandLine
from toolkit.database.connection import Database

JOB = """
[jobs.nightly]
schedule = "0 2 * * *"
grace = "2d"
steps = [{ name = "sync", command = "bucket sync --full" }, { name = "audit", command = "audit" }]
notify.findings = 0
"""


@pytest.fixture
def job(run, database, tmp_path, monkeypatch):
    """Runs `toolkit job` in a folder with a jobs file; there is one sale."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.toml").write_text(JOB)
    add_sale(database)
    ours = {"TOOLKIT_JOBS": "jobs.toml", "TOOLKIT_JOBS_OUT": "out"}
    return lambda *words, ends=0, **given: run("job", *words, ends=ends, **ours | given)


def test_a_database_that_is_away_at_the_start_is_told_at_once(job):
    with scripted(Answer(200)) as server:
        hook = {"TOOLKIT_WEBHOOK_URL": server.url, "TOOLKIT_WEBHOOK_SECRET": "geheim"}
        away = {"DATABASE_URL": "postgresql://127.0.0.1:9/x", **hook}
        assert job("run", "nightly", "--json", ends=1, **away).told["code"] == "DATABASE_UNAVAILABLE"
    [notice] = [json.loads(sent.body) for sent in server.requests]
    assert (notice["kind"], notice["code"]) == ("failed", "DATABASE_UNAVAILABLE")
    job("run", "nightly")


def test_missed_dates_are_announced_once_and_the_last_one_is_caught_up_with(job, database):
    job("missed", ends=None)
    execute(database, "UPDATE audit.job_schedules SET watched_until = now() - interval '5 days'")
    reading = database.engine.url.update_query_dict({"options": "-cdefault_transaction_read_only=on"})
    refused = job("missed", ends=1, DATABASE_URL=reading.render_as_string(hide_password=False))
    assert refused.out == ""  # and not that no date was missed
    settings = {"TOOLKIT_WEBHOOK_SECRET": "geheim", "TOOLKIT_LANGUAGE": "pt-BR"}
    with scripted(Answer(500)) as server:
        ran = job("missed", "--json", ends=3, TOOLKIT_WEBHOOK_URL=server.url, **settings)
    assert len(ran.told["missed"]) == 3
    assert "could not be delivered, and is tried again" in ran.err
    with scripted(Answer(200)) as server:
        job("run", "nightly", TOOLKIT_WEBHOOK_URL=server.url, **settings)
    missed, attention = (json.loads(sent.body) for sent in server.requests)
    assert (missed["kind"], attention["kind"], attention["open"]) == ("missed", "attention", 1)
    assert "não foi iniciada" in missed["subject"]
    job("missed")


@pytest.mark.parametrize(
    ("error", "code", "told_of"),
    [
        (KeyError("390.533.447-05"), "UNEXPECTED", "KeyError"),
        (OSError(30, "no", "390.533.447-05"), "UNEXPECTED", "Read-only file system"),
        (OSError(28, "No space left on device", "390.533.447-05"), "DISK_FULL", "The disk is full."),
    ],
)
def test_an_error_of_the_system_is_told_by_its_kind_only(error, code, told_of, job, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(CommandLine, "run", Mock(side_effect=error))
        ran = job("run", "nightly", "--json", ends=1)
    assert ran.told["code"] == code
    assert told_of in ran.told["reason"]
    assert "390" not in ran.err
    job("run", "nightly")


def test_a_signal_that_stops_an_audit_in_the_middle_has_its_code(job, monkeypatch):
    def judges(*_):
        Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
        duckdb.sql("SELECT count(*) FROM range(1000000000000)").fetchall()

    monkeypatch.setattr(CommandLine, "run", judges)
    assert job("run", "nightly", "--json", ends=1).told["code"] == "STOPPED"


def test_the_packaged_jobs_do_their_work_on_embedded_services_as_they_are(run, own_home, tmp_path):
    environ = {"TOOLKIT_HOME": str(own_home)}
    run("job", "check", within=environ)
    nightly = ["job", "run", "nightly", "--late", "--json"]
    told = run(*nightly, ends=1, within=environ).told
    assert (told["code"], "there is no sale" in told["reason"]) == ("NOTHING_EVALUATED", True)

    run("sample", "--out", tmp_path, within=environ)
    run("sales", "load", tmp_path / "sales.csv", within=environ)
    printed = run(*nightly, within=environ)
    assert json.loads(printed.out)["counts"]["report"]["sales"] == 90
    assert printed.err.count("done before") == 3  # sync, verify and check
    monthly = ["job", "run", "monthly", "--late", "--json"]
    assert run(*monthly, ends=1, within=environ).told["code"] == "NOTHING_EVALUATED"  # nothing was seen last month
    earlier = "UPDATE audit.sale_observations SET seen_at = seen_at - interval '60 days'"
    with Database(embedded.database_url(own_home)) as database:
        unguarded(database, "sale_observations", earlier)
    date = run(*monthly, within=environ).told["logicalDate"]
    ran = run("job", "history", f"monthly@{date}", "--json", within=environ).told
    assert ran["logicalDate"] == date
    seal = ran["seal"]
    [custody] = (own_home / "jobs" / "monthly" / "latest" / "custody").iterdir()
    assert b64encode(bytes.fromhex(seal)).decode() in (custody / "checkpoint").read_text()
    assert (custody / "tile" / "entries").is_dir()
    for folder in ("nightly", "monthly"):
        run("verify", own_home / "jobs" / folder / "latest" / "report", within=environ)
