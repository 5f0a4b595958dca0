"""Read runs, steps and notices, for people, for metrics and for the next start."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Row

from toolkit.domain.codes import CODES, Severity
from toolkit.domain.jobs.definitions import Job
from toolkit.domain.jobs.outcomes import RunStatus
from toolkit.operations import Clock
from toolkit.storage.database import Database
from toolkit.storage.tables import bucket_syncs, finding_observations, job_notices, job_runs, job_steps

RunRow = Row[Any]
"""A run, a step or a notice as the database holds it."""

_CRITICAL: Final = [str(code) for code, meaning in CODES.items() if meaning.severity is Severity.CRITICAL]

_ENDED: Final = (RunStatus.DONE, RunStatus.FAILED, RunStatus.MISSED)

_NEWEST = (job_runs.c.slot.desc(), job_runs.c.job)


def _rows(database: Database, query: sa.Select[Any]) -> Sequence[RunRow]:
    with database.transaction() as connection:
        return connection.execute(query).all()


def recent_runs(database: Database, job: str | None = None, limit: int = 30) -> Sequence[RunRow]:
    """Return the runs of the last slots, of one job or of all, the newest first."""
    runs = sa.select(job_runs).order_by(*_NEWEST).limit(limit)
    if job is not None:
        runs = runs.where(job_runs.c.job == job)
    return _rows(database, runs)


def find_runs(database: Database, text: str) -> Sequence[RunRow]:
    """Return the runs whose id begins with ``text``."""
    runs = sa.select(job_runs).where(sa.cast(job_runs.c.id, sa.Text).startswith(text, autoescape=True))
    return _rows(database, runs.order_by(*_NEWEST).limit(2))


def run_of_slot(database: Database, job: str, slot: datetime) -> RunRow | None:
    """Return the run of one slot."""
    runs = sa.select(job_runs).where(job_runs.c.job == job, job_runs.c.slot == slot)
    return next(iter(_rows(database, runs)), None)


def steps_of(database: Database, run_id: UUID) -> Sequence[RunRow]:
    """Return the steps of a run, in their order."""
    return _rows(database, sa.select(job_steps).where(job_steps.c.run_id == run_id).order_by(job_steps.c.position))


def notices_of(database: Database, job: str, slot: datetime) -> Sequence[RunRow]:
    """Return the notices about a slot."""
    told = job_notices.c
    notices = sa.select(job_notices).where(told.job == job, told.slot == slot)
    return _rows(database, notices.order_by(told.created_at, told.id))


def last_done(database: Database, job: str, before: datetime | None = None) -> RunRow | None:
    """Return the newest run of the job that is done; ``before`` a slot, where one is named."""
    runs = sa.select(job_runs).where(job_runs.c.job == job, job_runs.c.status == RunStatus.DONE)
    if before is not None:
        runs = runs.where(job_runs.c.slot < before)
    return next(iter(_rows(database, runs.order_by(*_NEWEST).limit(1))), None)


def missed_since_success(database: Database, job: str) -> Sequence[RunRow]:
    """Return the missed slots after the last one that was done."""
    runs = job_runs.c
    done = (
        sa.select(sa.func.max(runs.slot)).where(runs.job == job, runs.status == RunStatus.DONE).scalar_subquery()
    )
    missed = sa.select(job_runs).where(runs.job == job, runs.status == RunStatus.MISSED)
    after = missed.where(sa.func.coalesce(runs.slot > done, sa.true())).order_by(runs.slot)
    return _rows(database, after)


def due_for_deletion(database: Database, job: Job, clock: Clock) -> Sequence[RunRow]:
    """Return the ended runs of slots that are older than the job keeps files, whose files were not deleted yet.

    They are so by the clock of the database as well: one that is ahead for a moment would have all files deleted.
    """
    runs, now = job_runs.c, sa.func.least(clock(), sa.func.now())
    due = sa.select(job_runs).where(
        runs.job == job.name, runs.slot < now - job.keep, runs.purged_at.is_(None), runs.status.in_(_ENDED)
    )
    return _rows(database, due.order_by(runs.slot))


def ends_of(database: Database, job: str) -> dict[str, RunRow]:
    """Return, by status, the ``number`` of a job's runs and the time at which the last of them ``ended``."""
    runs = job_runs.c
    ends = sa.select(runs.status, sa.func.max(runs.ended_at).label("ended"), sa.func.count().label("number"))
    return {row.status: row for row in _rows(database, ends.where(runs.job == job).group_by(runs.status))}


def critical_findings(database: Database, since: datetime | None) -> tuple[int, int]:
    """Count the critical findings of the last audit, and those of them that came or came back after ``since``."""
    seen = finding_observations.c
    new = sa.true() if since is None else seen.seen_at > since
    present = sa.select(sa.func.count(), sa.func.count().filter(new)).where(
        seen.gone_at.is_(None), seen.code.in_(_CRITICAL)
    )
    with database.transaction() as connection:
        row = connection.execute(present).one()
    return row[0], row[1]


def bucket_read_at(database: Database) -> datetime | None:
    """Return the time of the last reading of the bucket, on which audits rely."""
    with database.transaction() as connection:
        found: datetime | None = connection.scalar(sa.select(sa.func.max(bucket_syncs.c.finished_at)))
    return found
