"""Notebook 04: how the scheduled jobs ran, how long they took, and how their counts moved."""

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from toolkit.domain.jobs.outcomes import RunStatus
from toolkit.entrypoints.jobs.telling import open_sales
from toolkit.entrypoints.notebooks.display import Bars, Colour, Fact, Facts, Grid, Part, Shown
from toolkit.entrypoints.notebooks.notebook_errors import application, told_plainly
from toolkit.entrypoints.spoken import _, counted, readable
from toolkit.operations.jobs.history import RunRow, recent_runs
from toolkit.reports.job_history import duration

_COLOURS = {
    RunStatus.DONE: Colour.GOOD,
    RunStatus.FAILED: Colour.BAD,
    RunStatus.MISSED: Colour.BAD,
    RunStatus.RUNNING: Colour.NEUTRAL,
    RunStatus.PUBLISHING: Colour.NEUTRAL,
}


@told_plainly
def job_history(*, job: str = "nightly", runs: int = 60) -> Shown[Sequence[RunRow]]:
    """Show the last ``runs`` runs of ``job``, or of all jobs where it is empty."""
    with application() as opened:
        found = recent_runs(opened.database, job.strip() or None, runs)
        zone = opened.settings.timezone
    number = {status: sum(run.status == status for run in found) for status in RunStatus}
    counts = {
        "job": "job_history",
        "runs": len(found),
        **{status.value: count for status, count in number.items()},
        "needsAttention": bool(found and found[0].status in {RunStatus.FAILED, RunStatus.MISSED}),
    }
    return Shown(found, _parts(found, job, number, zone), counts)


def _parts(found: Sequence[RunRow], job: str, number: dict[RunStatus, int], zone: ZoneInfo) -> list[Part]:
    if not found:
        return [Facts("Nothing ran yet", [], "A scheduler starts jobs: toolkit job install --help")]
    facts = [
        Fact(status.value, count, _COLOURS[status] if count else Colour.QUIET) for status, count in number.items()
    ]
    heading = counted(len(found), "latest run")
    parts: list[Part] = [Facts(f"{heading}: {job}" if job else heading, facts)]
    names = {run.id: f"{readable(run.slot, zone)} {'' if job else run.job}".strip() for run in found}
    done = [run for run in found if run.status == RunStatus.DONE][:30][::-1]
    seconds = {names[run.id]: {"seconds": round(duration(run) or 0)} for run in done}
    if seconds:
        parts.append(Bars("Seconds of each run that is done", seconds, {"seconds": Colour.NEUTRAL}))
    judged = {names[run.id]: {"open sales": sales["open"]} for run in done if (sales := open_sales(run.counts))}
    if judged:
        parts.append(Bars("Open sales after each run", judged, {"open sales": Colour.WARNING}))
    columns = ["due", "status", "why", "starts", "seconds", "files", "id"]
    rows = [
        (
            names[run.id],
            _(run.status),
            run.failure or "",
            run.starts,
            round(duration(run) or 0),
            len(run.files),
            str(run.id),
        )
        for run in found
    ]
    return [*parts, Grid("Runs, the newest first", columns, rows)]
