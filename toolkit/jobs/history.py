"""Show how the scheduled jobs ran, how long they took, and how their counts moved."""

from collections.abc import Sequence
from typing import Any

from toolkit.jobs.runs import RunRow, RunStatus, counts_of, open_sales, runs_of, seconds_of
from toolkit.kit.connection import Kit
from toolkit.kit.shown import Shown, figures, remark, table
from toolkit.kit.spoken import _, counted, readable
from toolkit.message import Message


def job_history(kit: Kit, *, job: str = "nightly", runs: int = 60) -> Shown[Sequence[RunRow]]:
    """Show the last ``runs`` runs of ``job``, or of all jobs where it is empty."""
    found, zone = runs_of(kit.database, job.strip() or None, runs), kit.settings.timezone
    facts = {status.value: sum(run.status == status for run in found) for status in RunStatus}
    if not found:
        return Shown(
            found, [remark("Nothing ran yet", "A scheduler starts jobs: toolkit job --help")], {"runs": []}
        )
    rows = []
    for run in found:
        open_ = open_sales(counts_of(run.steps)).get("open", "")
        due, why = readable(run.logical_date, zone), run.failure or ""
        rows.append((run.job, due, _(run.status), why, run.starts, seconds_of(run), open_, run.folder or ""))
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
    return {name: value for name, value in run._asdict().items() if name not in hidden and value is not None}
