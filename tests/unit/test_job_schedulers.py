"""The files that start the jobs: systemd takes its own, and every scheduler means the slots of the schedule."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import yaml

from tests.conftest import Run
from toolkit.domain.jobs.definitions import Job, read_jobs
from toolkit.domain.jobs.schedules import Schedule
from toolkit.entrypoints.jobs.scheduler_files import SCHEDULERS, Installation, on_calendar
from toolkit.errors import SettingsError

SAO_PAULO = "America/Sao_Paulo"
NOW = datetime(2026, 2, 27, 12, tzinfo=UTC)
needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


def job(expression: str) -> Job:
    steps = [{"name": "sync", "command": "bucket sync"}]
    table = {"schedule": expression, "about": 'Read 100% of "it"', "steps": steps}
    return read_jobs({"jobs": {"nightly": table}}, ZoneInfo(SAO_PAULO))["nightly"]


def made(expression: str = "0 2 * * *", program: str = "/opt/a b/toolkit") -> Installation:
    settings = {"TOOLKIT_JOBS": "/opt/a b/100%.toml", "TOOLKIT_TIMEZONE": SAO_PAULO}
    return Installation({"nightly": job(expression)}, program, settings)


@needs_systemd
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    program = tmp_path / "tool kit"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for name, text in SCHEDULERS["systemd"](made(program=str(program))).items():
        (tmp_path / name).write_text(text)
    units = sorted(str(path) for path in tmp_path.glob("toolkit-*"))
    assert len(units) == 4
    verified = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True)
    assert (verified.returncode, verified.stderr) == (0, "")


@needs_systemd
@pytest.mark.parametrize(
    "expression",
    [
        "0 2 * * *",
        "*/20 1-3 * * *",
        "0 4 1 * *",
        "30 6 * * MON-FRI",
        "0 0 1,15 * SUN",
        "5 4 */10 * *",
        "0 3 29 2 *",
    ],
)
def test_systemd_means_the_same_slots(expression: str) -> None:
    schedule = Schedule(expression, ZoneInfo(SAO_PAULO))
    slot, slots = NOW, set()
    for _ in range(3):
        slot = schedule.following(slot)
        slots.add(slot)
    found = set()
    for calendar in on_calendar(job(expression)):
        command = [
            "systemd-analyze",
            "calendar",
            "--iterations=3",
            f"--base-time=@{NOW.timestamp():.0f}",
            calendar,
        ]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, env={"TZ": "UTC"}).stdout
        times = re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", shown)
        found |= {datetime.strptime(time, "%Y-%m-%d %H:%M:%S UTC").replace(tzinfo=UTC) for time in times}
    assert set(sorted(found)[:3]) == slots


def test_what_systemd_cannot_say_is_refused() -> None:
    for expression in ("0 3 L * *", "0 3 * * 5L", "0 3 * * MON#2"):
        with pytest.raises(SettingsError, match="systemd cannot say"):
            on_calendar(job(expression))


def test_a_crontab_holds_each_job_and_the_look_for_missed_slots(tmp_path: Path) -> None:
    program = tmp_path / "tool%kit"
    program.write_text('#!/bin/sh\necho "$TOOLKIT_JOBS" "$@"\n')
    program.chmod(0o755)
    [text] = SCHEDULERS["cron"](made(program=str(program))).values()
    lines = [line for line in text.splitlines() if re.match(r"[0-9*]", line)]
    assert [line.split(" set -a")[0] for line in lines] == ["0 2 * * *", "23 * * * *"]
    settings = dict(line.split("=", 1) for line in text.splitlines() if re.match(r"[A-Z_]+=", line))
    assert settings["CRON_TZ"] == settings["TOOLKIT_TIMEZONE"] == SAO_PAULO
    for line, told in zip(lines, ["job run nightly --wait 21600 --log json", "job missed"], strict=True):
        command = line.split(" ", 5)[5].replace("\\%", "%")  # as cron reads it
        ran = subprocess.run(["sh", "-c", command], env=settings, capture_output=True, text=True, check=True)
        assert ran.stdout == f"/opt/a b/100%.toml {told}\n"


def test_a_runner_gets_a_workflow() -> None:
    [text] = SCHEDULERS["github"](made()).values()
    steps = yaml.safe_load(text)["jobs"]["run"]["steps"]
    assert [step["run"] for step in steps] == [
        "toolkit job run nightly --wait 21600 --log json",
        "toolkit job missed",
    ]


def test_airflow_gets_a_dag_for_each_job() -> None:
    [text] = SCHEDULERS["airflow"](made()).values()
    calls = [each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Call)]
    dags = [each.keywords[0].value.value for each in calls if getattr(each.func, "id", "") == "DAG"]
    assert dags == ["toolkit-nightly", "toolkit-missed", "toolkit_notebook"]
    assert "--slot {{ (dag_run.logical_date or dag_run.run_after).isoformat() }}" in text
    assert 'report-{{ ts_nodash }}.ipynb"' in text


def test_the_command_prints_or_writes_them(run: Run, tmp_path: Path) -> None:
    environ = {"TOOLKIT_HOME": str(tmp_path)}
    assert "job run monthly" in run("job", "install", "--cron", within=environ).out
    run("job", "install", "--systemd", "--out", tmp_path / "units", within=environ)
    assert len(list((tmp_path / "units").glob("toolkit-*.timer"))) == 3
    run("job", "install", ends=2, within=environ)
    jobs = tmp_path / "jobs.toml"
    jobs.write_text('[jobs.missed]\nschedule = "0 2 * * *"\nsteps = [{ name = "audit", command = "audit" }]\n')
    said = run("job", "install", "--cron", ends=2, within={**environ, "TOOLKIT_JOBS": str(jobs)}).err
    assert "give the job another one" in said
