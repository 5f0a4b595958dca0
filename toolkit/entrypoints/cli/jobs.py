"""``toolkit job``: jobs of a ``jobs.toml``, started by a scheduler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final

import click

from toolkit.domain.jobs.definitions import Job
from toolkit.domain.jobs.outcomes import RunStatus
from toolkit.entrypoints.cli.context import (
    DONE,
    FAILED,
    NEEDS_ATTENTION,
    Context,
    note,
    pass_context,
    print_json,
    show,
)
from toolkit.entrypoints.cli.job_commands import CommandLine
from toolkit.entrypoints.cli.job_history import history, show_run
from toolkit.entrypoints.cli.job_install import install
from toolkit.entrypoints.jobs.database_access import DatabaseAccess
from toolkit.entrypoints.jobs.finishing import Rounds
from toolkit.entrypoints.jobs.job_log import JobLog, LogForm
from toolkit.entrypoints.jobs.job_settings import JobSettings
from toolkit.entrypoints.jobs.jobs_file import job_named, load_jobs
from toolkit.entrypoints.jobs.notices.notice_settings import NoticeSettings
from toolkit.entrypoints.jobs.running import Ended, JobRun, Outcome
from toolkit.entrypoints.jobs.steps import prepare
from toolkit.entrypoints.jobs.telling import Tell, open_sales
from toolkit.entrypoints.timestamps import EXAMPLES, parse_timestamp
from toolkit.errors import InvalidInput, SettingsError, ToolkitError
from toolkit.operations.jobs.history import last_done, missed_since_success, recent_runs
from toolkit.reports.times import readable


@dataclass(frozen=True)
class _Desk:
    """What the commands of this group share."""

    ctx: Context
    form: LogForm = LogForm.TEXT

    @cached_property
    def settings(self) -> JobSettings:
        return JobSettings.from_environment(self.ctx.environ, self.ctx.settings)

    @cached_property
    def jobs(self) -> dict[str, Job]:
        return load_jobs(self.settings.file, self.ctx.settings.timezone)

    @cached_property
    def tell(self) -> Tell:
        return Tell(NoticeSettings.from_environment(self.ctx.environ), self.ctx.settings.timezone)

    @cached_property
    def log(self) -> JobLog:
        return JobLog(self.ctx.application.clock, self.form)

    @cached_property
    def rounds(self) -> Rounds:
        return Rounds(self.jobs, self.settings, self.tell, self.ctx.application.clock, self.log)


@click.group()
def job() -> None:
    """Run jobs for a scheduler, each slot once, and tell what was missed.

    \b
    Jobs are defined in jobs.toml (TOOLKIT_JOBS, else ./jobs.toml, else the two that come with
    the toolkit: nightly and monthly). cron, systemd or Airflow starts them; a second start of
    the same slot does nothing twice, and a slot that nobody started is announced.

    \b
    Examples:
      toolkit job list
      toolkit job check
      toolkit job run nightly
      toolkit job missed
      toolkit job install --systemd
    """


job.add_command(history)
job.add_command(show_run)
job.add_command(install)


@job.command(name="list", short_help="List the jobs and when each is due.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@pass_context
def list_jobs(ctx: Context, as_json: bool) -> int:
    """List the jobs: when each is due next, and how its last run ended.

    \b
    Examples:
      toolkit job list
      TOOLKIT_JOBS=/etc/toolkit/jobs.toml toolkit job list --json
    """
    desk = _Desk(ctx)
    zone, now = ctx.settings.timezone, ctx.application.clock()
    found: list[dict[str, Any]] = []
    for each in desk.jobs.values():
        runs = recent_runs(ctx.application.database, each.name, limit=1)
        found.append(
            {
                "job": each.name,
                "about": each.about,
                "schedule": each.schedule.expression,
                "next": each.schedule.following(now).astimezone(zone),
                "lastSlot": runs[0].slot.astimezone(zone) if runs else None,
                "lastStatus": runs[0].status if runs else None,
            }
        )
    if as_json:
        print_json({"file": desk.settings.file, "timezone": zone.key, "jobs": found})
        return DONE
    for line in found:
        last = f"{line['lastStatus']} ({readable(line['lastSlot'], zone)})" if line["lastSlot"] else "never ran"
        show(f"{line['job']:<12}  {line['schedule']:<12}  next {readable(line['next'], zone)}; last: {last}")
        if line["about"]:
            show(f"{'':<12}  {line['about']}")
    note(f"from {desk.settings.file}, times in {zone.key}")
    return DONE


@job.command(short_help="Check the jobs file; nothing is started.")
@click.argument("name", required=False)
@pass_context
def check(ctx: Context, name: str | None) -> int:
    """Check the jobs file: every step, parameter, notebook and setting; nothing is started.

    Shows what each job (or the one NAMEd) would do for the slot that is due next.

    \b
    Examples:
      toolkit job check
      toolkit job check nightly

    Exit status 2: something is wrong; the text says where and what was probably meant.
    """
    desk = _Desk(ctx)
    wanted = [job_named(desk.jobs, name)] if name else list(desk.jobs.values())
    zone = ctx.settings.timezone
    for each in wanted:
        slot = each.schedule.following(ctx.application.clock())
        folder = desk.rounds.folder_of(each)
        steps = prepare(each, slot, desk.settings.file.parent, folder.final(slot), CommandLine())
        show(f"{each.name}, due {readable(slot, zone)}, late by {each.late} at most:")
        for step in steps:
            values = step.filled(folder.final(slot) / step.step.name)
            told = "".join(f"  {key}={value!r}" for key, value in values.items())
            show(f"  {step.step.name:<10}  {step.step.target}{told}")
    channels = desk.tell.settings.channels
    note(
        f"notices go by {' and '.join(channels)}" if channels else "nobody is told: no mail server, no webhook set"
    )
    return DONE


@job.command(short_help="Run a job for a slot, unless that is done.")
@click.argument("name")
@click.option(
    "--slot", "slot_text", metavar="TIME", help=f"Another slot than the last one that was due: {EXAMPLES}."
)
@click.option("--late", is_flag=True, help="Run it although its window has passed.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=0,
    metavar="SECONDS",
    help="While another process runs the slot, wait for its end, and go on with it if it dies.",
)
@click.option("--fail-on", type=click.Choice(["attention"]), help="Exit status 3 if sales are open.")
@click.option(
    "--log",
    "form",
    type=click.Choice([form.value for form in LogForm]),
    default="text",
    help="The lines on stderr.",
)
@click.option("--json", "as_json", is_flag=True, help="One line of JSON on stdout, the last one.")
@pass_context
def run(
    ctx: Context,
    name: str,
    slot_text: str | None,
    late: bool,
    wait: float,
    fail_on: str | None,
    form: str,
    as_json: bool,
) -> int:
    """Run the job NAME for the slot that was due last, unless that is done.

    \b
    A slot is run once, however often and from wherever it is started. A second start finds it
    done (exit status 0), or running, or goes on where a start that died or failed has stopped.
    Parameters are checked before anything starts. Files get their final names when all steps
    are done; those of a failed run are kept apart (toolkit job show).

    \b
    Examples:
      toolkit job run nightly
      toolkit job run nightly --wait 14400 --log json       one of two schedulers
      toolkit job run nightly --slot "2026-11-20 02:00" --late

    \b
    Exit status: 0 the slot is done, by this start or an earlier one; 1 it is not: it failed,
    another process is running it, or its window has passed; 2 wrong usage, nothing started;
    3 done, and sales are open (with --fail-on attention).
    """
    desk = _Desk(ctx, LogForm(form))
    chosen = job_named(desk.jobs, name)
    slot = _slot(desk, chosen, slot_text)
    folder = desk.rounds.folder_of(chosen)
    steps = prepare(chosen, slot, desk.settings.file.parent, folder.final(slot), CommandLine())
    access = DatabaseAccess(ctx.environ)
    log = desk.log.of(job=chosen.name, slot=slot.astimezone(ctx.settings.timezone))
    start = JobRun(chosen, slot, steps, access, folder, CommandLine(), ctx.environ, desk.log.clock, log, desk.tell)
    try:
        _quietly(log, lambda: access.once(desk.rounds.look))
        ended = start.start(late=late, wait=wait)
        _quietly(log, lambda: access.once(desk.rounds.finish))
    finally:
        access.close()
    found = open_sales(ended.counts if ended.outcome is Outcome.DONE or ended.run is None else ended.run.counts)
    attention = fail_on == "attention" and found.get("open", 0) > 0
    status = {Outcome.DONE: DONE, Outcome.DONE_BEFORE: DONE}.get(ended.outcome, FAILED)
    log.say(_told(ended, folder.final(slot)))
    if as_json:
        print_json(_as_json(chosen, slot.astimezone(ctx.settings.timezone), ended), one_line=True)
    return NEEDS_ATTENTION if status == DONE and attention else status


def _quietly(log: JobLog, work: Callable[[], Any]) -> None:
    """Do what stands around a run; where it cannot be done, the run goes on."""
    try:
        work()
    except (ToolkitError, OSError) as error:
        log.warn(str(error))


def _slot(desk: _Desk, chosen: Job, text: str | None) -> datetime:
    now, zone = desk.log.clock(), desk.ctx.settings.timezone
    if text is None:
        latest = chosen.schedule.latest(now)
        if latest is None:
            raise SettingsError(f"{chosen.name} was never due yet.")
        return latest
    try:
        moment = parse_timestamp(text, timezone=zone, now=now)
    except InvalidInput as error:
        raise click.BadParameter(str(error), param_hint="--slot") from None
    if not chosen.schedule.holds(moment):
        before, after = chosen.schedule.latest(moment), chosen.schedule.following(moment)
        near = " and ".join(readable(each, zone) for each in (before, after) if each is not None)
        raise click.BadParameter(
            f"{chosen.name} is not due at that time; its slots around it are {near}", param_hint="--slot"
        )
    return moment


_TOLD: Final = {
    Outcome.DONE: "done",
    Outcome.DONE_BEFORE: "done before; nothing to do",
    Outcome.RUNNING: "another process is running it; nothing was done here",
    Outcome.TOO_LATE: "its window has passed; --late runs it all the same",
    Outcome.FAILED: "failed",
}


def _told(ended: Ended, final: Any) -> str:
    text = _TOLD[ended.outcome]
    if ended.outcome is Outcome.RUNNING and ended.run is not None and ended.run.held_by:
        return f"{text} (process {ended.run.held_by['pid']} on {ended.run.held_by['host']})"
    if ended.outcome is Outcome.DONE and final.exists():
        return f"{text}: {final}"
    return text


def _as_json(chosen: Job, slot: datetime, ended: Ended) -> dict[str, Any]:
    return {
        "job": chosen.name,
        "slot": slot,
        "outcome": ended.outcome,
        "code": ended.code,
        "reason": ended.reason or None,
        "counts": ended.counts if ended.run is None or ended.counts else ended.run.counts,
    }


@job.command(short_help="Note and announce slots that nobody started.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@pass_context
def missed(ctx: Context, as_json: bool) -> int:
    """Note and announce slots that nobody started, for a monitor that asks every hour or so.

    \b
    A slot is missed when its window (`late` in jobs.toml) has passed without a start. Every
    `toolkit job run` looks for missed slots too. Listed are those after the last run that was
    done. Notices that wait are delivered, and the metrics are written.

    \b
    Examples:
      toolkit job missed
      toolkit job missed --json

    Exit status 3: there are missed slots, or a run whose process died.
    """
    desk = _Desk(ctx)
    database, zone = ctx.application.database, ctx.settings.timezone
    desk.rounds.look(database)
    found, late = [], []
    for each in desk.jobs.values():
        found += [
            (each.name, run.slot.astimezone(zone), "missed") for run in missed_since_success(database, each.name)
        ]
        newest = recent_runs(database, each.name, limit=1)
        if newest and newest[0].status == RunStatus.FAILED:
            found.append((each.name, newest[0].slot.astimezone(zone), f"failed: {newest[0].failure}"))
        slot = each.schedule.latest(desk.log.clock())
        done = last_done(database, each.name)
        if slot is not None and not (newest and newest[0].slot >= slot) and (done is not None or newest):
            late.append((each.name, slot.astimezone(zone)))
    desk.rounds.finish(database)
    if as_json:
        print_json(
            {
                "missed": [{"job": name, "slot": slot, "state": state} for name, slot, state in found],
                "late": [{"job": name, "slot": slot} for name, slot in late],
            }
        )
    else:
        for name, slot, state in found:
            show(f"{name:<12}  {readable(slot, zone)}  {state}")
        for name, slot in late:
            note(f"{name} was due {readable(slot, zone)} and was not started yet; its window is still open")
        if not found:
            show("no slot was missed")
    return NEEDS_ATTENTION if found else DONE
