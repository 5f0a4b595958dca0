"""Write metrics as a textfile for Prometheus' node exporter, whole or not at all."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from toolkit.domain.jobs.definitions import Job
from toolkit.domain.jobs.outcomes import RunStatus
from toolkit.entrypoints.jobs.telling import open_sales
from toolkit.operations import Clock
from toolkit.operations.jobs.history import bucket_read_at, ends_of, last_done
from toolkit.operations.private_folder import PrivateFolder, sync
from toolkit.storage.database import Database

_MEANINGS: Final = {
    "toolkit_job_last_success_timestamp_seconds": "When the job was done last.",
    "toolkit_job_last_failure_timestamp_seconds": "When the job failed last.",
    "toolkit_job_duration_seconds": "Seconds that the last run that was done took.",
    "toolkit_job_failed_runs": "Slots whose run failed and was not done later.",
    "toolkit_job_missed_slots": "Slots that nobody started within their window.",
    "toolkit_job_open_findings": "Sales that were not compliant in the last run that was done.",
    "toolkit_job_next_slot_timestamp_seconds": "When the job is due next.",
    "toolkit_bucket_read_timestamp_seconds": "When the bucket was read last; time() minus it is the age.",
    "toolkit_bucket_read_age_seconds": "The age of the picture of the bucket when this file was written.",
    "toolkit_jobs_written_timestamp_seconds": "When this file was written.",
}


def write_metrics(path: Path, database: Database, jobs: Iterable[Job], clock: Clock) -> None:
    """Write the figures of all jobs; the file may be read by everybody, and holds numbers only."""
    samples: dict[str, list[str]] = {name: [] for name in _MEANINGS}
    for name, job, value in _samples(database, jobs, clock()):
        label = f'{{job="{job}"}}' if job else ""
        samples[name].append(f"{name}{label} {value:.3f}")
    lines = []
    for name, meaning in _MEANINGS.items():
        if samples[name]:
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} gauge", *samples[name]]
    with PrivateFolder(path.parent) as scratch:
        draft = scratch / path.name
        draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
        sync(draft)
        draft.chmod(0o644)
        draft.replace(path)


def _samples(database: Database, jobs: Iterable[Job], now: datetime) -> Iterator[tuple[str, str, float]]:
    for job in jobs:
        done, ends = last_done(database, job.name), ends_of(database, job.name)
        failed, missed = ends.get(RunStatus.FAILED), ends.get(RunStatus.MISSED)
        found = {
            "last_success_timestamp_seconds": _seconds(done and done.ended_at),
            "last_failure_timestamp_seconds": _seconds(failed and failed.ended),
            "duration_seconds": done and (done.ended_at - done.started_at).total_seconds(),
            "failed_runs": failed.number if failed else 0,
            "missed_slots": missed.number if missed else 0,
            "open_findings": open_sales(done.counts if done else {}).get("open"),
            "next_slot_timestamp_seconds": _seconds(job.schedule.following(now)),
        }
        for name, value in found.items():
            if value is not None:
                yield f"toolkit_job_{name}", job.name, value
    read_at = bucket_read_at(database)
    if read_at is not None:
        yield "toolkit_bucket_read_timestamp_seconds", "", read_at.timestamp()
        yield "toolkit_bucket_read_age_seconds", "", (now - read_at).total_seconds()
    yield "toolkit_jobs_written_timestamp_seconds", "", now.timestamp()


def _seconds(moment: datetime | None) -> float | None:
    return moment.timestamp() if moment is not None else None
