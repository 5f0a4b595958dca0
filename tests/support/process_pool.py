"""Commands and starts of a job as processes of their own, from one process that has loaded what they need."""

import io
import multiprocessing
import os
import sys
import tempfile
import time
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from pkgutil import resolve_name
from zoneinfo import ZoneInfo

from tests.support.waiting import PATIENCE, wait_until
from toolkit.cli import main
from toolkit.cli.jobs import CommandLine
from toolkit.errors import DatabaseError, EmbeddedServiceError
from toolkit.jobs.definitions import Job
from toolkit.jobs.notices import NoticeSettings
from toolkit.jobs.running import JobRun, look_around, run_folder
from toolkit.jobs.runs import Outcome, RunStatus, runs_of
from toolkit.kit.services import Services

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(
    [
        "tests.support.process_pool",
        "toolkit.notebooks.running",
        "toolkit.audit.run",
        "toolkit.kit.audits",
        "toolkit.intake.clients",
    ]
)


def start_command(environ, *words):
    """The command, running; nobody reads what it prints."""
    process = FORKED.Process(target=_run, args=(dict(environ), words))
    process.start()
    return process


@contextmanager
def stalled(environ, place, *words):
    """The command while it stands still in a function, ``place``: a module, something in it, and its name.

    It is killed at the end of the block.
    """
    here, there = FORKED.Pipe()
    process = FORKED.Process(target=_run, args=(dict(environ), words, place, there))
    process.start()
    there.close()
    try:
        assert here.poll(PATIENCE)
        assert here.recv() == "stalled"
        yield
    finally:
        process.kill()
        process.join()


def _run(environ, words, place=None, told=None):
    os.environ.clear()
    os.environ.update(environ)
    tempfile.tempdir = None  # may be another one here
    if place is not None and told is not None:

        def stall(*_, **__):
            told.send("stalled")
            told.recv()

        *owner, name = place
        setattr(resolve_name(".".join(owner)), name, stall)
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        status = main(list(words), environ)
    if told is not None:
        told.send(said.getvalue())
    sys.exit(status)


DATE = datetime(2025, 3, 2, 5, 0, tzinfo=UTC)
"""Two in the morning in São Paulo."""
ZONE = ZoneInfo("America/Sao_Paulo")
STEPS = ("one", "two", "three")
SECONDS = 0.15
"""Seconds that a step takes."""


def victim_job(notebook=None, keep_days=90):
    """A job of three steps; with a notebook, that is its second step."""
    steps = [{"name": name, "command": f"mark {name} {{out}}"} for name in STEPS]
    if notebook is not None:
        steps[1] = {"name": STEPS[1], "command": f"run {notebook} --out {{out}}/executed.ipynb"}
    made = {"name": "victim", "schedule": "0 2 * * *", "keep-days": keep_days, "steps": steps}
    return Job.model_validate(made, context={"zone": ZONE})


def hold(folder, step):
    """Let this step of every start wait, half done, until the file that is returned is removed."""
    held = folder / f"hold-{step}"
    held.touch()
    return held


@dataclass(frozen=True)
class Marks:
    """Commands that leave a mark."""

    folder: Path
    date: datetime
    seconds: float = SECONDS

    def check(self, words):
        pass

    def run(self, words, environ, log):
        if words[0] == "run":
            return CommandLine().run(words, environ, log)
        _, name, out = words
        for part in ("a", "b"):
            (Path(out) / part).write_text(f"{name} by {os.getpid()}\n" * 1000)
            time.sleep(self.seconds / 2)
            if (held := self.folder / f"hold-{name}").exists():
                (self.folder / "holds").touch()
                wait_until(lambda held=held: not held.exists())
        with (self.folder / "effects").open("a") as file:
            file.write(f"{self.date} {name}\n")
        return {"marks": 2}


def effects(folder, date=DATE):
    """The steps that were done for a date, each as often as it was."""
    lines = (folder / "effects").read_text().splitlines()
    return [line.rpartition(" ")[2] for line in lines if line.startswith(f"{date} ")]


def start(folder, environ, job, date=DATE, seconds=SECONDS):
    """One start, in this process; it waits for another one."""

    def clock():
        return date + timedelta(minutes=5)

    def log(message, **_):
        print(message, file=sys.stderr, flush=True)

    notices = NoticeSettings.from_environment(environ, ZONE)
    commands, out = Marks(folder, date, seconds), folder / "out"

    def around():
        application = Services(environ)
        with suppress(DatabaseError, EmbeddedServiceError):
            look_around(application.database, {job.name: job}, out, notices, clock, log)
        application.close()

    lease = timedelta(seconds=5)
    run = JobRun(job, date, out, commands, notices, environ, clock, log, lease)
    run.check()
    around()
    ended = run.start(wait=PATIENCE)
    around()
    return ended.outcome


_STATUS = {Outcome.DONE: 0, Outcome.FAILED: 1, Outcome.DONE_BEFORE: 10}


def start_process(folder, environ, job=None, date=DATE):
    """One start, in a process of its own that works in ``folder``; its exit status tells the outcome."""
    arguments = (folder, {**os.environ, **environ}, job or victim_job(), date)
    process = FORKED.Process(target=_start_and_exit, args=arguments)
    process.start()
    return process


def _start_and_exit(folder, environ, job, date):
    os.chdir(folder)
    with Path("log").open("a") as log:
        os.dup2(log.fileno(), sys.stderr.fileno())
    sys.exit(_STATUS[start(folder, environ, job, date)])


def check_done_once(database, folder, date=DATE):
    """The history and the folder tell of one run of the date that is done, and of nothing else."""
    [run] = runs_of(database, "victim", date=date)
    assert (run.status, run.failure) == (RunStatus.DONE, None)
    assert [(step["name"], step["status"]) for step in run.steps] == [(name, "done") for name in STEPS]
    final = run_folder(folder / "out", victim_job(), date)
    files = {file["name"] for step in run.steps for file in step["files"]}
    assert {str(path.relative_to(final)) for path in final.rglob("*") if path.is_file()} == files
    assert (final.parent / "latest").resolve() == final.resolve()
    return run


def holder(database, date=DATE):
    """Wait until somebody holds the run, or it is done; how often it was started."""
    found = []

    def seen():
        found[:] = runs_of(database, "victim", date=date)
        return any(run.holder is not None or run.status == RunStatus.DONE for run in found)

    wait_until(seen)
    return int(found[0].starts)
