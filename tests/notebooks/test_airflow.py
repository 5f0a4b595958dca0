"""Airflow runs the jobs, and a notebook by its PapermillOperator; skipped where there is no command ``airflow``.

It does not fit into the environment of the toolkit, nor has it to::

    python -m venv /tmp/airflow
    /tmp/airflow/bin/pip install apache-airflow apache-airflow-providers-{papermill,standard}
    PATH=/tmp/airflow/bin:$PATH .venv/bin/python -m pytest tests/notebooks/test_airflow.py
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import nbformat
import pytest

from tests.conftest import Run
from tests.integration.audited import Story
from tests.waiting import PATIENCE
from toolkit.domain.jobs.schedules import Schedule
from toolkit.operations.jobs.history import recent_runs
from toolkit.storage.database import Database

pytestmark = pytest.mark.skipif(shutil.which("airflow") is None, reason="Airflow is not installed")

JOBS = """
[jobs.nightly]
schedule = "0 2 * * *"
late = "2d"

[[jobs.nightly.steps]]
name = "report"
command = "report"
parameters = { format = "csv", out = "{out}" }
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


def test_airflow_runs_a_slot_once_and_a_notebook_by_papermill(
    run: Run, airflow: Airflow, database: Database, tmp_path: Path
) -> None:
    Story(database).sale("S-1")
    jobs, dags = tmp_path / "jobs.toml", tmp_path / "dags" / "toolkit_jobs.py"
    jobs.write_text(JOBS)
    ours = {"TOOLKIT_JOBS": str(jobs), "TOOLKIT_JOBS_OUT": str(tmp_path / "out")}
    made = ["job", "install", "--airflow", "--out", str(dags.parent)]
    run(*made, **ours)
    run("notebooks", "copy", tmp_path / "notebooks")
    text = dags.read_text().replace("/opt/toolkit", str(tmp_path))
    dags.write_text(text)
    slot = Schedule("0 2 * * *", ZoneInfo("America/Sao_Paulo")).latest(datetime.now(UTC))
    assert slot is not None
    for _ in range(2):
        ran = airflow("dags", "test", "toolkit-nightly", slot.isoformat())
        assert ran.returncode == 0, ran.stdout + ran.stderr
    [run] = recent_runs(database)
    assert (run.slot, run.status, run.starts) == (slot, "done", 1)
    assert (Path(run.folder) / "report" / "missing-evidence.csv").is_file()
    assert airflow("dags", "test", "toolkit-missed").returncode == 0

    ran = airflow("dags", "test", "toolkit_notebook")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    [executed] = tmp_path.glob("report-*.ipynb")
    assert "1 of 1 sale lacks evidence" in str(nbformat.read(executed, 4))
    assert (tmp_path / "reports" / "missing-evidence.csv").is_file()

    dags.write_text(text.replace('parameters={"out"', 'parameters={"uot"'))
    ran = airflow("dags", "test", "toolkit_notebook")
    assert "no parameter 'uot'. Did you mean 'out'?" in ran.stdout + ran.stderr
    assert ran.returncode != 0
