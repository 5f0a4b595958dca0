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
_MISSED: Final = "missed"
_HOURLY: Final = "23 * * * *"


@dataclass(frozen=True, slots=True)
class Installation:
    """The jobs, and how the toolkit is called where they will run."""

    jobs: Mapping[str, Job]
    program: str
    environment: Mapping[str, str]
    """The settings that the files name; those of the machine's own file win over them."""

    @classmethod
    def of(cls, jobs: Mapping[str, Job], job_settings: JobSettings, settings: Settings) -> Installation:
        """Return the installation that this process belongs to.

        Raises:
            SettingsError: a job has the name of what looks for missed slots.
        """
        if _MISSED in jobs:
            raise SettingsError(
                f"job {_MISSED}: the files of a scheduler use this name; give the job another one."
            )
        named = {
            "TOOLKIT_JOBS": job_settings.file,
            "TOOLKIT_HOME": settings.home,
            "TOOLKIT_JOBS_OUT": job_settings.out,
            "TOOLKIT_TIMEZONE": settings.timezone.key,
        }
        program = Path(sys.executable).with_name("toolkit")
        return cls(jobs, str(program), {name: str(value) for name, value in named.items()})

    @property
    def zone(self) -> str:
        """The zone of the schedules."""
        return self.environment["TOOLKIT_TIMEZONE"]

    def command(self, job: Job) -> list[str]:
        """Return the command of a slot; of two schedulers the second waits, and takes over if the first dies."""
        wait = str(int(job.timeout.total_seconds()))
        return [self.program, "job", "run", job.name, "--wait", wait, "--log", "json"]

    @property
    def missed(self) -> list[str]:
        """The command that looks for missed slots."""
        return [self.program, "job", "missed"]


def _limit(job: Job) -> int:
    """Return the seconds that a start may take: it may wait for another one, and then do the work itself."""
    return int(job.timeout.total_seconds() * 2 + 300)


def _in_shell(command: list[str]) -> str:
    return f"set -a; [ ! -r {_ENVIRONMENT} ] || . {_ENVIRONMENT}; {shlex.join(command)}"


def cron(made: Installation) -> dict[str, str]:
    """Return one crontab."""
    lines = [
        "# Jobs of the evidence toolkit. The settings are in the file that each line reads first.",
        f"# Debian's cron ignores CRON_TZ: set the zone of the machine to {made.zone} there.",
        f"CRON_TZ={made.zone}",
        *(f"{name}={value}" for name, value in made.environment.items()),
        "",
    ]
    commands = [(job.schedule.expression, made.command(job)) for job in made.jobs.values()]
    for times, command in [*commands, (_HOURLY, made.missed)]:
        lines.append(f"{times} {_in_shell(command)}".replace("%", "\\%"))
    return {"crontab": "\n".join(lines) + "\n"}


def systemd(made: Installation) -> dict[str, str]:
    """Return a service and a timer for each job, and for the look for missed slots."""
    files = {}
    for job in made.jobs.values():
        name = f"toolkit-{job.name}"
        about = job.about or f"Job {job.name} of the evidence toolkit"
        files[f"{name}.service"] = _service(made, about, made.command(job), _limit(job))
        # Persistent: a slot that came while the machine was off is started when it is on again; the toolkit
        # decides whether that is still within its window.
        files[f"{name}.timer"] = _timer(about, on_calendar(job), persistent=True)
    about = "Look for jobs of the evidence toolkit that were not started"
    service = _service(made, about, made.missed, 600, extra="SuccessExitStatus=3\n")
    files[f"toolkit-{_MISSED}.service"] = service
    files[f"toolkit-{_MISSED}.timer"] = _timer(about, ["*-*-* *:23:00"], persistent=False)
    return files


def _service(made: Installation, about: str, command: list[str], seconds: int, extra: str = "") -> str:
    settings = "\n".join(
        f"Environment={_unit_text(f'{name}={value}')}" for name, value in made.environment.items()
    )
    return f"""\
[Unit]
Description={about.replace("%", "%%")}
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
EnvironmentFile=-{_ENVIRONMENT}
{settings}
ExecStart={" ".join(_unit_text(word) for word in command)}
TimeoutStartSec={seconds}
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
    # A trigger timetable runs at the logical date, which is the slot.
    slot = " --slot {{ (dag_run.logical_date or dag_run.run_after).isoformat() }}"
    dags = [
        _dag(
            made, job.name, job.about, job.schedule.expression, _in_shell(made.command(job)) + slot, 2, _limit(job)
        )
        for job in made.jobs.values()
    ]
    about = "Look for jobs that were not started; the task fails where there are some."
    dags.append(_dag(made, _MISSED, about, _HOURLY, _in_shell(made.missed), 0, 600))
    return {
        "toolkit_jobs.py": f'''"""Jobs of the evidence toolkit, and a notebook of it run by papermill alone."""

from datetime import timedelta

import pendulum
from airflow import DAG
from airflow.providers.papermill.operators.papermill import PapermillOperator
from airflow.providers.standard.operators.bash import BashOperator
from airflow.timetables.trigger import CronTriggerTimetable

SETTINGS = {made.environment!r}
{"".join(dags)}
with DAG(
    dag_id="toolkit_notebook",
    description="One notebook by papermill, for a look; `toolkit notebooks copy DIR` hands it out.",
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz={made.zone!r}),
):
    PapermillOperator(
        task_id="report",
        input_nb="/opt/toolkit/notebooks/03_missing_evidence_report.ipynb",
        output_nb="/opt/toolkit/report-{{{{ ts_nodash }}}}.ipynb",
        parameters={{"out": "/opt/toolkit/reports"}},
    )
'''
    }


def _dag(made: Installation, name: str, about: str, times: str, command: str, retries: int, seconds: int) -> str:
    return f"""
with DAG(
    dag_id="toolkit-{name}",
    description={about!r},
    schedule=CronTriggerTimetable({times!r}, timezone={made.zone!r}),
    start_date=pendulum.datetime(2026, 1, 1, tz={made.zone!r}),
    catchup=False,
    max_active_runs=1,
):
    BashOperator(
        task_id="run",
        bash_command={command!r},
        env=SETTINGS,
        append_env=True,
        retries={retries},
        execution_timeout=timedelta(seconds={seconds}),
    )
"""


def github(made: Installation) -> dict[str, str]:
    """Return a workflow; such runners know UTC only, so it starts often and the toolkit decides what is due."""
    steps = "".join(
        f"""\
      - name: {job.name}
        if: ${{{{ !cancelled() }}}}
        run: {shlex.join(["toolkit", *made.command(job)[1:]])}
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
