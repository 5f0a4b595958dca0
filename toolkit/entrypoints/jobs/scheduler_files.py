"""Write the files with which cron, systemd, Airflow or a GitHub-style runner start the jobs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cronsim import CronSim

from toolkit.domain.jobs.definitions import Job
from toolkit.entrypoints.jobs.job_settings import JobSettings
from toolkit.errors import SettingsError
from toolkit.settings import Settings

_DAYS: Final = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_ENVIRONMENT: Final = "/etc/toolkit/environment"


@dataclass(frozen=True, slots=True)
class Installation:
    """The jobs, and how the toolkit is called where they will run."""

    jobs: Mapping[str, Job]
    program: str
    file: Path
    home: Path
    out: Path
    zone: str

    @classmethod
    def of(cls, jobs: Mapping[str, Job], job_settings: JobSettings, settings: Settings) -> Installation:
        """Return the installation that this process belongs to."""
        program = Path(sys.executable).with_name("toolkit")
        return cls(jobs, str(program), job_settings.file, settings.home, job_settings.out, settings.timezone.key)

    def command(self, job: Job) -> list[str]:
        """Return the command of a slot; of two schedulers the second waits, and takes over if the first dies."""
        wait = str(int(job.timeout.total_seconds()))
        return [self.program, "job", "run", job.name, "--wait", wait]


def cron(made: Installation) -> dict[str, str]:
    """Return one crontab."""
    lines = [
        "# Jobs of the evidence toolkit. The settings are in the file that is read first.",
        f"# Debian's cron ignores CRON_TZ: set the zone of the machine to {made.zone} there.",
        f"CRON_TZ={made.zone}",
        f"TOOLKIT_JOBS={made.file}",
        "",
    ]
    read = f"set -a; [ ! -r {_ENVIRONMENT} ] || . {_ENVIRONMENT};"
    for job in made.jobs.values():
        command = f"{read} {shlex.join(made.command(job))} --log json"
        lines.append(f"{job.schedule.expression} {command.replace('%', chr(92) + '%')}")
    missed = f"{read} {shlex.join([made.program, 'job', 'missed'])}"
    lines.append(f"23 * * * * {missed.replace('%', chr(92) + '%')}")
    return {"crontab": "\n".join(lines) + "\n"}


def systemd(made: Installation) -> dict[str, str]:
    """Return a service and a timer for each job, and for the look for missed slots."""
    files = {}
    for job in made.jobs.values():
        name = f"toolkit-{job.name}"
        about = job.about or f"Job {job.name} of the evidence toolkit"
        files[f"{name}.service"] = _service(made, about, made.command(job), job.timeout.total_seconds() * 2 + 300)
        # Persistent: a slot that came while the machine was off is started when it is on again; the toolkit
        # decides whether that is still within its window.
        files[f"{name}.timer"] = _timer(about, on_calendar(job), persistent=True)
    about = "Look for jobs of the evidence toolkit that were not started"
    files["toolkit-missed.service"] = _service(
        made, about, [made.program, "job", "missed"], 600, extra="SuccessExitStatus=3\n"
    )
    files["toolkit-missed.timer"] = _timer(about, ["*-*-* *:23:00"], persistent=False)
    return files


def _service(made: Installation, about: str, command: list[str], seconds: float, extra: str = "") -> str:
    return f"""\
[Unit]
Description={about.replace("%", "%%")}
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
EnvironmentFile=-{_ENVIRONMENT}
Environment={_unit_text(f"TOOLKIT_JOBS={made.file}")} {_unit_text(f"TOOLKIT_HOME={made.home}")}
Environment=TOOLKIT_TIMEZONE={made.zone}
ExecStart={" ".join(_unit_text(word) for word in command)}
TimeoutStartSec={seconds:.0f}
TimeoutStopSec=90
KillMode=mixed
{extra}"""


def _unit_text(word: object) -> str:
    text = str(word).replace("%", "%%")
    return text if not any(each in text for each in " \"'\\") else '"' + text.replace('"', '\\"') + '"'


def _timer(about: str, times: Iterable[str], *, persistent: bool) -> str:
    calendars = "\n".join(f"OnCalendar={time}" for time in times)
    return f"""\
[Unit]
Description={about.replace("%", "%%")}

[Timer]
{calendars}
Persistent={str(persistent).lower()}
AccuracySec=1s

[Install]
WantedBy=timers.target
"""


def on_calendar(job: Job) -> list[str]:
    """Return the schedule as systemd writes it: two lines where cron takes either of two kinds of days.

    Raises:
        SettingsError: systemd has no word for it.
    """
    parts = CronSim(job.schedule.expression, datetime(2024, 1, 1, tzinfo=UTC))
    days = sorted(parts.days)
    weekdays = sorted({each % 7 for each in parts.weekdays if isinstance(each, int)})
    if days[0] < 0 or any(not isinstance(each, int) for each in parts.weekdays):
        raise SettingsError(f"job {job.name}: systemd cannot say {job.schedule.expression!r}; use plain numbers.")
    date = f"*-{_numbers(parts.months, 12)}"
    time = f"{_numbers(parts.hours, 24)}:{_numbers(parts.minutes, 60)}:00 {job.schedule.zone.key}"
    all_days, all_weekdays = len(days) == 31, len(weekdays) == len(_DAYS)
    names = ",".join(_DAYS[each] for each in weekdays)
    on_days = f"{date}-{_numbers(days, 31)} {time}"
    on_weekdays = f"{names} {date}-* {time}"
    if all_weekdays:
        return [on_days]
    if all_days:
        return [on_weekdays]
    return [f"{names} {on_days}"] if parts.day_and else [on_days, on_weekdays]


def _numbers(numbers: Iterable[int], all_of_them: int) -> str:
    found = sorted(numbers)
    return "*" if len(found) == all_of_them else ",".join(f"{each:02}" for each in found)


def airflow(made: Installation) -> dict[str, str]:
    """Return a DAG for each job: Airflow schedules, the toolkit sees to it that a slot is done once."""
    dags = "".join(
        f"""
with DAG(
    dag_id="toolkit_{job.name.replace("-", "_")}",
    description={job.about!r},
    schedule=CronTriggerTimetable({job.schedule.expression!r}, timezone={made.zone!r}),
    start_date=pendulum.datetime(2026, 1, 1, tz={made.zone!r}),
    catchup=False,
    max_active_runs=1,
):
    BashOperator(
        task_id="run",
        # A trigger timetable runs at the logical date, which is the slot.
        bash_command={shlex.join(made.command(job))!r}
        " --slot {{{{ (dag_run.logical_date or dag_run.run_after).isoformat() }}}}",
        env={{"TOOLKIT_JOBS": {str(made.file)!r}, "TOOLKIT_TIMEZONE": {made.zone!r}}},
        append_env=True,
        retries=2,
        execution_timeout=timedelta(seconds={int(job.timeout.total_seconds() * 2 + 300)}),
    )
"""
        for job in made.jobs.values()
    )
    return {
        "toolkit_jobs.py": f'''"""Jobs of the evidence toolkit, and a notebook of it run by papermill alone."""

from datetime import timedelta

import pendulum
from airflow import DAG
from airflow.providers.papermill.operators.papermill import PapermillOperator
from airflow.providers.standard.operators.bash import BashOperator
from airflow.timetables.trigger import CronTriggerTimetable
{dags}

with DAG(
    dag_id="toolkit_notebook",
    description="One notebook by papermill, for a look; `toolkit notebooks copy DIR` hands it out.",
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz={made.zone!r}),
):
    PapermillOperator(
        task_id="report",
        input_nb="/opt/toolkit/notebooks/03_missing_evidence_report.ipynb",
        output_nb="/opt/toolkit/runs/report-{{{{ ts_nodash }}}}.ipynb",
        parameters={{"out": "/opt/toolkit/reports"}},
    )
'''
    }


def github(made: Installation) -> dict[str, str]:
    """Return a workflow; such runners know UTC only, so it starts often and the toolkit decides what is due."""
    steps = "".join(
        f"""\
      - name: {job.name}
        if: ${{{{ !cancelled() }}}}
        run: toolkit job run {job.name} --wait {int(job.timeout.total_seconds())} --log json
"""
        for job in made.jobs.values()
    )
    return {
        "toolkit-jobs.yml": f"""\
name: toolkit jobs
on:
  schedule:
    - cron: "11 * * * *"  # often: a slot is run once, and a runner's schedule may skip an hour
  workflow_dispatch:
concurrency: toolkit-jobs
jobs:
  run:
    runs-on: [self-hosted, toolkit]
    env:
      DATABASE_URL: ${{{{ secrets.DATABASE_URL }}}}
      EVIDENCE_BUCKET: ${{{{ vars.EVIDENCE_BUCKET }}}}
      AWS_ACCESS_KEY_ID: ${{{{ secrets.AWS_ACCESS_KEY_ID }}}}
      AWS_SECRET_ACCESS_KEY: ${{{{ secrets.AWS_SECRET_ACCESS_KEY }}}}
      TOOLKIT_TIMEZONE: {made.zone}
      TOOLKIT_JOBS_OUT: /srv/toolkit/jobs
    steps:
{steps}      - name: missed
        if: ${{{{ !cancelled() }}}}
        run: toolkit job missed
"""
    }


SCHEDULERS: Final[dict[str, Callable[[Installation], dict[str, str]]]] = {
    "cron": cron,
    "systemd": systemd,
    "airflow": airflow,
    "github": github,
}
"""Each scheduler, and the function that writes its files."""
