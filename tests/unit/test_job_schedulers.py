"""The files that start the jobs: systemd takes its own, and every scheduler means the slots of the schedule."""

from __future__ import annotations

import ast
import importlib.util
import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import yaml

from toolkit.domain.jobs.definitions import Job, read_jobs
from toolkit.domain.jobs.schedules import Schedule
from toolkit.entrypoints.cli import main
from toolkit.entrypoints.jobs.scheduler_files import SCHEDULERS, Installation, on_calendar
from toolkit.errors import SettingsError

SAO_PAULO = "America/Sao_Paulo"
NOW = datetime(2026, 2, 27, 12, tzinfo=UTC)
needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


def job(expression: str) -> Job:
    steps = [{"name": "sync", "command": "bucket sync"}]
    table = {"schedule": expression, "about": 'Read 100% of "it"', "steps": steps}
    return read_jobs({"jobs": {"nightly": table}}, ZoneInfo(SAO_PAULO))["nightly"]


def made(expression: str = "0 2 * * *") -> Installation:
    place = Path("/opt/a b/toolkit")
    return Installation({"nightly": job(expression)}, str(place / "bin/toolkit"), place, place, place, SAO_PAULO)


@needs_systemd
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    installation = made()
    program = tmp_path / "tool kit"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    installation = Installation(
        installation.jobs, str(program), installation.file, installation.home, installation.out, SAO_PAULO
    )
    for name, text in SCHEDULERS["systemd"](installation).items():
        (tmp_path / name).write_text(text)
    units = sorted(str(path) for path in tmp_path.glob("toolkit-*"))
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


def test_a_crontab_holds_each_job_and_the_look_for_missed_slots() -> None:
    [text] = SCHEDULERS["cron"](made()).values()
    lines = [line for line in text.splitlines() if re.match(r"[0-9*]", line)]
    assert [line.split(" set -a")[0] for line in lines] == ["0 2 * * *", "23 * * * *"]
    assert "'/opt/a b/toolkit/bin/toolkit' job run nightly --wait 21600" in lines[0]
    assert f"CRON_TZ={SAO_PAULO}" in text


def test_a_runner_gets_a_workflow() -> None:
    [text] = SCHEDULERS["github"](made()).values()
    steps = yaml.safe_load(text)["jobs"]["run"]["steps"]
    assert [step["name"] for step in steps] == ["nightly", "missed"]


def test_airflow_gets_a_dag_for_each_job(tmp_path: Path) -> None:
    [text] = SCHEDULERS["airflow"](made()).values()
    calls = [
        each.func.id
        for each in ast.walk(ast.parse(text))
        if isinstance(each, ast.Call) and hasattr(each.func, "id")
    ]
    assert {"DAG", "BashOperator", "PapermillOperator", "CronTriggerTimetable"} <= set(calls)
    assert '" --slot {{ (dag_run.logical_date or dag_run.run_after).isoformat() }}"' in text
    assert 'report-{{ ts_nodash }}.ipynb"' in text


@pytest.mark.skipif(importlib.util.find_spec("airflow") is None, reason="Airflow is not installed")
def test_airflow_takes_the_dags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    for name, text in SCHEDULERS["airflow"](made()).items():
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
    bag = importlib.import_module("airflow.dag_processing.dagbag").DagBag(dag_folder=str(tmp_path))
    assert bag.import_errors == {}
    assert set(bag.dags) == {"toolkit_nightly", "toolkit_notebook"}


def test_the_command_prints_or_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environ = {"TOOLKIT_HOME": str(tmp_path)}
    assert main(["job", "install", "--cron"], environ) == 0
    assert "job run monthly" in capsys.readouterr().out
    assert main(["job", "install", "--systemd", "--out", str(tmp_path / "units")], environ) == 0
    assert len(list((tmp_path / "units").glob("toolkit-*.timer"))) == 3
    assert main(["job", "install"], environ) == 2
