"""The history of jobs in the database: one row for each job and logical date, whoever starts it and however often.

A run is held by a lease in its row, which its holder renews: no lock rests on a session, so a connection pool in
between changes nothing. Leases go by the clock of the database. Whatever a start writes is written only while it
is still the holder. A start that finds a run whose holder died goes on after the steps that are done.
"""

import getpass
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection, Row
from sqlalchemy.dialects.postgresql import insert

from toolkit.contract.codes import CODES, Severity
from toolkit.contract.deadlines import Clock
from toolkit.database.connection import Database
from toolkit.database.identifiers import new_id
from toolkit.database.tables import finding_observations, job_runs, job_schedules
from toolkit.errors import LeaseLost
from toolkit.jobs.definitions import Job
from toolkit.jobs.notices import Notice, NoticeKind, put_notices

LEASE: Final = timedelta(seconds=60)
"""The time without a renewal after which a holder has lost its run."""
RunRow = Row[Any]
"""A run as the database holds it."""

RUNNER_DIED: Final = "RUNNER_DIED"
_NOW: Final = sa.func.clock_timestamp()
_LEASED: Final = (job_runs.c.lease_until > _NOW).label("leased")
_FREE: Final = {"holder": None, "lease_until": None}


class RunStatus(StrEnum):
    """The state of a run; one that is running may have died, which its lease tells."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    MISSED = "missed"


class Outcome(StrEnum):
    """The end of a start; ``TAKEN`` while it goes on."""

    TAKEN = "taken"
    DONE = "done"
    DONE_BEFORE = "done before"
    RUNNING = "running"
    TOO_LATE = "too late"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Claim:
    """The answer to a start, and the run as it was found; ``None`` where there never was one."""

    outcome: Outcome
    run: RunRow | None = None
    holder: UUID | None = None


def take_run(
    database: Database,
    job: Job,
    logical_date: datetime,
    clock: Clock,
    *,
    late: bool = False,
    lease: timedelta = LEASE,
) -> Claim:
    """Take the run, unless it is done, held by a living process, or too late; ``late`` takes it all the same."""
    holder, now = new_id(), clock()
    mine = (job_runs.c.job == job.name) & (job_runs.c.logical_date == logical_date)
    in_time = late or now <= logical_date + job.grace
    with database.transaction() as connection:
        if in_time:
            new = _new_run(job, logical_date, RunStatus.RUNNING)
            connection.execute(insert(job_runs).values(new).on_conflict_do_nothing())
        run = connection.execute(sa.select(job_runs, _LEASED).where(mine).with_for_update()).one_or_none()
        if run is None:
            return Claim(Outcome.TOO_LATE)
        if run.status == RunStatus.DONE:
            return Claim(Outcome.DONE_BEFORE, run)
        if run.status == RunStatus.RUNNING and run.leased:
            return Claim(Outcome.RUNNING, run)
        if not in_time:
            return Claim(Outcome.TOO_LATE, run)
        taken = {
            "status": RunStatus.RUNNING,
            "holder": holder,
            "lease_until": _NOW + lease,
            "starts": job_runs.c.starts + 1,
            "started_at": run.started_at or now,
            "failure": None,
            "reason": None,
            "started_by": _who(),
            "host": socket.gethostname(),
        }
        connection.execute(sa.update(job_runs).where(mine).values(taken))
        return Claim(Outcome.TAKEN, run, holder)


def _new_run(job: Job, logical_date: datetime, status: RunStatus, reason: str | None = None) -> dict[str, Any]:
    empty: dict[str, Any] = {"starts": 0, "versions": {}, "steps": []}
    return {
        "id": new_id(),
        "job": job.name,
        "logical_date": logical_date,
        "status": status,
        "reason": reason,
    } | empty


def _who() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name, as containers have
        return "unknown"


@contextmanager
def holding(database: Database, claim: Claim) -> Iterator[Connection]:
    """Open a transaction until whose end the run stays ours.

    Raises:
        LeaseLost: it is not ours any more.
    """
    assert claim.run is not None
    held = (job_runs.c.id == claim.run.id) & (job_runs.c.holder == claim.holder)
    with database.transaction() as connection:
        if connection.execute(sa.select(job_runs.c.id).where(held).with_for_update()).first() is None:
            raise LeaseLost
        yield connection


def write_run(connection: Connection, claim: Claim, values: Mapping[str, Any]) -> None:
    """Change the row of a run that is held."""
    assert claim.run is not None
    connection.execute(sa.update(job_runs).where(job_runs.c.id == claim.run.id).values(dict(values)))


def renew_lease(database: Database, claim: Claim, lease: timedelta) -> None:
    """Hold the run for another ``lease``; raises as ``holding`` does."""
    with holding(database, claim) as connection:
        write_run(connection, claim, {"lease_until": _NOW + lease})


def end_run(
    connection: Connection, claim: Claim, status: RunStatus, clock: Clock, notices: Sequence[Notice], **values: Any
) -> None:
    """End a run that is held, and write the notices about it."""
    write_run(connection, claim, {"status": status, "ended_at": clock(), **_FREE, **values})
    put_notices(connection, notices, clock)


@dataclass(frozen=True, slots=True)
class Watched:
    """What had not been noted before: dates that nobody started, and dates whose run died."""

    missed: tuple[datetime, ...]
    died: tuple[datetime, ...]


def watch_job(
    database: Database,
    job: Job,
    clock: Clock,
    told: Callable[[str, datetime, NoticeKind, Mapping[str, Any]], Sequence[Notice]],
) -> Watched:
    """Note, each once and with its notices, what happened to ``job`` while nobody looked.

    A job is watched from the moment at which it was first seen with its present schedule.
    """
    now, runs = clock(), job_runs.c
    with database.transaction() as connection:
        since = _watched_until(connection, job, now)
        missed: list[datetime] = []
        if now - job.grace > since:
            why = "Nobody started it within its grace time."
            due = job.schedule.between(since, now - job.grace)
            rows = [_new_run(job, each, RunStatus.MISSED, why) for each in due]
            written = insert(job_runs).on_conflict_do_nothing().returning(runs.logical_date)
            missed = sorted(connection.scalars(written, rows)) if rows else []
            watched = sa.update(job_schedules).where(job_schedules.c.job == job.name)
            connection.execute(watched.values(watched_until=now - job.grace))
        held = sa.select(job_runs, _LEASED).where(runs.job == job.name, runs.status == RunStatus.RUNNING)
        found = connection.execute(held.order_by(runs.logical_date).with_for_update(skip_locked=True)).all()
        gone = [run for run in found if not run.leased]
        failure = {
            "failure": RUNNER_DIED,
            "reason": "The process that ran the job was killed, or its machine stopped.",
        }
        failed = {"status": RunStatus.FAILED, "ended_at": now, **failure, **_FREE}
        connection.execute(sa.update(job_runs).where(runs.id.in_([run.id for run in gone])).values(failed))
        if missed:
            content = {"dates": [each.isoformat() for each in missed]}
            put_notices(connection, told(job.name, missed[-1], NoticeKind.MISSED, content), clock)
        for run in gone:
            put_notices(
                connection, told(job.name, run.logical_date, NoticeKind.FAILED, {"code": RUNNER_DIED}), clock
            )
    return Watched(tuple(missed), tuple(run.logical_date for run in gone))


def _watched_until(connection: Connection, job: Job, now: datetime) -> datetime:
    """Return the time up to which dates are accounted for, and lock it until the transaction ends.

    Where that is still to come, the clock was ahead: what it called missed may still be started.
    """
    schedule = f"{job.schedule.expression} {job.schedule.zone.key}"
    row = {"job": job.name, "schedule": schedule, "watched_until": now}
    connection.execute(insert(job_schedules).values(row).on_conflict_do_nothing())
    mine = job_schedules.c.job == job.name
    found = connection.execute(sa.select(job_schedules).where(mine).with_for_update()).one()
    if found.schedule == schedule and found.watched_until <= now:
        until: datetime = found.watched_until
        return until
    early = (
        (job_runs.c.job == job.name) & (job_runs.c.logical_date > now) & (job_runs.c.status == RunStatus.MISSED)
    )
    connection.execute(sa.delete(job_runs).where(early))
    connection.execute(sa.update(job_schedules).where(mine).values(row))
    return now


def runs_of(database: Database, job: str | None = None, limit: int = 30) -> Sequence[RunRow]:
    """Return the newest runs, of one job or of all."""
    runs = sa.select(job_runs).order_by(job_runs.c.logical_date.desc(), job_runs.c.job).limit(limit)
    with database.transaction() as connection:
        return connection.execute(runs if job is None else runs.where(job_runs.c.job == job)).all()


def seconds_of(run: RunRow) -> float:
    """Return the seconds from the first start to the end; 0 where it did not end or never began."""
    return (
        0.0 if None in {run.started_at, run.ended_at} else float((run.ended_at - run.started_at).total_seconds())
    )


def run_of(database: Database, job: str, logical_date: datetime) -> RunRow | None:
    """Return the run of one date."""
    runs = sa.select(job_runs).where(job_runs.c.job == job, job_runs.c.logical_date == logical_date)
    with database.transaction() as connection:
        return connection.execute(runs).one_or_none()


def delete_old_files(database: Database, job: Job, clock: Clock, delete: Callable[[datetime], None]) -> None:
    """Delete the files of runs older than the job keeps them; the history keeps the entry.

    They are so by the clock of the database as well: one that is ahead for a moment would have all files deleted.
    """
    runs, now = job_runs.c, sa.func.least(clock(), sa.func.now())
    old = runs.logical_date < now - timedelta(days=job.keep_days)
    due = (runs.job == job.name) & old & runs.purged_at.is_(None) & (runs.status != RunStatus.RUNNING)
    with database.transaction() as connection:
        for date in connection.scalars(sa.select(runs.logical_date).where(due)).all():
            delete(date)
        connection.execute(sa.update(job_runs).where(due).values(purged_at=clock()))


def critical_findings(database: Database, job: str) -> tuple[int, int]:
    """Count the critical findings of the last audit, and those of them that came after the last run was done."""
    seen, runs = finding_observations.c, job_runs.c
    critical = [str(code) for code, meaning in CODES.items() if meaning.severity is Severity.CRITICAL]
    done = sa.select(sa.func.max(runs.ended_at)).where(runs.job == job, runs.status == RunStatus.DONE)
    new = sa.func.coalesce(seen.seen_at > done.scalar_subquery(), sa.true())
    present = sa.select(sa.func.count(), sa.func.count().filter(new))
    with database.transaction() as connection:
        row = connection.execute(present.where(seen.gone_at.is_(None), seen.code.in_(critical))).one()
    return row[0], row[1]
