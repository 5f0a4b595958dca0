"""The shape of the package: rooms two levels deep, modules that one reads in a sitting, contracts that hold."""

import ast
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "toolkit"
MODULES = sorted(PACKAGE.rglob("*.py"))


def test_a_module_stands_in_a_room_and_has_at_most_500_lines():
    deep = [
        path for path in MODULES if len(path.relative_to(PACKAGE).parts) > 2 and "migrations" not in path.parts
    ]
    assert deep == []
    assert [path for path in MODULES if len(path.read_text("utf-8").splitlines()) > 500] == []


def test_no_class_name_stands_twice():
    named = defaultdict(list)
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                named[node.name].append(str(path.relative_to(ROOT)))
    assert {name: places for name, places in named.items() if len(places) > 1} == {}


@pytest.fixture(scope="module")
def complaints(tmp_path_factory):
    """The complaints of the import contracts about a copy with a shortcut of every kind."""
    copy = tmp_path_factory.mktemp("copy")
    shutil.copytree(PACKAGE, copy / "toolkit", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    for place, line in (
        ("contract/rules.py", "import toolkit.audit.judge, boto3, pandas"),
        ("reports/wording.py", "import sqlalchemy"),
        ("evidence/upload.py", "import click"),
        ("helpers.py", "import toolkit.errors"),
    ):
        with (copy / "toolkit" / place).open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")
    lint = (str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache")
    return " ".join(subprocess.run(lint, cwd=copy, capture_output=True, text=True).stdout.split())


@pytest.mark.parametrize(
    "contract",
    [
        "Imports point downwards from room to room",
        "SQL lives below the reports, and in jobs",
        "S3 lives in the bucket",
        "The contract knows no files, tables or network",
        "Web, command line and notebook libraries live at the top",
    ],
)
def test_a_shortcut_breaks_its_contract(complaints, contract):
    assert f"{contract} BROKEN" in complaints
