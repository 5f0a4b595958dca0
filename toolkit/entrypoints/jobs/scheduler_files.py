"""Write the files with which cron, systemd, Airflow or a GitHub-style runner start the jobs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from cronsim import CronSim
from jinja2 import Environment, PackageLoader, StrictUndefined

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

    @property
    def starts(self) -> list[Start]:
        """The commands that a scheduler starts: the slots of each job, and every hour the look for missed ones."""
        missed = Start(None, _MISSED, _HOURLY, [self.program, "job", "missed"], 600)
        return [*(self._start(job) for job in self.jobs.values()), missed]

    def _start(self, job: Job) -> Start:
        """Return the start of a slot; of two schedulers the second waits, and takes over if the first dies."""
        seconds = int(job.timeout.total_seconds())
        command = [self.program, "job", "run", job.name, "--wait", str(seconds), "--log", "json"]
        return Start(job, job.name, job.schedule.expression, command, 2 * seconds + 300)


@dataclass(frozen=True, slots=True)
class Start:
    """One entry of a scheduler: its times as cron writes them, its command, and the seconds that it may take."""

    job: Job | None
    name: str
    times: str
    command: list[str]
    seconds: int
    """Those of a job suffice to wait for another start, and then to do the work itself."""


def _in_shell(command: list[str]) -> str:
    return f"set -a; [ ! -r {_ENVIRONMENT} ] || . {_ENVIRONMENT}; {shlex.join(command)}"


def _unit_text(word: object) -> str:
    text = str(word).replace("%", "%%")
    return text if not any(each in text for each in " \"'\\") else '"' + text.replace('"', '\\"') + '"'


_TEMPLATES: Final = Environment(  # noqa: S701  # no markup
    loader=PackageLoader("toolkit.entrypoints.jobs"),
    undefined=StrictUndefined,
    trim_blocks=True,
    keep_trailing_newline=True,
    variable_start_string="<<",
    variable_end_string=">>",
    block_start_string="<%",
    block_end_string="%>",
    comment_start_string="<#",
    comment_end_string="#>",
)
_TEMPLATES.filters |= {"in_shell": _in_shell, "in_words": shlex.join, "repr": repr, "unit_text": _unit_text}


def _filled(template: str, made: Installation, **values: Any) -> str:
    return _TEMPLATES.get_template(template).render(made=made, environment_file=_ENVIRONMENT, **values)


def systemd(made: Installation) -> dict[str, str]:
    """Return a service and a timer for each job, and for the look for missed slots.

    The timers of jobs are persistent: a slot that came while the machine was off is started when it is on again;
    the toolkit decides whether that is still within its window.
    """
    files = {}
    for start in made.starts:
        about = "Look for jobs of the evidence toolkit that were not started"
        if start.job is not None:
            about = start.job.about or f"Job {start.name} of the evidence toolkit"
        times = ["*-*-* *:23:00"] if start.job is None else on_calendar(start.job)
        files[f"toolkit-{start.name}.service"] = _filled("systemd.service", made, start=start, about=about)
        files[f"toolkit-{start.name}.timer"] = _filled(
            "systemd.timer", made, start=start, about=about, times=times
        )
    return files


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


SCHEDULERS: Final[dict[str, Callable[[Installation], dict[str, str]]]] = {
    "cron": lambda made: {"crontab": _filled("crontab", made)},
    "systemd": systemd,
    # Airflow schedules, and the toolkit sees to it that a slot is done once.
    "airflow": lambda made: {"toolkit_jobs.py": _filled("airflow", made)},
    # Such runners know UTC only, so the workflow starts often and the toolkit decides what is due.
    "github": lambda made: {"toolkit-jobs.yml": _filled("github.yml", made)},
}
"""Each scheduler, and the function that writes its files from the templates beside this module."""
