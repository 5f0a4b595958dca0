"""``toolkit job history`` and ``show``: the runs of jobs, and their results."""

from typing import Any
from zoneinfo import ZoneInfo

import click

from toolkit.domain.documents import named
from toolkit.domain.jobs.outcomes import FailureCode
from toolkit.entrypoints.cli.context import Context, Place, pass_context
from toolkit.entrypoints.cli.printing import json_option, note, print_json, show, show_table
from toolkit.entrypoints.spoken import _, counted, readable, spoken
from toolkit.operations.jobs.history import RunRow, find_runs, notices_of, recent_runs, run_of_slot, steps_of
from toolkit.reports.job_history import duration, write_history_page


@click.command(short_help="List runs, the newest first.")
@click.argument("name", required=False)
@click.option("--limit", type=click.IntRange(min=1), default=30, show_default=True, help="Runs to list.")
@click.option("--html", type=Place(), metavar="FILE", help="Write them as a page for people.")
@json_option
@pass_context
def history(ctx: Context, name: str | None, limit: int, html: Any, as_json: bool) -> None:
    """List the runs of all jobs, or of the job NAME, the newest first.

    \b
    Examples:
      toolkit job history
      toolkit job history nightly --limit 365 --html nightly.html
      toolkit job history --json > runs.json
    """
    runs = recent_runs(ctx.application.database, name, limit)
    zone = ctx.settings.timezone
    if html is not None:
        write_history_page(html, runs, ctx.application.clock(), zone, spoken())
        note(f"{counted(len(runs), 'run')}: {html}")
    if as_json:
        print_json({"runs": [_as_json(run, zone) for run in runs]})
    elif html is None:
        if runs:
            show_table(("run", "job", "slot", "status", "time"), [_cells(run, zone) for run in runs])
        else:
            show("nothing ran yet")


def _cells(run: RunRow, zone: ZoneInfo) -> tuple[str, ...]:
    seconds = duration(run)
    took = "" if seconds is None else f"{spoken().number(round(seconds))} s"
    return str(run.id)[:13], run.job, readable(run.slot, zone), _(run.status), took


@click.command(name="show", short_help="Show one run: steps, files, notices, failure.")
@click.argument("run")
@json_option
@pass_context
def show_run(ctx: Context, run: str, as_json: bool) -> None:
    """Show one run: its steps, parameters, counts, files, notices, and why it failed.

    RUN is the beginning of an id from `toolkit job history`, or JOB@TIME, the time of its slot.

    \b
    Examples:
      toolkit job show 019a2b3c-4d5e
      toolkit job show nightly@2026-11-20T02:00
    """
    database, zone = ctx.application.database, ctx.settings.timezone
    found = _found(ctx, run)
    steps, notices = steps_of(database, found.id), notices_of(database, found.job, found.slot)
    if as_json:
        told = _as_json(found, zone)
        told["steps"] = [
            named(step, "name", "target", "parameters", "status", "tries", "started_at", "ended_at")
            | {"code": step.failure}
            | named(step, "reason", "counts", "files")
            for step in steps
        ]
        told["notices"] = [
            named(notice, "kind", "channel", "created_at", "delivered_at", "tries", "problem")
            for notice in notices
        ]
        print_json(told)
        return
    for label, value in _facts(found, zone):
        show(f"{label:<10}  {value}")
    for step in steps:
        show(f"\n{step.name}: {step.status}, {step.target}")
        show(f"  {(step.ended_at - step.started_at).total_seconds():,.1f} s, tries: {step.tries}")
        for name, value in step.parameters.items():
            show(f"  {name} = {value!r}")
        if step.failure:
            show(f"  {step.failure}: {step.reason}")
        if step.counts:
            show("  " + ", ".join(f"{number:,} {name}" for name, number in step.counts.items()))
        for file in step.files:
            show(f"  {file['sha256']}  {file['name']}")
    for notice in notices:
        state = "delivered" if notice.delivered_at else f"waits, {notice.tries} tries: {notice.problem or 'new'}"
        show(f"\nnotice {notice.kind} by {notice.channel}: {state}")


def _found(ctx: Context, text: str) -> RunRow:
    database = ctx.application.database
    name, separator, time = text.partition("@")
    if separator:
        run = run_of_slot(database, name, ctx.past_moment(time, "RUN"))
        if run is None:
            raise click.BadParameter(f"{name} has no run for this slot; see: toolkit job history {name}")
        return run
    runs = find_runs(database, text)
    if len(runs) != 1:
        raise click.BadParameter(
            (
                f"several runs have ids that begin with {text!r}"
                if runs
                else f"no run has an id that begins with {text!r}"
            )
            + "; see: toolkit job history"
        )
    return runs[0]


def _facts(run: RunRow, zone: ZoneInfo) -> list[tuple[str, str]]:
    facts = [("job", run.job), ("due", readable(run.slot, zone)), ("status", run.status)]
    if run.failure:
        facts += [("failure", f"{run.failure}: {FailureCode(run.failure).text}")]
    if run.reason:
        facts += [("reason", run.reason)]
    facts += [
        (label, readable(moment, zone))
        for label, moment in (("started", run.started_at), ("ended", run.ended_at), ("deleted", run.purged_at))
        if moment is not None
    ]
    if run.started_by:
        facts.append(("by", f"{run.started_by} on {run.host}, starts: {run.starts}"))
    facts += [(label, value) for label, value in (("folder", run.folder), ("seal", run.seal)) if value]
    facts += [(f"{name}", value) for name, value in run.versions.items()]
    return [*facts, ("id", str(run.id))]


def _as_json(run: RunRow, zone: ZoneInfo) -> dict[str, Any]:
    moments = {
        name: moment.astimezone(zone) if moment is not None else None
        for name, moment in named(run, "slot", "started_at", "ended_at", "purged_at").items()
    }
    return {
        **named(run, "id", "job"),
        **moments,
        **named(run, "status"),
        "code": run.failure,
        **named(run, "reason", "starts", "started_by", "host", "versions", "counts", "files"),
        "folder": run.folder or None,
        "seal": run.seal,
    }
