"""The history of jobs in the database: one row for each job and logical date, whoever starts it and however often.

A run is held by a lease in its row, which its holder renews: no lock rests on a session, so a connection pool in
between changes nothing. Leases go by the clock of the database. Whatever a start writes is written only while it
is still the holder. A start that finds a run whose holder died goes on after the steps that are done.
"""

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection, Row
from sqlalchemy.dialects.postgresql import insert

from toolkit.contract.codes import Severity
from toolkit.contract.fields import pick_camel
from toolkit.contract.findings import STANDING
from toolkit.database.connection import Database
from toolkit.database.observation_clock import checked
from toolkit.database.tables import job_runs, job_schedules, new_id
from toolkit.errors import InvalidInput, LeaseLost
from toolkit.jobs.definitions import Job
from toolkit.jobs.notices import NoticeKind, NoticeSettings, put_notices
from toolkit.kit.process import signed_in_account
from toolkit.kit.services import Services
from toolkit.kit.shown import Shown, figures, say, table
from toolkit.kit.spoken import _, counted
from toolkit.message import LabelledEnum, Message

LEASE: Final = timedelta(seconds=60)  # the time without a renewal after which a holder has lost its run
RunRow = Row[Any]  # a run as the database holds it

_NOW: Final = sa.func.clock_timestamp()
_KEY: Final = ["job", "logical_date"]
_DIED: Final = {
    "failure": "RUNNER_DIED",
    "reason": "The process that ran the job was killed, or its machine stopped.",
}


class RunStatus(StrEnum):
    """The state of a run; one that is running may have died, which its lease tells."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    MISSED = "missed"


class Outcome(LabelledEnum):
    """The end of a start; ``TAKEN`` while it goes on."""

    TAKEN = "taken", ""
    DONE = "done", "done"
    DONE_BEFORE = "done before", "done before; nothing to do"
    RUNNING = "running", "another process is running it; nothing was done here"
    TOO_LATE = "too late", "its grace time has passed; --late runs it all the same"
    FAILED = "failed", "failed"


def take_run(
    database: Database, job: Job, date: datetime, *, late: bool = False, lease: timedelta = LEASE
) -> tuple[Outcome, RunRow | None]:
    """Take the run, unless it is done, held by a living process, or too late; ``late`` takes it all the same.

    Returned is the run, too, as it is now; ``None`` where there never was one.
    """
    runs, held = job_runs.c, {"status": RunStatus.RUNNING, "holder": new_id(), "lease_until": _NOW + lease}
    held |= {"started_by": signed_in_account(), "host": socket.gethostname()}
    with database.transaction() as connection:
        now = checked(connection, database.clock())
        in_time = late or now <= date + job.grace
        if in_time:
            new = insert(job_runs).values({**_new_run(job, date), **held, "starts": 1, "started_at": now})
            again = {"failure": None, "reason": None, "starts": runs.starts + 1}
            again |= {"started_at": sa.func.coalesce(runs.started_at, now)}
            free = (runs.status != RunStatus.DONE) & sa.func.coalesce(runs.lease_until <= _NOW, True)
            taking = new.on_conflict_do_update(index_elements=_KEY, set_=held | again, where=free)
            if (run := connection.execute(taking.returning(job_runs)).one_or_none()) is not None:
                return Outcome.TAKEN, run
        known = sa.select(job_runs, (runs.lease_until > _NOW).label("leased"))
        run = connection.execute(known.where(runs.job == job.name, runs.logical_date == date)).one_or_none()
    if run is not None and run.status == RunStatus.DONE:
        return Outcome.DONE_BEFORE, run
    return Outcome.RUNNING if in_time or (run is not None and run.leased) else Outcome.TOO_LATE, run


def _new_run(job: Job, date: datetime) -> dict[str, Any]:
    return {"id": new_id(), "job": job.name, "logical_date": date, "starts": 0, "versions": {}, "steps": []}


@contextmanager
def holding(database: Database, run: RunRow, **values: Any) -> Iterator[Connection]:
    """Change the row of a run that we took, which stays ours until the end of the block's transaction.

    Raises:
        LeaseLost: it is not ours any more.
    """
    ours = (job_runs.c.id == run.id) & (job_runs.c.holder == run.holder)
    with database.transaction() as connection:
        if not connection.execute(sa.update(job_runs).where(ours).values(values)).rowcount:
            raise LeaseLost
        yield connection


def renew_lease(database: Database, run: RunRow, lease: timedelta) -> None:
    """Hold the run for another ``lease``; raises as ``holding`` does."""
    with holding(database, run, lease_until=_NOW + lease):
        pass


def ended(status: RunStatus, now: datetime, **values: Any) -> dict[str, Any]:
    """Return the values of a run that ended, whom nobody holds."""
    return {"status": status, "ended_at": now, "holder": None, "lease_until": None, **values}


def watch_job(database: Database, job: Job, notices: NoticeSettings) -> tuple[list[datetime], list[datetime]]:
    """Note, each once and with its notices, what happened to ``job`` while nobody looked.

    Returned are the dates that nobody started, and those whose run died. A job is watched from the moment at which
    it was first seen with its present schedule.
    """
    runs, old = job_runs.c, job_schedules.c
    now = database.run(checked, database.clock())  # else days to come would be missed, and all files be old
    schedule = f"{job.schedule.expression} {job.schedule.zone.key}"
    same = (old.schedule == schedule) & (old.watched_until <= now)
    known = {"schedule": schedule, "watched_until": sa.case((same, old.watched_until), else_=now)}
    first = insert(job_schedules).values(job=job.name, schedule=schedule, watched_until=now)
    watched = first.on_conflict_do_update(index_elements=["job"], set_=known).returning(old.watched_until)
    newest = sa.select(sa.func.max(runs.logical_date)).where(runs.job == job.name, runs.logical_date <= now)
    with database.transaction() as connection:
        since = connection.scalars(watched).one()  # locked until the end
        # Dates before the newest run were looked at when it was started, whatever a clock that went back says.
        looked_at = (connection.scalar(newest) or since) - job.grace
        since = max(since, looked_at, now - timedelta(days=job.keep_days))  # first seen by a clock of years ago
        due = job.schedule.between(since, now - job.grace)
        rows = [_new_run(job, each) | {"status": RunStatus.MISSED} for each in due]
        written = insert(job_runs).on_conflict_do_nothing().returning(runs.logical_date)
        missed = sorted(connection.scalars(written, rows)) if rows else []
        gone = (runs.job == job.name, runs.status == RunStatus.RUNNING, runs.lease_until <= _NOW)
        failed = sa.update(job_runs).where(*gone).values(ended(RunStatus.FAILED, now, **_DIED))
        died = sorted(connection.scalars(failed.returning(runs.logical_date)))
        if missed:
            dates = {"dates": [each.isoformat() for each in missed]}
            put_notices(connection, notices.notices(job.name, missed[-1], NoticeKind.MISSED, dates))
        for date in died:
            code = {"code": _DIED["failure"]}
            put_notices(connection, notices.notices(job.name, date, NoticeKind.FAILED, code))
    return missed, died


def runs_of(
    database: Database, job: str | None = None, limit: int = 30, *, date: datetime | None = None
) -> Sequence[RunRow]:
    """Return the newest runs, of one job or of all; or the one of a ``date``."""
    wanted = {"job": job, "logical_date": date}
    of_these = [job_runs.c[name] == value for name, value in wanted.items() if value is not None]
    newest = sa.select(job_runs).where(*of_these).order_by(job_runs.c.logical_date.desc(), job_runs.c.job)
    with database.transaction() as connection:
        return connection.execute(newest.limit(limit)).all()


def critical_findings(kit: Services, job: str) -> tuple[int, int]:
    """Count the critical findings of the last audit that no waiver accepts, and those newer than the last run."""
    runs = job_runs.c
    done = sa.select(sa.func.max(runs.ended_at)).where(runs.job == job, runs.status == RunStatus.DONE)
    before = kit.database.run(Connection.scalar, done)
    [row] = kit.last_audit().sql(_CRITICAL, before, Severity.CRITICAL, STANDING).to_pylist()
    return row["critical"], row["new"]


_CRITICAL: Final = """
    SELECT count(*) AS critical, count(*) FILTER (coalesce(opened_at > $1, true)) AS new
    FROM findings WHERE severity = $2 AND list_contains($3, status)
"""


def counts_of(steps: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, int]]:
    """Return the counts of each step of a run."""
    return {step["name"]: step["counts"] for step in steps}


def open_sales(counts: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Return the sales, and those that are open, as a step counted them; nothing where none did."""
    for step in counts.values():
        if {"sales", "incomplete", "conflict"} <= step.keys():
            return {"sales": step["sales"], "open": step["incomplete"] + step["conflict"]}
    return {}


MOST_RUNS: Final = 100_000  # runs that are shown at once


def job_history(kit: Services, *, job: str = "nightly", runs: int = 60) -> Shown[Sequence[RunRow]]:
    """Show the last ``runs`` runs of ``job``, or of all jobs where it is empty.

    Raises:
        InvalidInput: ``runs`` is no such number.
    """
    if runs not in range(1, MOST_RUNS + 1):
        raise InvalidInput("{} must be a whole number from {} to {}", "runs", 1, MOST_RUNS)
    found = runs_of(kit.database, job.strip() or None, runs)
    facts = {status.value: sum(run.status == status for run in found) for status in RunStatus}
    if not found:
        nothing = say("Nothing ran yet. A scheduler starts jobs: toolkit job --help")
        nothing = say("{} never ran; see: toolkit job list", job.strip()) if job.strip() else nothing
        return Shown(found, [nothing], {"runs": []})
    rows = []
    for run in found:
        open_ = open_sales(counts_of(run.steps)).get("open")
        seconds = round((run.ended_at - run.started_at).total_seconds()) if run.started_at and run.ended_at else 0
        what = run.job, run.logical_date, _(run.status), run.failure
        rows.append((*what, run.starts, seconds, open_, run.folder))
    columns = ["job", "due", "status", "why", "starts", "seconds", "open sales", "folder"]
    heading = counted(len(found), "latest run")
    parts = [
        figures(Message("{}: {}", heading, job) if job else heading, facts),
        table("Runs, the newest first", columns, rows),
    ]
    attention = found[0].status in {RunStatus.FAILED, RunStatus.MISSED}
    return Shown(found, parts, {"runs": [run_document(each) for each in found], **facts}, attention)


def run_document(run: RunRow) -> dict[str, Any]:
    """Return all that the history keeps of a run."""
    hidden = {"holder", "lease_until"}
    shown = pick_camel(run, *(name for name in run._fields if name not in hidden))
    return {name: value for name, value in shown.items() if value is not None}
