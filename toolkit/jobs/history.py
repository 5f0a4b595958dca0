"""Notebook 04: how the scheduled jobs ran, how long they took, and how their counts moved."""

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from toolkit.jobs.runs import RunRow, RunStatus, counts_of, open_sales, runs_of, seconds_of
from toolkit.kit.spoken import _, counted, readable
from toolkit.message import Message
from toolkit.notebooks.calls import application, told_plainly
from toolkit.notebooks.display import (
    Bundle,
    Colour,
    Fact,
    Shown,
    bars,
    figures,
    table,
)

_COLOURS = {
    RunStatus.DONE: Colour.GOOD,
    RunStatus.FAILED: Colour.BAD,
    RunStatus.MISSED: Colour.BAD,
    RunStatus.RUNNING: Colour.NEUTRAL,
}


@told_plainly
def job_history(*, job: str = "nightly", runs: int = 60) -> Shown[Sequence[RunRow]]:
    """Show the last ``runs`` runs of ``job``, or of all jobs where it is empty."""
    with application() as opened:
        found = runs_of(opened.database, job.strip() or None, runs)
        zone = opened.settings.timezone
    number = {status: sum(run.status == status for run in found) for status in RunStatus}
    counts = {
        "job": "job_history",
        "runs": len(found),
        **{status.value: count for status, count in number.items()},
        "needsAttention": bool(found and found[0].status in {RunStatus.FAILED, RunStatus.MISSED}),
    }
    return Shown(found, _parts(found, job, number, zone), counts)


def _parts(found: Sequence[RunRow], job: str, number: dict[RunStatus, int], zone: ZoneInfo) -> list[Bundle]:
    if not found:
        return [figures("Nothing ran yet", [], "A scheduler starts jobs: toolkit job --help")]
    heading = counted(len(found), "latest run")
    facts = [Fact(status, count, _COLOURS[status]) for status, count in number.items()]
    names = {run.id: f"{readable(run.logical_date, zone)} {'' if job else run.job}".strip() for run in found}
    done = [run for run in found if run.status == RunStatus.DONE][:30][::-1]
    seconds = {names[run.id]: {"seconds": seconds_of(run)} for run in done}
    judged = {names[run.id]: open_sales(counts_of(run.steps)) for run in done}
    open_ = {name: {"open sales": sales["open"]} for name, sales in judged.items() if sales}
    rows = [
        (names[run.id], _(run.status), run.failure or "", run.starts, seconds_of(run), run.folder or "")
        for run in found
    ]
    return [
        figures(Message("{}: {}", heading, job) if job else heading, facts),
        *([bars("Seconds of each run that is done", seconds, {"seconds": Colour.NEUTRAL})] if seconds else []),
        *([bars("Open sales after each run", open_, {"open sales": Colour.WARNING})] if open_ else []),
        table("Runs, the newest first", ["due", "status", "why", "starts", "seconds", "folder"], rows),
    ]
