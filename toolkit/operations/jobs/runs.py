"""Take the run of a slot, hold it, note its steps, and end it.

A run is held by a row with a lease, which its holder renews: no lock rests on a session, so a connection pool
between us and the database changes nothing. Leases go by the clock of the database. Whatever a start writes is
written only while it is still the holder; one that was taken over is told so by ``LeaseLost``.
"""

import getpass
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection, Row
from sqlalchemy.dialects.postgresql import insert

from toolkit.domain.jobs.definitions import Job, Step
from toolkit.domain.jobs.outcomes import FailureCode, RunStatus
from toolkit.errors import LeaseLost
from toolkit.operations import Clock
from toolkit.operations.jobs.notices import Notice, put_notices
from toolkit.operations.jobs.processes import is_dead, this_process
from toolkit.storage.database import Database
from toolkit.storage.identifiers import new_id
from toolkit.storage.tables import job_runs, job_steps

LEASE: Final = timedelta(seconds=60)
"""The time without a renewal after which a holder has lost its run."""

_NOW: Final = sa.func.clock_timestamp()


class Answer(StrEnum):
    """The state of a slot when a start claims it."""

    TAKEN = "taken"
    """The run is ours, to be started or to be gone on with."""
    DONE = "done"
    HELD = "running"
    TOO_LATE = "too late"


@dataclass(frozen=True, slots=True)
class Claim:
    """The answer to a start, and the run as it was found; ``None`` where the slot never had one."""

    answer: Answer
    run: Row[Any] | None = None
    holder: UUID | None = None

    @property
    def id(self) -> UUID:
        """The id of the run."""
        assert self.run is not None
        found: UUID = self.run.id
        return found


def take_run(
    database: Database, job: Job, slot: datetime, clock: Clock, *, late: bool = False, lease: timedelta = LEASE
) -> Claim:
    """Take the run of ``slot``, unless it is done, held by a living process, or too late.

    ``late`` also takes a run whose window has passed.
    """
    holder, now = new_id(), clock()
    mine = (job_runs.c.job == job.name) & (job_runs.c.slot == slot)
    found = sa.select(job_runs, (job_runs.c.lease_until > _NOW).label("leased")).where(mine).with_for_update()
    in_time = late or now <= slot + job.late
    with database.transaction() as connection:
        if in_time:
            new = new_run(job, slot, status=RunStatus.RUNNING)
            connection.execute(insert(job_runs).values(new).on_conflict_do_nothing())
        run = connection.execute(found).one_or_none()
        if run is None:
            return Claim(Answer.TOO_LATE)
        if run.status == RunStatus.DONE:
            return Claim(Answer.DONE, run)
        unfinished = run.status in {RunStatus.RUNNING, RunStatus.PUBLISHING}
        if unfinished and run.leased and not is_dead(run.held_by):
            return Claim(Answer.HELD, run)
        if not in_time and run.status != RunStatus.PUBLISHING:
            return Claim(Answer.TOO_LATE, run)
        process = this_process()
        taken = {
            "status": RunStatus.PUBLISHING if run.status == RunStatus.PUBLISHING else RunStatus.RUNNING,
            "holder": holder,
            "held_by": process,
            "lease_until": _NOW + lease,
            "starts": job_runs.c.starts + 1,
            "started_at": run.started_at or now,
            "failure": None,
            "reason": None,
            "started_by": _who(),
            "host": process["host"],
        }
        connection.execute(sa.update(job_runs).where(job_runs.c.id == run.id).values(taken))
        return Claim(Answer.TAKEN, run, holder)


def new_run(job: Job, slot: datetime, **values: Any) -> dict[str, Any]:
    """Return the row of a run that nobody has started."""
    empty: dict[str, Any] = {"starts": 0, "versions": {}, "counts": {}, "files": []}
    return {"id": new_id(), "job": job.name, "slot": slot, **empty, **values}


def failed(code: FailureCode, reason: str, now: datetime) -> dict[str, Any]:
    """Return what a failure changes in the row of a run, which nobody holds any more."""
    freed = {"holder": None, "held_by": None, "lease_until": None}
    return {"status": RunStatus.FAILED, "ended_at": now, "failure": code, "reason": reason, **freed}


def _who() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name, as containers have
        return "unknown"


def renew_lease(database: Database, claim: Claim, lease: timedelta = LEASE) -> bool:
    """Hold the run for another ``lease``; return whether it is still ours."""
    with database.statement() as connection:
        renewed = connection.execute(
            sa.update(job_runs).where(_held(claim)).values(lease_until=_NOW + lease).returning(job_runs.c.id)
        )
        return renewed.first() is not None


def release(database: Database, claim: Claim) -> None:
    """Let the next start take the run at once."""
    with database.statement() as connection:
        connection.execute(sa.update(job_runs).where(_held(claim)).values(lease_until=None))


@dataclass(frozen=True, slots=True)
class StepEnd:
    """A step that ended: when, after how many tries, with which counts and files or which failure."""

    step: Step
    position: int
    parameters: Mapping[str, Any]
    tries: int
    started_at: datetime
    ended_at: datetime
    counts: Mapping[str, int]
    files: Sequence[Mapping[str, Any]] = ()
    failure: FailureCode | None = None
    reason: str | None = None


def note_step(database: Database, claim: Claim, end: StepEnd) -> None:
    """Note that a step ended, in place of an earlier note of it.

    Raises:
        LeaseLost: another start took the run over.
    """
    row = asdict(end) | {
        "run_id": claim.id,
        "name": end.step.name,
        "target": end.step.target,
        "status": RunStatus.FAILED if end.failure else RunStatus.DONE,
    }
    del row["step"]
    noted = insert(job_steps).values(row)
    with _holding(database, claim) as connection:
        connection.execute(noted.on_conflict_do_update(index_elements=["run_id", "name"], set_=row))


def steps_done(database: Database, claim: Claim) -> dict[str, Row[Any]]:
    """Return the steps of a run that need not be done again, by name."""
    done = sa.select(job_steps).where(job_steps.c.run_id == claim.id, job_steps.c.status == RunStatus.DONE)
    with database.transaction() as connection:
        return {row.name: row for row in connection.execute(done)}


def decide_success(
    database: Database,
    claim: Claim,
    clock: Clock,
    *,
    counts: Mapping[str, Any],
    files: Sequence[Mapping[str, Any]],
    folder: str,
    seal: str | None,
    versions: Mapping[str, str],
) -> None:
    """Enter a success into the history; from now on its files belong in ``folder``.

    Raises:
        LeaseLost: another start took the run over.
    """
    values = {
        "status": RunStatus.PUBLISHING,
        "ended_at": clock(),
        "counts": dict(counts),
        "files": list(files),
        "folder": folder,
        "seal": seal,
        "versions": {**versions, "python": platform.python_version()},
    }
    with _holding(database, claim) as connection:
        connection.execute(sa.update(job_runs).where(job_runs.c.id == claim.id).values(values))


def end_success(database: Database, run_id: UUID, notices: Sequence[Notice], clock: Clock) -> None:
    """End a run whose files have their final names; a second call changes nothing."""
    ended = (
        sa.update(job_runs)
        .where(job_runs.c.id == run_id, job_runs.c.status == RunStatus.PUBLISHING)
        .values(status=RunStatus.DONE, holder=None, held_by=None, lease_until=None)
        .returning(job_runs.c.id)
    )
    with database.transaction() as connection:
        if connection.execute(ended).first() is not None:
            put_notices(connection, notices, clock)


def end_failure(
    database: Database, claim: Claim, code: FailureCode, reason: str, notices: Sequence[Notice], clock: Clock
) -> None:
    """End a run that failed; a later start within its window goes on with it.

    Raises:
        LeaseLost: another start took the run over.
    """
    with _holding(database, claim) as connection:
        ended = sa.update(job_runs).where(job_runs.c.id == claim.id)
        connection.execute(ended.values(failed(code, reason, clock())))
        put_notices(connection, notices, clock)


def note_deleted(database: Database, run_id: UUID, clock: Clock) -> None:
    """Note that the files of a run are gone."""
    with database.statement() as connection:
        connection.execute(sa.update(job_runs).where(job_runs.c.id == run_id).values(purged_at=clock()))


def _held(claim: Claim) -> sa.ColumnElement[bool]:
    return (job_runs.c.id == claim.id) & (job_runs.c.holder == claim.holder)


@contextmanager
def _holding(database: Database, claim: Claim) -> Iterator[Connection]:
    """Open a transaction until whose end the run stays ours.

    Raises:
        LeaseLost: it is not ours any more.
    """
    with database.transaction() as connection:
        if connection.execute(sa.select(job_runs.c.id).where(_held(claim)).with_for_update()).first() is None:
            raise LeaseLost
        yield connection
