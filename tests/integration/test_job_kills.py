"""Starts of a job that are killed while another one waits: one effect for the slot, nothing half published."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path

import psutil
import pytest

from tests.job_runner import SLOT, STEPS, ZONE, check_done_once, effects, hold, holder, start_process, victim_job
from tests.made_notebooks import write_notebook
from tests.waiting import PATIENCE, wait_until
from toolkit.domain.jobs.outcomes import FailureCode, RunStatus
from toolkit.entrypoints.jobs.folders import JobFolder
from toolkit.entrypoints.jobs.holding import Holding, Stops
from toolkit.entrypoints.stop_signals import stop_signals_handled
from toolkit.errors import DatabaseUnavailable
from toolkit.operations.jobs.history import recent_runs
from toolkit.storage import embedded, schema
from toolkit.storage.database import Database


@pytest.fixture
def environ(database: Database) -> dict[str, str]:
    return {"DATABASE_URL": database.engine.url.render_as_string(hide_password=False)}


def ended(process: BaseProcess) -> int | None:
    process.join(PATIENCE)
    return process.exitcode


def test_of_two_starts_at_once_one_does_the_steps(
    database: Database, environ: dict[str, str], tmp_path: Path
) -> None:
    starts = [start_process(tmp_path, environ) for _ in range(2)]
    assert sorted(ended(start) or 0 for start in starts) == [0, 10]
    assert effects(tmp_path) == list(STEPS)
    check_done_once(database, tmp_path)


@pytest.mark.parametrize("step", STEPS)
def test_a_start_that_is_killed_is_gone_on_with_by_the_one_that_waits(
    step: str, database: Database, environ: dict[str, str], tmp_path: Path
) -> None:
    held = hold(tmp_path, step)
    starts = [start_process(tmp_path, environ) for _ in range(2)]
    wait_until((tmp_path / "holds").exists)
    killed = holder(database)
    os.kill(killed, signal.SIGKILL)
    held.unlink()
    for start in starts:
        assert ended(start) == (-signal.SIGKILL if start.pid == killed else 0)
    check_done_once(database, tmp_path)
    # Only a step that was cut off before it was noted is done again.
    assert len(effects(tmp_path)) <= len(STEPS) + 1


def test_a_signal_ends_a_run_with_its_code_and_the_next_start_goes_on(
    database: Database, environ: dict[str, str], tmp_path: Path
) -> None:
    held = hold(tmp_path, "two")
    start = start_process(tmp_path, environ)
    wait_until((tmp_path / "holds").exists)
    start.terminate()
    assert ended(start) == 1
    held.unlink()
    [run] = recent_runs(database)
    assert (run.status, run.failure) == (RunStatus.FAILED, "STOPPED")
    assert not JobFolder(tmp_path / "out", "victim", ZONE).final(SLOT).exists()
    assert ended(start_process(tmp_path, environ)) == 0
    check_done_once(database, tmp_path)
    assert effects(tmp_path).count("one") == 1


def test_a_kernel_does_not_outlive_the_process_that_runs_the_job(environ: dict[str, str], tmp_path: Path) -> None:
    asleep = "open('ready', 'w').close(); import time; time.sleep(600)"
    notebook = write_notebook(tmp_path / "sleep.ipynb", asleep)
    start = start_process(tmp_path, environ, victim_job(notebook))
    wait_until((tmp_path / "ready").exists)
    children = psutil.Process(start.pid).children(recursive=True)
    assert children
    start.kill()
    assert ended(start) == -signal.SIGKILL
    _, alive = psutil.wait_procs(children, timeout=PATIENCE)
    assert [each for each in alive if each.status() != psutil.STATUS_ZOMBIE] == []


def test_a_database_that_goes_away_in_the_middle_is_told_and_the_next_start_goes_on(
    own_home: Path, tmp_path: Path
) -> None:
    environ = {"DATABASE_URL": embedded.database_url(own_home)}
    database = Database(environ["DATABASE_URL"])
    schema.upgrade(database, service_tables=True)
    tmp_path.chmod(0o755)
    release = hold(tmp_path, "two")
    start = start_process(tmp_path, environ, victim_job(retries=1))
    wait_until((tmp_path / "holds").exists)
    embedded.stop(own_home)
    release.unlink()
    assert ended(start) == 1
    [kept] = (tmp_path / "out" / "victim" / "failed").glob("*/reason.json")
    assert json.loads(kept.read_text())["code"] == "DATABASE_UNAVAILABLE"
    assert not JobFolder(tmp_path / "out", "victim", ZONE).final(SLOT).exists()
    embedded.database_url(own_home)
    assert ended(start_process(tmp_path, environ)) == 0
    check_done_once(database, tmp_path)
    assert effects(tmp_path) == ["one", "two", "two", "three"]
    database.dispose()


def nobody_answers() -> bool:
    raise DatabaseUnavailable


@pytest.mark.parametrize(
    ("renew", "lease", "timeout", "code"),
    [
        (lambda: True, PATIENCE, 0.3, FailureCode.TIMED_OUT),
        (lambda: False, 8, PATIENCE, FailureCode.LEASE_LOST),  # asked after 2 s, given up after 5.6 s
        (nobody_answers, 1, PATIENCE, FailureCode.DATABASE_UNAVAILABLE),
    ],
)
def test_a_run_is_stopped_when_its_time_is_up_or_it_cannot_be_held(
    renew: Callable[[], bool], lease: float, timeout: float, code: FailureCode
) -> None:
    holding = Holding(renew, lease=timedelta(seconds=lease), timeout=timedelta(seconds=timeout))
    with stop_signals_handled(Stops()), pytest.raises(SystemExit), holding.held():
        time.sleep(PATIENCE)
    assert holding.cause is code


def test_a_holder_that_stands_still_loses_its_run_and_publishes_nothing(
    database: Database, environ: dict[str, str], tmp_path: Path
) -> None:
    asleep = start_process(tmp_path, environ)
    os.kill(holder(database), signal.SIGSTOP)
    try:
        with database.transaction() as connection:  # a minute later
            connection.exec_driver_sql("UPDATE audit.job_runs SET lease_until = now() - interval '1 second'")
        assert ended(start_process(tmp_path, environ)) == 0
    finally:
        os.kill(asleep.pid or 0, signal.SIGCONT)
    assert ended(asleep) == 1
    check_done_once(database, tmp_path)
