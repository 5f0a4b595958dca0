"""Night after night: the disk holds what is to be kept, and the history every night."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path

from tests.job_runner import SLOT, ZONE, start, victim_job
from toolkit.entrypoints.jobs.folders import JobFolder
from toolkit.entrypoints.jobs.job_log import JobLog
from toolkit.entrypoints.jobs.running import Outcome
from toolkit.operations.jobs.history import recent_runs
from toolkit.storage.database import Database


def nights(folder: Path, environ: dict[str, str], number: int, keep_days: int) -> None:
    """Run so many nights, one after the other."""
    job, quiet = victim_job(keep_days=keep_days), JobLog(lambda: SLOT, stream=io.StringIO())
    for night in range(number):
        slot = SLOT + timedelta(days=night)
        assert start(folder, environ, slot=slot, job=job, seconds=0, log=quiet) is Outcome.DONE


def test_files_are_deleted_after_their_days_and_the_history_keeps_every_entry(
    database: Database, tmp_path: Path
) -> None:
    environ = {"DATABASE_URL": database.engine.url.render_as_string(hide_password=False)}
    nights(tmp_path, environ, number=12, keep_days=4)
    runs = recent_runs(database)
    assert len(runs) == 12
    assert [run.purged_at is None for run in runs] == [True] * 4 + [False] * 8
    assert all(len(run.files) == 6 for run in runs)
    place = JobFolder(tmp_path / "out", "victim", ZONE)
    left = sorted(path.name for path in place.path.glob("20*"))
    assert left == sorted(place.name(run.slot) for run in runs[:4])
    assert (place.path / "latest").resolve().name == left[-1]
