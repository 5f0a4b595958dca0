"""``toolkit job install``: files for a scheduler."""

from pathlib import Path

import click

from toolkit.entrypoints.cli.context import DONE, Context, Place, pass_context
from toolkit.entrypoints.cli.printing import note, show
from toolkit.entrypoints.jobs.job_settings import JobSettings
from toolkit.entrypoints.jobs.jobs_file import load_jobs
from toolkit.entrypoints.jobs.scheduler_files import SCHEDULERS, Installation


@click.command(short_help="Print files for cron, systemd and others.")
@click.option("--cron", "scheduler", flag_value="cron", help="Write lines for a crontab.")
@click.option("--systemd", "scheduler", flag_value="systemd", help="Write services and timers of systemd.")
@click.option("--airflow", "scheduler", flag_value="airflow", help="Write a DAG with a BashOperator for each job.")
@click.option("--github", "scheduler", flag_value="github", help="Write a workflow for a GitHub-style runner.")
@click.option("--out", type=Place(file_okay=False), metavar="DIR", help="Write the files into a folder.")
@pass_context
def install(ctx: Context, scheduler: str | None, out: Path | None) -> int:
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
    settings = JobSettings.from_environment(ctx.environ, ctx.settings)
    jobs = load_jobs(settings.file, ctx.settings.timezone)
    files = SCHEDULERS[scheduler](Installation.of(jobs, settings, ctx.settings))
    for name, text in files.items():
        if out is None:
            show(f"# {name}\n{text}" if len(files) > 1 else text.rstrip("\n"))
        else:
            out.mkdir(parents=True, exist_ok=True)
            (out / name).write_text(text, encoding="utf-8")
            note(f"written: {out / name}")
    return DONE
