"""A start of a job as a process of its own, with steps that only leave a mark; for tests that kill it.

Every step writes two files, and one line into ``effects`` when it is done.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from toolkit.domain.jobs.definitions import Job, read_jobs
from toolkit.entrypoints.jobs.database_access import DatabaseAccess
from toolkit.entrypoints.jobs.folders import JobFolder
from toolkit.entrypoints.jobs.job_log import JobLog
from toolkit.entrypoints.jobs.notices.notice_settings import NoticeSettings
from toolkit.entrypoints.jobs.running import JobRun, Outcome
from toolkit.entrypoints.jobs.steps import prepare
from toolkit.entrypoints.jobs.telling import Tell

SLOT = datetime(2026, 3, 2, 5, 0, tzinfo=UTC)
ZONE = ZoneInfo("America/Sao_Paulo")
STEPS = ("one", "two", "three")
SECONDS = 0.15
"""How long a step takes."""


def victim_job() -> Job:
    """A job of three steps, patient where the database is away."""
    steps = [{"name": name, "command": f"mark {name}", "parameters": {"out": "{out}"}} for name in STEPS]
    table = {"schedule": "0 2 * * *", "late": "6h", "retries": 6, "backoff": "1s", "steps": steps}
    return read_jobs({"jobs": {"victim": table}}, ZONE)["victim"]


class Marks:
    """Commands that leave a mark."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def arguments(self, words: tuple[str, ...], parameters: Mapping[str, Any]) -> list[str]:
        return [*words, str(parameters["out"])]

    def run(self, arguments: list[str], environ: Mapping[str, str], log: JobLog) -> Mapping[str, Any]:
        _, name, out = arguments
        for part in ("a", "b"):
            (Path(out) / part).write_text(f"{name} by {os.getpid()}\n" * 1000)
            time.sleep(SECONDS / 2)
        with (self._folder / "effects").open("a") as file:
            file.write(f"{name}\n")
        return {"marks": 2}


def clock() -> datetime:
    return SLOT + timedelta(minutes=5)


def start(folder: Path, environ: Mapping[str, str], *, wait: float = 60) -> Outcome:
    """One start, in this process."""
    job = victim_job()
    commands, job_folder = Marks(folder), JobFolder(folder / "out", job.name, ZONE)
    log = JobLog(clock, job=job.name, slot=SLOT)
    steps = prepare(job, SLOT, folder, job_folder.final(SLOT), commands)
    tell = Tell(NoticeSettings.from_environment(environ), ZONE)
    access = DatabaseAccess(environ)
    try:
        run = JobRun(
            job, SLOT, steps, access, job_folder, commands, environ, clock, log, tell, lease=timedelta(seconds=8)
        )
        return run.start(wait=wait).outcome
    finally:
        access.close()


_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["tests.job_runner"])  # loaded once, so that a start takes little time
_STATUS = {Outcome.DONE: 0, Outcome.FAILED: 1, Outcome.DONE_BEFORE: 10}


def start_process(folder: Path, environ: Mapping[str, str]) -> BaseProcess:
    """One start, in a process of its own; its exit status tells the outcome."""
    process = _SERVER.Process(target=_start_and_exit, args=(folder, {**os.environ, **environ}))
    process.start()
    return process


def _start_and_exit(folder: Path, environ: dict[str, str]) -> None:
    sys.exit(_STATUS[start(folder, environ)])
