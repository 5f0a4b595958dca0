"""``toolkit job``: jobs of a ``jobs.toml``, started by a scheduler."""

import io
import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from itertools import takewhile
from typing import Any, Final

import click

from toolkit.cli import _toolkit
from toolkit.cli.context import (
    DONE,
    FAILED,
    NEEDS_ATTENTION,
    finish,
    json_option,
    note,
    pass_kit,
    past_moment,
    print_json,
    show,
    shows,
)
from toolkit.contract.fields import pick_camel
from toolkit.errors import JobFailed, SettingsError
from toolkit.jobs.notices import notices_of
from toolkit.jobs.running import JobRun, Log, Runner
from toolkit.jobs.runs import Outcome, RunStatus, job_history, open_sales, run_document, runs_of
from toolkit.kit.connection import Kit
from toolkit.kit.shown import Shown, say, table
from toolkit.kit.spoken import EXAMPLES, _, current_language, readable
from toolkit.message import Message
from toolkit.notebooks.packaged import find_notebook

_NOT_IN_JOBS: Final = {"job", "up", "down", "serve", "token", "demo", "notebooks"}
"""Commands that do not end, stop shared services, or print a secret."""


class CommandLine(Runner):
    """Runs commands of the toolkit for the steps of jobs."""

    def check(self, words: Sequence[str]) -> bool:
        """Refuse what is no command, or what a command refuses; return whether it prints JSON."""
        command: click.Command = _toolkit
        context, left = click.Context(command), list(words)
        try:
            if words[0] in _NOT_IN_JOBS:
                raise click.UsageError("it cannot be a step of a job.")
            while isinstance(command, click.Group):
                if not left:
                    raise click.UsageError("Missing command.")
                name, found, left = command.resolve_command(context, left)
                assert found is not None
                command, context = found, click.Context(found, parent=context, info_name=name)
            given = command.make_context(command.name, left).params
        except click.ClickException as error:
            raise SettingsError("toolkit {}: {}", " ".join(words), error.format_message()) from None
        if words[0] == "run":
            from toolkit.notebooks.running import checked_parameters  # papermill takes a second to load

            checked_parameters(find_notebook(given["notebook"]), given["given"])
        return "as_json" in given

    def run(self, words: Sequence[str], environ: Mapping[str, str], log: Log) -> Mapping[str, Any]:
        """Run a command, and return the JSON document that it prints, if any.

        Raises:
            JobFailed: it ended with a status that says that it could not do its work.
            ToolkitError, OSError: what stopped it.
        """
        arguments = ["--quiet", *words, *(["--json"] if self.check(words) and "--json" not in words else [])]
        printed, noted = io.StringIO(), io.StringIO()
        try:
            with redirect_stdout(printed), redirect_stderr(noted):
                status = _toolkit.main(args=arguments, prog_name="toolkit", standalone_mode=False, obj=environ)
        except (click.ClickException, click.Abort) as error:
            raise JobFailed("toolkit {} was refused or interrupted: {}", words[0], error) from None
        finally:
            for line in noted.getvalue().splitlines():
                log(line)
        if status not in {None, DONE, NEEDS_ATTENTION}:
            raise JobFailed("toolkit {} ended with status {}.", words[0], status)
        document = json.loads(printed.getvalue()) if "--json" in arguments else {}
        return document if isinstance(document, dict) else {}


@click.group()
def job() -> None:
    """Run jobs for a scheduler, each logical date once, and tell what was missed.

    Jobs are defined in jobs.toml (TOOLKIT_JOBS, else ./jobs.toml, else the two that come with
    the toolkit: nightly and monthly). cron, systemd or Airflow starts them; a second start for
    the same date does nothing twice, and a date on which nobody started is announced.
    """


@job.command(name="list", short_help="List the jobs and when each is due.")
@shows(DONE)
def list_jobs(kit: Kit) -> Shown[Any]:
    """List the jobs: when each is due next, and how its last run ended.

    Example:
      TOOLKIT_JOBS=/etc/toolkit/jobs.toml toolkit job list --json
    """
    runner, found, rows = CommandLine(kit), [], []
    for each in runner.jobs.values():
        due = each.schedule.following(kit.clock())
        last = next(iter(runs_of(kit.database, each.name, limit=1)), None)
        ended = {"lastDate": last and last.logical_date, "lastStatus": last and last.status}
        about = {"job": each.name, "about": each.about, "schedule": each.schedule.expression, "next": due}
        found.append(about | ended)
        last_run = f"{_(last.status)} ({readable(last.logical_date)})" if last else _("never ran")
        rows.append((each.name, each.schedule.expression, due, last_run))
    zone = kit.settings.timezone.key
    parts = [table("Jobs", ["job", "schedule", "next", "last"], rows)]
    parts.append(say("from {}, times in {}", runner.file, zone, aside=True))
    return Shown(found, parts, {"file": runner.file, "timezone": zone, "jobs": found})


@job.command(short_help="Check the jobs file; nothing is started.")
@click.argument("name", required=False)
@pass_kit
def check(kit: Kit, name: str | None) -> None:
    """Check every step, parameter, notebook and setting of all jobs, or of the job NAME; nothing is started.

    Example:
      toolkit job check nightly

    Exit status 2: something is wrong; the text says where.
    """
    from toolkit.jobs.partner_notices import read_addresses  # the other commands do without reports

    runner = CommandLine(kit)
    for each in [runner.job(name)] if name else runner.jobs.values():
        date = each.schedule.following(kit.clock())
        checked = JobRun(runner, each, date).check()
        if ["partner", "notify"] in [words[:2] for words in checked.values()]:
            read_addresses(kit)
        show("{}, due {}:", each.name, readable(date))
        for step in each.steps:
            show(f"  {step.name:<10}  toolkit {shlex.join(checked[step.name])}")
    if runner.notices.channels:
        note("notices go by {}", current_language().listed(runner.notices.channels))
    else:
        note("nobody is told: no mail server, no webhook set")


@job.command(short_help="Run a job for a logical date, unless that is done.")
@click.argument("name")
@click.option("--date", "text", metavar="TIME", help=f"Another date than the last that was due: {EXAMPLES}.")
@click.option("--late", is_flag=True, help="Run it although its grace time has passed.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=0,
    metavar="SECONDS",
    help="While another process runs it, wait for its end, and go on with it if it dies.",
)
@click.option("--fail-on", type=click.Choice(["attention"]), help="Exit status 3 if sales are open.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON on stdout, the last one.")
@pass_kit
def run(kit: Kit, name: str, text: str | None, late: bool, wait: float, fail_on: str | None, as_json: bool) -> int:
    """Run the job NAME for the logical date that was due last, unless that is done.

    A date is run once, however often and from wherever it is started. A second start finds it
    done (exit status 0), or running, or goes on where a start that died or failed has stopped.
    Parameters are checked before anything starts.

    Examples:
      toolkit job run nightly --wait 14400
      toolkit job run nightly --date "2026-11-20 02:00" --late

    Exit status: 0 the date is done, by this start or an earlier one; 1 it is not: it failed,
    another process is running it, or its grace time has passed; 2 wrong usage, nothing started;
    3 done, and sales are open (with --fail-on attention).
    """
    runner = CommandLine(kit)
    schedule = runner.job(name).schedule
    date = schedule.latest(kit.clock()) if text is None else past_moment(kit, text, "--date")
    if date is None or not schedule.holds(date):
        around = schedule.latest(date or kit.clock()), schedule.following(date or kit.clock())
        dates = current_language().listed([readable(each) for each in around if each])
        raise click.BadParameter(
            Message("{} is not due at that time; its dates around it are {}", name, dates), param_hint="--date"
        )
    start = JobRun(runner, runner.job(name), date)
    start.check()
    runner.look_around()
    ended = start.start(late=late, wait=wait)
    runner.look_around()
    start.log(ended.outcome.text)
    if as_json:
        due = {"job": name, "logicalDate": date, "outcome": ended.outcome}
        why = {"code": ended.code, "reason": ended.reason or None, "counts": ended.counts}
        print_json({**due, **why}, one_line=True)
    if ended.outcome not in {Outcome.DONE, Outcome.DONE_BEFORE}:
        return FAILED
    return NEEDS_ATTENTION if fail_on and open_sales(ended.counts).get("open") else DONE


@job.command(short_help="List runs, the newest first, or show one of them.")
@click.argument("name", required=False)
@click.option("--limit", type=click.IntRange(min=1), default=30, show_default=True, help="Runs to list.")
@json_option
@pass_kit
def history(kit: Kit, name: str | None, limit: int, as_json: bool) -> int:
    """List the runs of all jobs, or of the job NAME; NAME@TIME shows one as JSON: steps, counts, files, notices.

    Examples:
      toolkit job history nightly --limit 365 --json
      toolkit job history nightly@2026-11-20T02:00
    """
    name, at, time = (name or "").partition("@")
    if name and not runs_of(kit.database, name, limit=1):
        CommandLine(kit).job(name)  # a name that no job has is refused, and one that never ran is not
    if not at:
        finish(job_history(kit, job=name, runs=limit), as_json)
        return DONE
    found = runs_of(kit.database, name, limit, date=past_moment(kit, time, "NAME"))
    if not found:
        raise click.BadParameter(Message("{} has no run for this date; see: toolkit job history {}", name, name))
    sent = [pick_camel(row, *row._fields) for row in notices_of(kit.database, name, found[0].logical_date)]
    print_json(run_document(found[0]) | {"notices": sent})
    return DONE


@job.command(short_help="Note and announce dates on which nobody started.")
@shows()
def missed(kit: Kit) -> Shown[Any]:
    """Note and announce dates on which nobody started, for a monitor that asks every hour or so.

    A date is missed when its grace time has passed without a start. Every `toolkit job run`
    looks for missed dates too. Listed are those after the last run that was done, and a last
    run that failed. Notices that wait are delivered.

    Example:
      toolkit job missed --json

    Exit status 3: there are missed dates, or a run that failed.
    """
    runner, found, rows = CommandLine(kit), [], []
    runner.watch()
    for each in runner.jobs.values():
        runs = runs_of(kit.database, each.name, limit=1000)
        for number, past in enumerate(takewhile(lambda run: run.status != RunStatus.DONE, runs)):
            if past.status == RunStatus.MISSED or (number == 0 and past.status == RunStatus.FAILED):
                state = "missed" if past.status == RunStatus.MISSED else f"failed: {past.failure}"
                found.append({"job": each.name, "logicalDate": past.logical_date, "state": state})
                rows.append((each.name, past.logical_date, _(past.status), past.failure))
    parts = [table("Dates that were missed or failed", ["job", "due", "status", "why"], rows)]
    return Shown(found, parts, {"missed": found}, bool(found))
