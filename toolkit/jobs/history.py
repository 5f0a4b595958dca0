"""Notebook 04: how the scheduled jobs ran, how long they took, and how their counts moved."""

from collections.abc import Sequence

from toolkit.jobs.runs import RunRow, RunStatus, counts_of, open_sales, runs_of, seconds_of
from toolkit.kit.spoken import _, counted, readable
from toolkit.message import Message
from toolkit.notebooks.calls import Shown, application, figures, remark, table, told_plainly


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
    if not found:
        return Shown(found, [remark("Nothing ran yet", "A scheduler starts jobs: toolkit job --help")], counts)
    heading = counted(len(found), "latest run")
    facts = {status.value: count for status, count in number.items()}
    rows = []
    for run in found:
        open_ = open_sales(counts_of(run.steps)).get("open", "")
        due, why = readable(run.logical_date, zone), run.failure or ""
        rows.append((run.job, due, _(run.status), why, run.starts, seconds_of(run), open_, run.folder or ""))
    columns = ["job", "due", "status", "why", "starts", "seconds", "open sales", "folder"]
    parts = [
        figures(Message("{}: {}", heading, job) if job else heading, facts),
        table("Runs, the newest first", columns, rows),
    ]
    return Shown(found, parts, counts)
