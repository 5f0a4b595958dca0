"""Starts of a job that are killed while another one waits: one effect for the slot, nothing half published."""

from __future__ import annotations

import os
import random
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from tests.job_runner import SECONDS, SLOT, STEPS, ZONE, check_done_once, holder, start_process
from toolkit.domain.jobs.outcomes import RunStatus
from toolkit.entrypoints.jobs.folders import JobFolder
from toolkit.operations.jobs.history import recent_runs, steps_of
from toolkit.storage.database import Database


@pytest.fixture
def environ(database: Database) -> dict[str, str]:
    return {"DATABASE_URL": database.engine.url.render_as_string(hide_password=False)}


def ended(process: BaseProcess) -> int | None:
    process.join(120)
    return process.exitcode


def test_of_two_starts_at_once_one_does_the_steps(
    database: Database, environ: dict[str, str], tmp_path: Path
) -> None:
    starts = [start_process(tmp_path, environ) for _ in range(2)]
    assert sorted(ended(start) or 0 for start in starts) == [0, 10]
    assert (tmp_path / "effects").read_text().split() == list(STEPS)
    check_done_once(database, tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_a_start_that_is_killed_is_gone_on_with_by_the_one_that_waits(
    seed: int, database: Database, environ: dict[str, str], tmp_path: Path
) -> None:
    starts = [start_process(tmp_path, environ) for _ in range(2)]
    killed = holder(database)
    time.sleep(random.Random(seed).uniform(0, len(STEPS) * SECONDS))
    os.kill(killed, signal.SIGKILL)
    for start in starts:
        assert ended(start) == (-signal.SIGKILL if start.pid == killed else 0)
    check_done_once(database, tmp_path)
    effects = (tmp_path / "effects").read_text().split()
    assert len(effects) <= len(STEPS) + 1  # only a step that was cut off before it was noted is done again


def test_a_signal_ends_a_run_with_its_code_and_the_next_start_goes_on(
    database: Database, environ: dict[str, str], tmp_path: Path
) -> None:
    start = start_process(tmp_path, environ)
    holder(database)
    while not recent_runs(database) or not steps_of(database, recent_runs(database)[0].id):
        assert start.is_alive()
        time.sleep(0.01)
    start.terminate()
    assert ended(start) == 1
    [run] = recent_runs(database)
    assert (run.status, run.failure) == (RunStatus.FAILED, "STOPPED")
    assert not JobFolder(tmp_path / "out", "victim", ZONE).final(SLOT).exists()
    assert ended(start_process(tmp_path, environ)) == 0
    check_done_once(database, tmp_path)
    assert (tmp_path / "effects").read_text().split().count("one") == 1


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
