"""Do what every start does beside its own run: find missed slots, mend folders, send notices, delete, measure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from toolkit.domain.jobs.definitions import Job
from toolkit.domain.jobs.outcomes import RunStatus
from toolkit.entrypoints.jobs.failures import failure_of
from toolkit.entrypoints.jobs.folders import JobFolder
from toolkit.entrypoints.jobs.job_log import JobLog
from toolkit.entrypoints.jobs.job_settings import JobSettings
from toolkit.entrypoints.jobs.metrics import write_metrics
from toolkit.entrypoints.jobs.telling import Tell
from toolkit.entrypoints.spoken import spoken
from toolkit.errors import JobFailed, ToolkitError
from toolkit.operations import Clock
from toolkit.operations.jobs.history import RunRow, due_for_deletion, recent_runs
from toolkit.operations.jobs.runs import end_success, note_deleted
from toolkit.operations.jobs.watching import watch_job
from toolkit.reports.job_history import write_history_page
from toolkit.storage.database import Database


@dataclass(frozen=True)
class Rounds:
    """The work around the runs of all jobs of a file."""

    jobs: Mapping[str, Job]
    settings: JobSettings
    tell: Tell
    clock: Clock
    log: JobLog

    def look(self, database: Database) -> None:
        """Note what was missed or died, and finish what lacked its names only."""
        for job in self.jobs.values():
            watched = watch_job(database, job, self.clock, self.tell.notices)
            for slot in watched.missed:
                self._log(job, slot).warn("missed: nobody started it within its window")
            for slot in watched.died:
                self._log(job, slot).warn("failed: the process that ran it ended without a word")
            for run in watched.unpublished:
                self._publish(database, job, run)

    def _publish(self, database: Database, job: Job, run: RunRow) -> None:
        log = self._log(job, run.slot)
        try:
            self.folder_of(job).publish(run.slot, run.files)
        except (JobFailed, OSError) as error:
            log.warn(f"done, but its files lack their final names: {failure_of(error)[1]}")
            return
        told = self.tell.success(database, job, run.slot, run.counts, run.folder)
        end_success(database, run.id, told, self.clock)
        log.say("done before; its files have their final names now")

    def folder_of(self, job: Job) -> JobFolder:
        """Return the folder of a job's files."""
        return JobFolder(self.settings.out, job.name, job.schedule.zone)

    def finish(self, database: Database) -> None:
        """Tell people, delete what is old, renew the page and the metrics; nothing of it fails a run."""
        self._each("notices", lambda: self.tell.deliver(database, self.clock, self.log))
        for job in self.jobs.values():
            self._each("old files", lambda job=job: self._delete(database, job))  # type: ignore[misc]
        self._each("history page", lambda: self._page(database))
        if self.settings.metrics is not None:
            path = self.settings.metrics
            self._each("metrics", lambda: write_metrics(path, database, self.jobs.values(), self.clock))

    def _each(self, what: str, work: Callable[[], None]) -> None:
        try:
            work()
        except (ToolkitError, OSError) as error:
            self.log.warn(f"{what}: {failure_of(error)[1]}")

    def _delete(self, database: Database, job: Job) -> None:
        folder = self.folder_of(job)
        for run in due_for_deletion(database, job, self.clock):
            folder.delete(run.slot)
            note_deleted(database, run.id, self.clock)
        folder.tidy(_staged_for(database, job, self.clock()))

    def _page(self, database: Database) -> None:
        self.settings.out.mkdir(parents=True, exist_ok=True)
        zone = next(iter(self.jobs.values())).schedule.zone
        write_history_page(
            self.settings.out / "history.html", recent_runs(database, limit=400), self.clock(), zone, spoken()
        )

    def _log(self, job: Job, slot: datetime) -> JobLog:
        return replace(self.log, job=job.name, slot=slot.astimezone(job.schedule.zone))


def _staged_for(database: Database, job: Job, now: datetime) -> Iterable[datetime]:
    """Yield the slots whose run may be gone on with, so that what they staged is kept."""
    open_states = {RunStatus.RUNNING, RunStatus.PUBLISHING}
    for run in recent_runs(database, job.name, limit=100):
        if run.status in open_states or (run.status == RunStatus.FAILED and now <= run.slot + job.late):
            yield run.slot
