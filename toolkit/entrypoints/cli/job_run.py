"""``toolkit job run``: one start of a job, for a slot; and what the commands of ``toolkit job`` share."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Final

import click

from toolkit.domain.jobs.definitions import Job
from toolkit.entrypoints.cli.context import DONE, FAILED, NEEDS_ATTENTION, Context, pass_context
from toolkit.entrypoints.cli.job_commands import CommandLine
from toolkit.entrypoints.cli.printing import print_json
from toolkit.entrypoints.jobs.database_access import DatabaseAccess
from toolkit.entrypoints.jobs.finishing import Rounds
from toolkit.entrypoints.jobs.job_log import JobLog, LogForm
from toolkit.entrypoints.jobs.job_settings import JobSettings, job_named, load_jobs
from toolkit.entrypoints.jobs.notices.notice_settings import NoticeSettings
from toolkit.entrypoints.jobs.running import Ended, JobRun, Outcome
from toolkit.entrypoints.jobs.steps import prepare
from toolkit.entrypoints.jobs.telling import Tell, open_sales
from toolkit.entrypoints.spoken import readable
from toolkit.entrypoints.timestamps import EXAMPLES
from toolkit.errors import SettingsError, ToolkitError


@dataclass(frozen=True)
class Desk:
    """The jobs file, the log and the channels of notices, each opened at first use."""

    ctx: Context
    form: LogForm = LogForm.TEXT

    @cached_property
    def settings(self) -> JobSettings:
        """The settings of jobs that the environment gives."""
        return JobSettings.from_environment(self.ctx.environ, self.ctx.settings)

    @cached_property
    def jobs(self) -> dict[str, Job]:
        """The jobs of the jobs file."""
        return load_jobs(self.settings.file, self.ctx.settings.timezone)

    @cached_property
    def tell(self) -> Tell:
        """The channels of notices."""
        return Tell(NoticeSettings.from_environment(self.ctx.environ), self.ctx.settings.timezone)

    @cached_property
    def log(self) -> JobLog:
        """The form of the lines on stderr."""
        return JobLog(self.ctx.application.clock, self.form)

    @cached_property
    def rounds(self) -> Rounds:
        """The work around the runs."""
        return Rounds(self.jobs, self.settings, self.tell, self.ctx.application.clock, self.log)


@click.command(short_help="Run a job for a slot, unless that is done.")
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
    help="The form of the lines on stderr.",
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
    desk = Desk(ctx, LogForm(form))
    chosen = job_named(desk.jobs, name)
    slot = _slot(desk, chosen, slot_text)
    folder = desk.rounds.folder_of(chosen)
    steps = prepare(chosen, slot, desk.settings.file.parent, folder.final(slot), CommandLine())
    access = DatabaseAccess(ctx.environ)
    log = replace(desk.log, job=chosen.name, slot=slot.astimezone(ctx.settings.timezone))
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
    """Do the work around a run; where it fails, the run goes on."""
    try:
        work()
    except (ToolkitError, OSError) as error:
        log.warn(str(error))


def _slot(desk: Desk, chosen: Job, text: str | None) -> datetime:
    zone = desk.ctx.settings.timezone
    if text is None:
        latest = chosen.schedule.latest(desk.log.clock())
        if latest is None:
            raise SettingsError(f"{chosen.name} was never due yet.")
        return latest
    moment = desk.ctx.past_moment(text, "--slot")
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
