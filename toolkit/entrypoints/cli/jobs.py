"""``toolkit job``: jobs of a ``jobs.toml``, started by a scheduler."""

from pathlib import Path
from typing import Any

import click

from toolkit.domain.jobs.outcomes import RunStatus
from toolkit.entrypoints.cli.context import DONE, NEEDS_ATTENTION, Context, Place, pass_context
from toolkit.entrypoints.cli.job_commands import CommandLine
from toolkit.entrypoints.cli.job_history import history, show_run
from toolkit.entrypoints.cli.job_run import Desk, run
from toolkit.entrypoints.cli.printing import json_option, note, print_json, show
from toolkit.entrypoints.jobs.job_settings import job_named
from toolkit.entrypoints.jobs.scheduler_files import SCHEDULERS, Installation
from toolkit.entrypoints.jobs.steps import prepare
from toolkit.entrypoints.spoken import readable, spoken
from toolkit.operations.jobs.history import last_done, missed_since_success, recent_runs
from toolkit.reports.times import duration


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


job.add_command(run)
job.add_command(history)
job.add_command(show_run)


@job.command(name="list", short_help="List the jobs and when each is due.")
@json_option
@pass_context
def list_jobs(ctx: Context, as_json: bool) -> None:
    """List the jobs: when each is due next, and how its last run ended.

    \b
    Examples:
      toolkit job list
      TOOLKIT_JOBS=/etc/toolkit/jobs.toml toolkit job list --json
    """
    desk = Desk(ctx)
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
        return
    for line in found:
        last = f"{line['lastStatus']} ({readable(line['lastSlot'], zone)})" if line["lastSlot"] else "never ran"
        show(f"{line['job']:<12}  {line['schedule']:<12}  next {readable(line['next'], zone)}; last: {last}")
        if line["about"]:
            show(f"{'':<12}  {line['about']}")
    note(f"from {desk.settings.file}, times in {zone.key}")


@job.command(short_help="Check the jobs file; nothing is started.")
@click.argument("name", required=False)
@pass_context
def check(ctx: Context, name: str | None) -> None:
    """Check the jobs file: every step, parameter, notebook and setting; nothing is started.

    Shows what each job (or the one NAMEd) would do for the slot that is due next.

    \b
    Examples:
      toolkit job check
      toolkit job check nightly

    Exit status 2: something is wrong; the text says where and what was probably meant.
    """
    desk = Desk(ctx)
    wanted = [job_named(desk.jobs, name)] if name else list(desk.jobs.values())
    zone = ctx.settings.timezone
    for each in wanted:
        slot = each.schedule.following(ctx.application.clock())
        folder = desk.rounds.folder_of(each)
        steps = prepare(each, slot, desk.settings.file.parent, folder.final(slot), CommandLine())
        show(f"{each.name}, due {readable(slot, zone)}, late by {duration(each.late, spoken())} at most:")
        for step in steps:
            values = step.filled(folder.final(slot) / step.step.name)
            told = "".join(f"  {key}={value!r}" for key, value in values.items())
            show(f"  {step.step.name:<10}  {step.step.target}{told}")
    channels = desk.tell.settings.channels
    note(
        f"notices go by {' and '.join(channels)}" if channels else "nobody is told: no mail server, no webhook set"
    )


@job.command(short_help="Note and announce slots that nobody started.")
@json_option
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
    desk = Desk(ctx)
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


@job.command(short_help="Print files for cron, systemd and others.")
@click.option("--cron", "scheduler", flag_value="cron", help="Write lines for a crontab.")
@click.option("--systemd", "scheduler", flag_value="systemd", help="Write services and timers of systemd.")
@click.option("--airflow", "scheduler", flag_value="airflow", help="Write a DAG with a BashOperator for each job.")
@click.option("--github", "scheduler", flag_value="github", help="Write a workflow for a GitHub-style runner.")
@click.option("--out", type=Place(file_okay=False), metavar="DIR", help="Write the files into a folder.")
@pass_context
def install(ctx: Context, scheduler: str | None, out: Path | None) -> None:
    """Print what makes a scheduler start the jobs; nothing is installed.

    \b
    Each job is started at its slots, and `toolkit job missed` every hour. Settings come from
    the environment; the files name where to put them, so that no secret stands in them.

    \b
    Examples:
      toolkit job install --cron | crontab -
      toolkit job install --systemd --out /etc/systemd/system
    """
    if scheduler is None:
        raise click.UsageError("Name a scheduler: --cron, --systemd, --airflow or --github.")
    desk = Desk(ctx)
    files = SCHEDULERS[scheduler](Installation.of(desk.jobs, desk.settings, ctx.settings))
    for name, text in files.items():
        if out is None:
            show(f"# {name}\n{text}" if len(files) > 1 else text.rstrip("\n"))
        else:
            out.mkdir(parents=True, exist_ok=True)
            (out / name).write_text(text, encoding="utf-8")
            note(f"written: {out / name}")
