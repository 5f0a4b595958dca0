"""Find the files of runs that are due to be deleted; their entries in the history stay."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Row

from toolkit.domain.jobs.definitions import Job
from toolkit.domain.jobs.outcomes import RunStatus
from toolkit.operations import Clock
from toolkit.storage.database import Database
from toolkit.storage.tables import job_runs

_ENDED: Final = (RunStatus.DONE, RunStatus.FAILED, RunStatus.MISSED)


def due_for_deletion(database: Database, job: Job, clock: Clock) -> Sequence[Row[Any]]:
    """Return the ended runs of slots that are older than the job keeps files, whose files were not deleted yet."""
    runs = job_runs.c
    due = sa.select(job_runs).where(
        runs.job == job.name, runs.slot < clock() - job.keep, runs.purged_at.is_(None), runs.status.in_(_ENDED)
    )
    with database.transaction() as connection:
        return connection.execute(due.order_by(runs.slot)).all()


def note_deleted(database: Database, run_id: UUID, clock: Clock) -> None:
    """Note that the files of a run are gone."""
    with database.transaction() as connection:
        connection.execute(sa.update(job_runs).where(job_runs.c.id == run_id).values(purged_at=clock()))
