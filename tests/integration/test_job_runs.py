"""The run of a logical date is one row, whoever starts it, and one effect, whoever is killed."""

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from pathlib import Path
from unittest.mock import Mock
from zoneinfo import ZoneInfo

import psutil
import pytest

from tests.support.notebook_files import write_notebook
from tests.support.process_pool import FORKED
from tests.support.uploaded_sales import execute
from tests.support.waiting import PATIENCE, sessions_waiting, wait_until
from toolkit import embedded
from toolkit.cli.jobs import CommandLine
from toolkit.database import schema
from toolkit.database.connection import Database
from toolkit.errors import DatabaseError, DatabaseUnavailable, LeaseLost
from toolkit.jobs.definitions import Job, Step
from toolkit.jobs.notices import NoticeKind, NoticeSettings, deliver_notices, notices_of, put_notices
from toolkit.jobs.running import JobRun, LeaseHolder, run_folder
from toolkit.jobs.runs import Outcome, RunStatus, ended, holding, renew_lease, runs_of, take_run, watch_job
from toolkit.kit.process import stop_signals_handled
from toolkit.kit.services import Services
from toolkit.language import ENGLISH

DATE = datetime(2025, 3, 2, 5, 0, tzinfo=UTC)
"""Two in the morning in São Paulo."""
ZONE = ZoneInfo("America/Sao_Paulo")
STEPS = ("one", "two", "three")
SECONDS = 0.15
"""Seconds that a step takes."""
NOTICES = NoticeSettings(ENGLISH, ZONE, host="127.0.0.1", port=9)


def victim_job(notebook=None, keep_days=90, schedule="0 2 * * *"):
    """A job of three steps; with a notebook, that is its second step."""
    steps = [{"name": name, "command": f"mark {name} {{out}}"} for name in STEPS]
    if notebook is not None:
        steps[1] = {"name": STEPS[1], "command": f"run {notebook} --out {{out}}/executed.ipynb"}
    made = {"name": "victim", "schedule": schedule, "keep-days": keep_days, "steps": steps}
    return Job.model_validate(made, context={"zone": ZONE})


@pytest.fixture
def job():
    return victim_job()


@pytest.fixture
def night(clock):
    clock.now = DATE + timedelta(minutes=5)
    return clock


def told(kind):
    return NOTICES.notices("victim", DATE, kind, {})


def take(database, job, date=DATE, **given):
    """Take a run that nobody has."""
    outcome, run = take_run(database, job, date, **given)
    assert outcome is Outcome.TAKEN
    return run


def end(database, run, notices=(), status=RunStatus.DONE):
    with holding(database, run, **ended(status, database.clock())) as connection:
        put_notices(connection, notices)


def kinds(database):
    return [notice.kind for notice in notices_of(database, "victim", DATE)]


def test_of_many_starts_at_once_one_takes_the_run_and_once_it_is_done_nobody(database, job, night):
    with ThreadPoolExecutor(6) as pool:
        starts = sorted(pool.map(lambda _: take_run(database, job, DATE), range(6)), key=itemgetter(0))
    assert [outcome for outcome, _ in starts] == [Outcome.RUNNING] * 5 + [Outcome.TAKEN]
    assert len(runs_of(database)) == 1
    end(database, starts[-1][1])
    assert take_run(database, job, DATE, late=True)[0] is Outcome.DONE_BEFORE


def test_one_of_two_starts_takes_the_run_of_a_dead_holder_who_can_renew_it_no_more(database, job, night):
    """Both look at the run at the same time: they wait for somebody else who has locked its row."""
    dead = take(database, job, lease=timedelta(0))
    with ThreadPoolExecutor(2) as pool:
        with database.transaction() as connection:
            connection.exec_driver_sql("SELECT 1 FROM audit.job_runs FOR UPDATE")
            starts = [pool.submit(take_run, database, job, DATE) for _ in range(2)]
            wait_until(lambda: sessions_waiting(database) == 2)
        assert sorted(start.result()[0] for start in starts) == [Outcome.RUNNING, Outcome.TAKEN]
    with pytest.raises(LeaseLost):
        renew_lease(database, dead, timedelta(minutes=1))


def missed(database, job):
    return watch_job(database, job, NOTICES)[0]


def test_a_date_that_nobody_started_is_noted_and_told_once(database, job, night):
    assert missed(database, job) == []
    night.now = DATE + timedelta(days=3, hours=7)
    dates = [DATE + timedelta(days=days) for days in (1, 2, 3)]
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: missed(database, job), range(3)))
    assert sorted(found) == [[], [], dates]
    [notice] = notices_of(database, "victim", dates[-1])
    assert (notice.kind, len(notice.content["dates"])) == ("missed", 3)
    assert {run.status for run in runs_of(database)} == {RunStatus.MISSED}


def test_the_last_date_is_caught_up_with_within_its_grace_time(database, job, night):
    missed(database, job)
    night.now = DATE + timedelta(days=3, hours=5)
    assert len(missed(database, job)) == 2
    latest = job.schedule.latest(night.now)
    assert latest == DATE + timedelta(days=3)
    take(database, job, latest)
    night.now = DATE + timedelta(days=4, hours=6, seconds=1)
    assert take_run(database, job, DATE + timedelta(days=4))[0] is Outcome.TOO_LATE
    assert runs_of(database, date=DATE + timedelta(days=4)) == []
    take(database, job, DATE + timedelta(days=4), late=True)
    night.now = DATE + timedelta(days=5, hours=6)  # the last moment of its grace time
    take(database, job, DATE + timedelta(days=5))


def test_a_clock_that_is_ahead_takes_no_run_misses_no_date_and_deletes_nothing(
    database, environ, job, night, tmp_path
):
    watch_job(database, job, NOTICES)
    kept = run_folder(tmp_path / "out", job, DATE)
    kept.mkdir(parents=True)
    night.now = datetime.now(UTC) + timedelta(days=800)
    runner = Marks(environ, job, night, tmp_path)
    for ahead in (lambda: take_run(database, job, night.now), runner.watch):
        with pytest.raises(DatabaseError, match="Set it right"):
            ahead()
    runner.kit.close()
    assert (runs_of(database), kept.exists()) == ([], True)


def test_a_clock_that_went_back_for_a_while_makes_no_dates_of_the_past_missed(database, job, night):
    missed(database, job)
    take(database, job)
    for now in (DATE - timedelta(days=900), DATE + timedelta(days=1, hours=7)):
        night.now = now
        assert missed(database, job) == [DATE + timedelta(days=1)] * (now > DATE)
        assert len(missed(database, job.model_copy(update={"name": "first"}))) == job.keep_days * (now > DATE)


def test_another_schedule_makes_no_dates_of_the_past_missed(database, job, night):
    missed(database, job)
    night.now += timedelta(days=3)
    assert missed(database, victim_job(schedule="0 1 * * *")) == []


def test_a_run_whose_process_died_is_told_once_as_failed_and_can_be_gone_on_with(database, job, night):
    take(database, job, lease=timedelta(0))
    assert [watch_job(database, job, NOTICES)[1] for _ in range(2)] == [[DATE], []]
    [run] = runs_of(database)
    assert (run.status, run.failure) == (RunStatus.FAILED, "RUNNER_DIED")
    [notice] = notices_of(database, "victim", DATE)
    assert notice.content["code"] == "RUNNER_DIED"
    take(database, job)


def test_all_is_well_again_is_told_once_after_bad_news_only(database, job, night):
    end(database, take(database, job), told(NoticeKind.RECOVERED))
    assert kinds(database) == []
    night.now += timedelta(days=1)
    run = take(database, job, DATE + timedelta(days=1))
    end(database, run, told(NoticeKind.FAILED), RunStatus.FAILED)
    for _ in range(2):
        night.now += timedelta(days=1)
        again = take(database, job, night.now)
        end(database, again, told(NoticeKind.RECOVERED))
    assert kinds(database) == ["failed", "recovered"]


class Marks(CommandLine):
    """Commands that leave a mark; those of this job alone."""

    def __init__(self, environ, job, clock, folder, seconds=SECONDS):
        super().__init__(Services(environ, clock=clock))
        self.jobs, self.out, self.folder, self.seconds = {job.name: job}, folder / "out", folder, seconds

    def check(self, words):
        pass

    def run(self, words, environ, log):
        if words[0] == "run":
            return super().run(words, environ, log)
        _, name, out = words
        for part in ("a", "b"):
            (Path(out) / part).write_text(f"{name} by {os.getpid()}\n" * 1000)
            time.sleep(self.seconds / 2)
            if (held := self.folder / f"hold-{name}").exists():
                (self.folder / "holds").touch()
                wait_until(lambda held=held: not held.exists())
        with (self.folder / "effects").open("a") as file:
            file.write(f"{name}\n")
        return {"marks": 2}


def start(folder, environ, job, date=DATE, seconds=SECONDS):
    """One start, in this process; it waits for another one."""

    def clock():
        return date + timedelta(minutes=5)

    runner = Marks(environ, job, clock, folder, seconds)
    run = JobRun(runner, job, date, timedelta(seconds=5))
    run.check()
    runner.look_around()
    ended = run.start(wait=PATIENCE)
    runner.look_around()
    runner.kit.close()
    return ended.outcome


def start_process(folder, environ, job=None):
    """One start, in a process of its own that works in ``folder``; its exit status tells whether it is done."""
    arguments = (folder, {**os.environ, **environ}, job or victim_job())
    process = FORKED.Process(target=_start_and_exit, args=arguments)
    process.start()
    return process


def _start_and_exit(folder, environ, job):
    os.chdir(folder)
    with Path("log").open("a") as log:
        os.dup2(log.fileno(), sys.stderr.fileno())
    sys.exit(start(folder, environ, job) is not Outcome.DONE)


def half_done(folder, environ):
    """A start that waits in the middle of its second step, and the file that holds it there."""
    (held := folder / "hold-two").touch()
    process = start_process(folder, environ)
    wait_until((folder / "holds").exists)
    return process, held


def published(folder):
    """Tell whether the second step, or the whole run, stands where others look for it."""
    place = run_folder(folder / "out", victim_job(), DATE)
    return (place / "two").exists() or place.with_name("latest").exists()


def check_done_once(database, folder, did=None):
    """The history and the folder tell of one run of the date, which is done; ``did`` are the steps it took."""
    [run] = runs_of(database, "victim", date=DATE)
    assert (run.status, run.failure) == (RunStatus.DONE, None)
    assert [(step["name"], step["status"]) for step in run.steps] == [(name, "done") for name in STEPS]
    place = run_folder(folder / "out", victim_job(), DATE)
    files = {file["name"] for step in run.steps for file in step["files"]}
    assert {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()} == files
    assert (place.parent / "latest").resolve() == place.resolve()
    assert did is None or tuple((folder / "effects").read_text().split()) == did
    return run


def test_a_notice_that_another_start_delivers_is_left_to_it(database, job, night, monkeypatch):
    end(database, take(database, job), told(NoticeKind.FAILED), RunStatus.FAILED)
    delivered = []

    def deliver(_, notice, id_):
        delivered.append(id_)
        deliver_notices(database, NOTICES, delivered.append)  # as another start does meanwhile

    monkeypatch.setattr(NoticeSettings, "deliver", deliver)
    deliver_notices(database, NOTICES, delivered.append)
    assert len(delivered) == 1


@pytest.fixture
def environ(database):
    return {"DATABASE_URL": database.engine.url.render_as_string(hide_password=False)}


def exit_code(process):
    process.join(PATIENCE)
    return process.exitcode


def test_a_start_that_waits_goes_on_after_the_steps_that_a_killed_one_did(database, environ, tmp_path):
    first, held = half_done(tmp_path, environ)
    second = start_process(tmp_path, environ)
    first.kill()
    assert exit_code(first) == -signal.SIGKILL
    held.unlink()
    assert not published(tmp_path)
    assert exit_code(second) == 0
    assert check_done_once(database, tmp_path, did=STEPS).starts == 2


def test_a_start_that_is_killed_between_names_and_history_is_mended(database, environ, tmp_path):
    assert exit_code(start_process(tmp_path, environ)) == 0
    # As if the commits had been lost.
    execute(database, "UPDATE audit.job_runs SET status = 'running', lease_until = now(), steps = steps - 2")
    assert exit_code(start_process(tmp_path, environ)) == 0
    check_done_once(database, tmp_path, did=(*STEPS, "three"))


def test_a_signal_ends_a_run_with_its_code_and_the_next_start_goes_on(database, environ, tmp_path):
    start, held = half_done(tmp_path, environ)
    start.terminate()
    assert exit_code(start) == 1
    held.unlink()
    [run] = runs_of(database)
    assert (run.status, run.failure, run.steps[-1]["name"]) == (RunStatus.FAILED, "STOPPED", "two")
    assert not published(tmp_path)
    assert exit_code(start_process(tmp_path, environ)) == 0
    check_done_once(database, tmp_path, did=STEPS)


def test_what_follows_a_changed_step_is_done_again(database, environ, tmp_path):
    job = victim_job()
    one, two, three = job.steps
    failing = job.model_copy(update={"steps": (one, two, Step(name="three", command="fail"))})
    changed = job.model_copy(update={"steps": (Step(name="one", command="other one {out}"), two, three)})
    assert start(tmp_path, environ, failing, seconds=0) is Outcome.FAILED
    assert start(tmp_path, environ, changed, seconds=0) is Outcome.DONE
    check_done_once(database, tmp_path, did=("one", "two", *STEPS))


def test_a_kernel_does_not_outlive_the_process_that_runs_the_job(environ, tmp_path):
    asleep = "open('ready', 'w').close(); import time; time.sleep(600)"
    notebook = write_notebook(tmp_path / "sleep.ipynb", asleep)
    start = start_process(tmp_path, environ, victim_job(notebook))
    wait_until((tmp_path / "ready").exists)
    children = psutil.Process(start.pid).children(recursive=True)
    assert children
    start.kill()
    assert exit_code(start) == -signal.SIGKILL
    _, alive = psutil.wait_procs(children, timeout=PATIENCE)
    assert [each for each in alive if each.status() != psutil.STATUS_ZOMBIE] == []


def test_a_database_that_goes_away_in_the_middle_is_told_and_the_next_start_goes_on(own_home, tmp_path):
    environ = {"DATABASE_URL": embedded.database_url(own_home)}
    database = Database(environ["DATABASE_URL"])
    schema.upgrade(database, service_tables=True)
    tmp_path.chmod(0o755)
    start, held = half_done(tmp_path, environ)
    embedded.stop(own_home)
    held.unlink()
    assert exit_code(start) == 1
    assert "DATABASE_UNAVAILABLE" in (tmp_path / "log").read_text()
    assert not published(tmp_path)
    embedded.database_url(own_home)
    assert exit_code(start_process(tmp_path, environ)) == 0
    check_done_once(database, tmp_path, did=("one", "two", "two", "three"))
    database.dispose()


@pytest.mark.parametrize(
    ("fault", "lease", "timeout", "code"),
    [
        (None, PATIENCE, 0.3, "TIMED_OUT"),
        (LeaseLost, 2, PATIENCE, "LEASE_LOST"),
        (DatabaseUnavailable, 5, PATIENCE, "DATABASE_UNAVAILABLE"),
    ],
)
def test_a_run_is_stopped_when_its_time_is_up_or_it_cannot_be_held(fault, lease, timeout, code):
    lasts, ends = timedelta(seconds=lease), timedelta(seconds=timeout)
    holder, began = LeaseHolder(Mock(side_effect=fault), lasts, ends), time.monotonic()
    with stop_signals_handled(lambda number, _: sys.exit(number)), pytest.raises(SystemExit), holder.held():
        time.sleep(PATIENCE)
    assert holder.cause == code
    assert time.monotonic() - began < lease  # before another start may take the run


def test_a_run_that_ended_is_not_stopped_by_a_renewal_that_was_under_way():
    asked, answered = threading.Event(), threading.Event()

    def renew():
        asked.set()
        answered.wait()
        raise LeaseLost

    holder, told = LeaseHolder(renew, timedelta(seconds=2), timedelta(seconds=PATIENCE)), []
    with stop_signals_handled(lambda number, _frame: told.append(number)):
        with holder.held():
            asked.wait()
        answered.set()
        time.sleep(0.5)
    assert told == []


def test_a_holder_that_stands_still_loses_its_run_and_publishes_nothing(database, environ, tmp_path):
    asleep, held = half_done(tmp_path, environ)
    os.kill(asleep.pid or 0, signal.SIGSTOP)
    held.unlink()
    try:
        execute(database, "UPDATE audit.job_runs SET lease_until = now() - interval '1 second'")  # a minute later
        assert exit_code(start_process(tmp_path, environ)) == 0
    finally:
        os.kill(asleep.pid or 0, signal.SIGCONT)
    assert exit_code(asleep) == 1
    check_done_once(database, tmp_path)


def test_a_start_that_is_stopped_while_it_waits_leaves_the_run_of_another_one_as_it_is(
    database, environ, tmp_path
):
    assert start(tmp_path, environ, victim_job(), seconds=0) is Outcome.DONE
    waits = JobRun(Marks(environ, victim_job(), lambda: DATE, tmp_path), victim_job(), DATE)
    [found] = runs_of(database)  # it was running a moment ago
    assert waits._fail(Outcome.RUNNING, found, "STOPPED", "The run was stopped by a signal.").code == "STOPPED"
    waits.runner.kit.close()
    check_done_once(database, tmp_path)


def test_files_are_deleted_after_their_days_and_the_history_keeps_every_entry(database, environ, tmp_path):
    job, out = victim_job(keep_days=4), tmp_path / "out"
    for night in range(6):
        date = DATE + timedelta(days=night)
        assert start(tmp_path, environ, job, date, seconds=0) is Outcome.DONE
        os.utime(run_folder(out, job, date), (date.timestamp(), date.timestamp()))
    runs = runs_of(database)
    assert len(runs) == 6
    left = sorted(path.name for path in (out / "victim").glob("20*"))
    assert left == sorted(run_folder(out, job, run.logical_date).name for run in runs[:4])
    assert (out / "victim" / "latest").resolve().name == left[-1]
    [first] = runs_of(database, "victim", date=DATE)
    assert first.steps[0]["counts"] == {"marks": 2}


def test_an_old_date_that_is_run_late_keeps_its_files_and_is_not_the_latest(environ, tmp_path):
    job, out = victim_job(keep_days=4), tmp_path / "out" / "victim"
    outcomes = [start(tmp_path, environ, job, date, seconds=0) for date in (DATE, DATE - timedelta(days=9), DATE)]
    assert outcomes == [Outcome.DONE, Outcome.DONE, Outcome.DONE_BEFORE]
    assert len(list(out.glob("20*"))) == 2
    assert (out / "latest").resolve() == run_folder(out.parent, job, DATE)
