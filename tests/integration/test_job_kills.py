"""Starts of a job that are killed: one effect for the logical date, nothing half published."""

import os
import signal
import time
from datetime import timedelta

import psutil
import pytest

from tests.support.job_runner import (
    DATE,
    STEPS,
    ZONE,
    Marks,
    check_done_once,
    effects,
    hold,
    holder,
    start,
    start_process,
    victim_job,
)
from tests.support.notebook_files import write_notebook
from tests.support.uploaded_sales import execute
from tests.support.waiting import PATIENCE, wait_until
from toolkit import embedded
from toolkit.database import schema
from toolkit.database.connection import Database
from toolkit.errors import DatabaseUnavailable, LeaseLost
from toolkit.jobs.definitions import Step
from toolkit.jobs.notices import NoticeSettings
from toolkit.jobs.running import JobRun, LeaseHolder, run_folder
from toolkit.jobs.runs import Claim, Outcome, RunStatus, runs_of
from toolkit.kit.process import stop_signals_handled


@pytest.fixture
def environ(database):
    return {"DATABASE_URL": database.engine.url.render_as_string(hide_password=False)}


def ended(process):
    process.join(PATIENCE)
    return process.exitcode


def final(folder):
    return run_folder(folder / "out", victim_job(), DATE)


def test_a_start_that_waits_goes_on_after_the_steps_that_a_killed_one_did(database, environ, tmp_path):
    held = hold(tmp_path, "two")
    first = start_process(tmp_path, environ)
    wait_until((tmp_path / "holds").exists)
    second = start_process(tmp_path, environ)
    first.kill()
    assert ended(first) == -signal.SIGKILL
    held.unlink()
    assert not (final(tmp_path) / "two").exists()
    assert not final(tmp_path).with_name("latest").exists()
    assert ended(second) == 0
    assert check_done_once(database, tmp_path).starts == 2
    assert effects(tmp_path) == list(STEPS)


def test_a_start_that_is_killed_between_names_and_history_is_mended(database, environ, tmp_path):
    assert ended(start_process(tmp_path, environ)) == 0
    # As if the commits had been lost.
    execute(database, "UPDATE audit.job_runs SET status = 'running', lease_until = now(), steps = steps - 2")
    assert ended(start_process(tmp_path, environ)) == 0
    check_done_once(database, tmp_path)
    assert effects(tmp_path) == [*STEPS, "three"]


def test_a_signal_ends_a_run_with_its_code_and_the_next_start_goes_on(database, environ, tmp_path):
    held = hold(tmp_path, "two")
    start = start_process(tmp_path, environ)
    wait_until((tmp_path / "holds").exists)
    start.terminate()
    assert ended(start) == 1
    held.unlink()
    [run] = runs_of(database)
    assert (run.status, run.failure, run.steps[-1]["name"]) == (RunStatus.FAILED, "STOPPED", "two")
    assert not (final(tmp_path) / "two").exists()
    assert not final(tmp_path).with_name("latest").exists()
    assert ended(start_process(tmp_path, environ)) == 0
    check_done_once(database, tmp_path)
    assert effects(tmp_path) == list(STEPS)


def test_what_follows_a_changed_step_is_done_again(database, environ, tmp_path):
    job = victim_job()
    one, two, three = job.steps
    failing = job.model_copy(update={"steps": (one, two, Step(name="three", command="fail"))})
    changed = job.model_copy(update={"steps": (Step(name="one", command="other one {out}"), two, three)})
    assert start(tmp_path, environ, failing, seconds=0) is Outcome.FAILED
    assert start(tmp_path, environ, changed, seconds=0) is Outcome.DONE
    assert effects(tmp_path) == ["one", "two", "one", "two", "three"]
    check_done_once(database, tmp_path)


def test_a_kernel_does_not_outlive_the_process_that_runs_the_job(environ, tmp_path):
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


def test_a_database_that_goes_away_in_the_middle_is_told_and_the_next_start_goes_on(own_home, tmp_path):
    environ = {"DATABASE_URL": embedded.database_url(own_home)}
    database = Database(environ["DATABASE_URL"])
    schema.upgrade(database, service_tables=True)
    tmp_path.chmod(0o755)
    release = hold(tmp_path, "two")
    start = start_process(tmp_path, environ)
    wait_until((tmp_path / "holds").exists)
    embedded.stop(own_home)
    release.unlink()
    assert ended(start) == 1
    assert "DATABASE_UNAVAILABLE" in (tmp_path / "log").read_text()
    assert not (final(tmp_path) / "two").exists()
    assert not final(tmp_path).with_name("latest").exists()
    embedded.database_url(own_home)
    assert ended(start_process(tmp_path, environ)) == 0
    check_done_once(database, tmp_path)
    assert effects(tmp_path) == ["one", "two", "two", "three"]
    database.dispose()


def renewed():
    pass


def lost():
    raise LeaseLost


def nobody_answers():
    raise DatabaseUnavailable


def interrupted(number, _frame):
    raise SystemExit(number)


@pytest.mark.parametrize(
    ("renew", "lease", "timeout", "code"),
    [
        (renewed, PATIENCE, 0.3, "TIMED_OUT"),
        (lost, 2, PATIENCE, "LEASE_LOST"),
        (nobody_answers, 5, PATIENCE, "DATABASE_UNAVAILABLE"),
    ],
)
def test_a_run_is_stopped_when_its_time_is_up_or_it_cannot_be_held(renew, lease, timeout, code):
    holder, began = LeaseHolder(renew, timedelta(seconds=lease), timedelta(seconds=timeout)), time.monotonic()
    with stop_signals_handled(interrupted), pytest.raises(SystemExit), holder.held():
        time.sleep(PATIENCE)
    assert holder.cause == code
    assert time.monotonic() - began < lease  # before another start may take the run


def test_a_holder_that_stands_still_loses_its_run_and_publishes_nothing(database, environ, tmp_path):
    held = hold(tmp_path, "two")
    asleep = start_process(tmp_path, environ)
    wait_until((tmp_path / "holds").exists)
    holder(database)
    os.kill(asleep.pid or 0, signal.SIGSTOP)
    held.unlink()
    try:
        execute(database, "UPDATE audit.job_runs SET lease_until = now() - interval '1 second'")  # a minute later
        assert ended(start_process(tmp_path, environ)) == 0
    finally:
        os.kill(asleep.pid or 0, signal.SIGCONT)
    assert ended(asleep) == 1
    check_done_once(database, tmp_path)


def test_a_start_that_is_stopped_while_it_waits_leaves_the_run_of_another_one_as_it_is(
    database, environ, tmp_path
):
    assert start(tmp_path, environ, victim_job(), seconds=0) is Outcome.DONE
    marks, notices = Marks(tmp_path, DATE), NoticeSettings.from_environment({}, ZONE)
    waits = JobRun(victim_job(), DATE, tmp_path, marks, notices, environ, lambda: DATE, lambda *_, **__: None)
    found = Claim(Outcome.RUNNING, *runs_of(database))  # as it was a moment ago
    assert waits._fail(found, "STOPPED", "The run was stopped by a signal.").code == "STOPPED"
    check_done_once(database, tmp_path)


def test_files_are_deleted_after_their_days_and_the_history_keeps_every_entry(database, environ, tmp_path):
    job = victim_job(keep_days=4)
    for night in range(6):
        assert start(tmp_path, environ, job, DATE + timedelta(days=night), seconds=0) is Outcome.DONE
    runs = runs_of(database)
    assert len(runs) == 6
    out = tmp_path / "out"
    left = sorted(path.name for path in (out / "victim").glob("20*"))
    assert left == sorted(run_folder(out, job, run.logical_date).name for run in runs[:4])
    assert (out / "victim" / "latest").resolve().name == left[-1]
    [first] = runs_of(database, "victim", date=DATE)
    assert first.steps[0]["counts"] == {"marks": 2}
