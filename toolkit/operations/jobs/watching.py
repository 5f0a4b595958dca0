"""Note slots that nobody started, and runs whose process died, each once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Row
from sqlalchemy.dialects.postgresql import insert

from toolkit.domain.jobs.definitions import Job
from toolkit.domain.jobs.outcomes import FailureCode, RunStatus
from toolkit.operations import Clock
from toolkit.operations.jobs.notices import Notice, NoticeKind, put_notices
from toolkit.operations.jobs.processes import is_dead
from toolkit.operations.jobs.runs import failed, new_run
from toolkit.storage.database import Database
from toolkit.storage.tables import job_runs, job_schedules

Told = Callable[[str, datetime, NoticeKind, Mapping[str, Any]], Sequence[Notice]]
"""Makes the notices about a slot, one for each channel."""


@dataclass(frozen=True, slots=True)
class Watched:
    """The missed slots and lost runs of a job that had not been noted before."""

    missed: tuple[datetime, ...]
    """Slots whose window passed without a start."""
    died: tuple[datetime, ...]
    """Slots whose run was held by a process that is gone."""
    unpublished: tuple[Row[Any], ...]
    """Runs that succeeded, and whose process died before their files had their final names."""


def watch_job(database: Database, job: Job, clock: Clock, told: Told) -> Watched:
    """Note what happened to ``job`` while nobody looked, with the notices about it.

    A job is watched from the moment at which it was first seen with its present schedule.
    """
    now = clock()
    with database.transaction() as connection:
        since = _watched_until(connection, job, now)
        missed = _note_missed(connection, job, since, now - job.late) if now - job.late > since else []
        died, unpublished = _note_died(connection, job, now)
        if missed:
            content: dict[str, Any] = {"slots": [slot.isoformat() for slot in missed]}
            put_notices(connection, told(job.name, missed[-1], NoticeKind.MISSED, content), clock)
        for slot in died:
            content = {"code": FailureCode.RUNNER_DIED}
            put_notices(connection, told(job.name, slot, NoticeKind.FAILED, content), clock)
    return Watched(tuple(missed), tuple(died), tuple(unpublished))


def _watched_until(connection: Connection, job: Job, now: datetime) -> datetime:
    """Return the time up to which slots are accounted for, and lock it until the transaction ends.

    Where that is still to come, the clock was ahead: what it called missed may still be started.
    """
    schedule = f"{job.schedule.expression} {job.schedule.zone.key}"
    row = {"job": job.name, "schedule": schedule, "watched_until": now}
    connection.execute(insert(job_schedules).values(row).on_conflict_do_nothing())
    mine = job_schedules.c.job == job.name
    found = connection.execute(sa.select(job_schedules).where(mine).with_for_update()).one()
    if found.watched_until > now:
        early = (job_runs.c.job == job.name) & (job_runs.c.slot > now)
        connection.execute(sa.delete(job_runs).where(early, job_runs.c.status == RunStatus.MISSED))
    if found.schedule != schedule or found.watched_until > now:
        connection.execute(sa.update(job_schedules).where(mine).values(row))
        return now
    until: datetime = found.watched_until
    return until


def _note_missed(connection: Connection, job: Job, since: datetime, until: datetime) -> list[datetime]:
    why = "Nobody started it within its window."
    slots = job.schedule.between(since, until)
    rows = [new_run(job, slot, status=RunStatus.MISSED, reason=why) for slot in slots]
    written = insert(job_runs).on_conflict_do_nothing().returning(job_runs.c.slot)
    noted = sorted(connection.scalars(written, rows)) if rows else []
    mine = job_schedules.c.job == job.name
    connection.execute(sa.update(job_schedules).where(mine).values(watched_until=until))
    return noted


def _note_died(connection: Connection, job: Job, now: datetime) -> tuple[list[datetime], list[Row[Any]]]:
    held = (
        sa.select(job_runs, (job_runs.c.lease_until > sa.func.clock_timestamp()).label("leased"))
        .where(job_runs.c.job == job.name, job_runs.c.status.in_([RunStatus.RUNNING, RunStatus.PUBLISHING]))
        .order_by(job_runs.c.slot)
        .with_for_update(skip_locked=True)
    )
    gone = [run for run in connection.execute(held).all() if not run.leased or is_dead(run.held_by)]
    died = [run for run in gone if run.status == RunStatus.RUNNING]
    values = failed(FailureCode.RUNNER_DIED, FailureCode.RUNNER_DIED.text, now)
    for run in died:
        connection.execute(sa.update(job_runs).where(job_runs.c.id == run.id).values(values))
    return [run.slot for run in died], [run for run in gone if run.status == RunStatus.PUBLISHING]
