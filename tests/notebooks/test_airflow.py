"""Airflow runs the job of the example; skipped where there is no command ``airflow``.

It does not fit into the environment of the toolkit, nor has it to::

    python -m venv /tmp/airflow
    /tmp/airflow/bin/pip install apache-airflow apache-airflow-providers-standard
    PATH=/tmp/airflow/bin:$PATH .venv/bin/python -m pytest tests/notebooks/test_airflow.py
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.support.observations import Story
from tests.support.waiting import PATIENCE
from toolkit.database.connection import Database
from toolkit.jobs.definitions import PACKAGED, Schedule
from toolkit.jobs.runs import runs_of

pytestmark = pytest.mark.skipif(shutil.which("airflow") is None, reason="Airflow is not installed")

JOBS = """
[jobs.nightly]
schedule = "0 2 * * *"
grace = "2d"

[[jobs.nightly.steps]]
name = "report"
command = "report --format csv --out {out}"
"""
Airflow = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def airflow(embedded_environment: dict[str, str], tmp_path: Path) -> Airflow:
    """The command of Airflow with a database of its own, and with a kernel that has the toolkit installed."""
    kernel = tmp_path / "jupyter" / "kernels" / "python3" / "kernel.json"
    kernel.parent.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel.write_text(json.dumps({"argv": argv, "display_name": "toolkit", "language": "python"}))
    settings = {
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": str(PATIENCE),
        "JUPYTER_PATH": str(tmp_path / "jupyter"),
    }

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        environ = os.environ | embedded_environment | settings
        return subprocess.run(
            ["airflow", *words], env=environ, capture_output=True, text=True, timeout=3 * PATIENCE
        )

    migrated = run("db", "migrate")
    assert migrated.returncode == 0, migrated.stderr
    return run


def test_airflow_runs_a_date_once_by_the_example(
    airflow: Airflow, database: Database, embedded_environment: dict[str, str], tmp_path: Path
) -> None:
    Story(database).sale("S-1")
    (tmp_path / "jobs.toml").write_text(JOBS)
    [text] = re.findall(r"^```python\n(.*?)^```", PACKAGED.with_name("README.md").read_text(), re.M | re.S)
    ours = {"TOOLKIT_JOBS": str(tmp_path / "jobs.toml"), "TOOLKIT_JOBS_OUT": str(tmp_path / "out")}
    environment = tmp_path / "environment"
    environment.write_text("".join(f"{name}={shlex.quote(value)}\n" for name, value in ours.items()))
    program = str(Path(sys.executable).with_name("toolkit"))
    text = text.replace("/etc/toolkit/environment", str(environment))
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "jobs.py").write_text(text.replace("/opt/toolkit/.venv/bin/toolkit", program))
    date = Schedule("0 2 * * *", ZoneInfo("America/Sao_Paulo")).latest(datetime.now(UTC))
    assert date is not None
    for _ in range(2):
        ran = airflow("dags", "test", "toolkit-nightly", date.isoformat())
        assert ran.returncode == 0, ran.stdout + ran.stderr
    [run] = runs_of(database)
    assert (run.logical_date, run.status, run.starts) == (date, "done", 1)
    assert (Path(run.folder) / "report" / "missing-evidence.csv").is_file()
