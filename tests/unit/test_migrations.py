"""`make migration`: the next module of the schema's history."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from toolkit.database.schema import newest_revision

ROOT = Path(__file__).parents[2]
VENV = Path(sys.executable).parents[1]
VERSIONS = Path("toolkit", "database", "migrations", "versions")


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(ROOT / "toolkit", tmp_path / "toolkit", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / ".venv").symlink_to(VENV)  # make takes no path with a space
    return tmp_path


def make(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ("make", f"--file={ROOT / 'Makefile'}", "--old-file=setup", "migration", *arguments)
    return subprocess.run(command, cwd=copy, capture_output=True, text=True)


def test_a_generated_migration_has_the_next_number_and_passes_the_checks(copy):
    made = make(copy, "NAME=keep the reason")
    assert made.returncode == 0, made.stderr
    number = f"{int(newest_revision()) + 1:04}"
    written = copy / VERSIONS / f"{number}_keep_the_reason.py"
    names: dict[str, object] = {}
    exec(written.read_text(), names)
    assert (names["revision"], names["down_revision"]) == (number, newest_revision())
    for check in (("check",), ("format", "--check")):
        subprocess.run([VENV / "bin" / "ruff", *check, written], cwd=copy, check=True)
