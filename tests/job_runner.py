"""A start of a job as a process of its own, with steps that only leave a mark; for tests that kill it.

Every step writes two files, and one line into ``effects`` when it is done.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from tests.forked import FORKED
from tests.waiting import wait_until
from toolkit.domain.jobs.definitions import Job, read_jobs
from toolkit.domain.jobs.outcomes import RunStatus
from toolkit.entrypoints.jobs.database_access import DatabaseAccess
from toolkit.entrypoints.jobs.finishing import Rounds
from toolkit.entrypoints.jobs.folders import JobFolder, holds_all
from toolkit.entrypoints.jobs.job_log import JobLog
from toolkit.entrypoints.jobs.job_settings import JobSettings
from toolkit.entrypoints.jobs.notices.notice_settings import NoticeSettings
from toolkit.entrypoints.jobs.running import JobRun, Outcome
from toolkit.entrypoints.jobs.steps import prepare
from toolkit.entrypoints.jobs.telling import Tell
from toolkit.errors import DatabaseError, EmbeddedServiceError
from toolkit.operations.jobs.history import RunRow, recent_runs, run_of_slot, steps_of
from toolkit.storage.database import Database

SLOT = datetime(2026, 3, 2, 5, 0, tzinfo=UTC)
ZONE = ZoneInfo("America/Sao_Paulo")
STEPS = ("one", "two", "three")
SECONDS = 0.15
"""Seconds that a step takes."""


def victim_job(notebook: Path | None = None, keep_days: int = 90, retries: int = 6) -> Job:
    """A job of three steps, patient where something is away; with a notebook, that is its second step."""
    steps: list[dict[str, Any]] = [
        {"name": name, "command": f"mark {name}", "parameters": {"out": "{out}"}} for name in STEPS
    ]
    if notebook is not None:
        steps[1] = {"name": STEPS[1], "notebook": str(notebook)}
    limits = {"late": "6h", "retries": retries, "backoff": "1s", "keep-days": keep_days}
    return read_jobs({"jobs": {"victim": {"schedule": "0 2 * * *", **limits, "steps": steps}}}, ZONE)["victim"]


def hold(folder: Path, step: str) -> Path:
    """Let this step of every start wait, half done, until the file that is returned is removed."""
    held = folder / f"hold-{step}"
    held.touch()
    return held


@dataclass(frozen=True)
class Marks:
    """Commands that leave a mark."""

    folder: Path
    seconds: float = SECONDS

    def arguments(self, words: tuple[str, ...], parameters: Mapping[str, Any]) -> list[str]:
        return [*words, str(parameters["out"])]

    def run(self, arguments: list[str], environ: Mapping[str, str], log: JobLog) -> Mapping[str, Any]:
        _, name, out = arguments
        for part in ("a", "b"):
            (Path(out) / part).write_text(f"{name} by {os.getpid()}\n" * 1000)
            time.sleep(self.seconds / 2)
            if (held := self.folder / f"hold-{name}").exists():
                (self.folder / "holds").touch()
                wait_until(lambda held=held: not held.exists())  # type: ignore[misc]
        with (self.folder / "effects").open("a") as file:
            file.write(f"{log.slot} {name}\n")
        return {"marks": 2}


def effects(folder: Path, slot: datetime = SLOT) -> list[str]:
    """The steps that were done for a slot, each as often as it was."""
    lines = (folder / "effects").read_text().splitlines()
    return [line.rpartition(" ")[2] for line in lines if line.startswith(f"{slot} ")]


def start(
    folder: Path,
    environ: Mapping[str, str],
    *,
    slot: datetime = SLOT,
    job: Job | None = None,
    seconds: float = SECONDS,
    log: JobLog | None = None,
) -> Outcome:
    """One start, in this process; it waits for another one."""
    job = job or victim_job()
    commands, job_folder = Marks(folder, seconds), JobFolder(folder / "out", job.name, ZONE)

    def clock() -> datetime:
        return slot + timedelta(minutes=5)

    steps = prepare(job, slot, folder, job_folder.final(slot), commands)
    tell = Tell(NoticeSettings.from_environment(environ), ZONE)
    log = log or JobLog(clock, job=job.name, slot=slot)
    rounds = Rounds({job.name: job}, JobSettings(folder, folder / "out", None), tell, clock, log)
    access = DatabaseAccess(environ)
    lease = timedelta(seconds=8)
    try:
        with suppress(DatabaseError, EmbeddedServiceError):
            access.once(rounds.look)
        run = JobRun(job, slot, steps, access, job_folder, commands, environ, clock, log, tell, lease=lease)
        ended = run.start(wait=120)
        with suppress(DatabaseError, EmbeddedServiceError):
            access.once(rounds.finish)
        return ended.outcome
    finally:
        access.close()


_STATUS = {Outcome.DONE: 0, Outcome.FAILED: 1, Outcome.DONE_BEFORE: 10}


def start_process(
    folder: Path, environ: Mapping[str, str], job: Job | None = None, slot: datetime = SLOT
) -> BaseProcess:
    """One start, in a process of its own that works in ``folder``; its exit status tells the outcome."""
    arguments = (folder, {**os.environ, **environ}, job or victim_job(), slot)
    process = FORKED.Process(target=_start_and_exit, args=arguments)
    process.start()
    return process


def _start_and_exit(folder: Path, environ: dict[str, str], job: Job, slot: datetime) -> None:
    os.chdir(folder)
    with Path("log").open("a") as log:
        os.dup2(log.fileno(), sys.stderr.fileno())
    sys.exit(_STATUS[start(folder, environ, job=job, slot=slot)])


def check_done_once(database: Database, folder: Path, slot: datetime = SLOT) -> RunRow:
    """The history and the folder tell of one run of the slot that is done, and of nothing else."""
    [run] = (run for run in recent_runs(database, limit=400) if run.slot == slot)
    assert (run.status, run.failure) == (RunStatus.DONE, None)
    assert [step.name for step in steps_of(database, run.id)] == list(STEPS)
    check_not_half_published(database, folder, slot)
    place = JobFolder(folder / "out", "victim", ZONE)
    assert not list(place.path.glob(".staged/*"))
    assert (place.path / "latest").resolve() == place.final(slot).resolve()
    return run


def check_not_half_published(database: Database, folder: Path, slot: datetime = SLOT) -> None:
    """Under its final name is nothing of the run, or all that the history says, and that only after it says so."""
    final = JobFolder(folder / "out", "victim", ZONE).final(slot)
    if not final.exists():
        return
    run = run_of_slot(database, "victim", slot)
    assert run is not None
    assert run.status in {RunStatus.PUBLISHING, RunStatus.DONE}
    assert holds_all(final, run.files)
    assert {file["name"].partition("/")[0] for file in run.files} == {path.name for path in final.iterdir()}
    assert {path.name for path in final.iterdir()} == set(STEPS)


def holder(database: Database, slot: datetime = SLOT) -> int:
    """The process that holds the run, as soon as there is one; 0 where it is done already."""
    found: list[RunRow | None] = []

    def seen() -> bool:
        found.append(run_of_slot(database, "victim", slot))
        return found[-1] is not None and (found[-1].held_by is not None or found[-1].status == RunStatus.DONE)

    wait_until(seen)
    return int(((found[-1] and found[-1].held_by) or {"pid": 0})["pid"])
