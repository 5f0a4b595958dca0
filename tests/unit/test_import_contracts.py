"""The import contracts notice what would undo the layers: each way is tried on a copy."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> str:
    """Return the contracts' complaints about a copy with a shortcut of every kind."""
    copy = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "toolkit", copy / "toolkit", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    operations = copy / "toolkit" / "operations"
    shortcuts = {
        copy / "toolkit" / "helpers.py": "import toolkit.storage.database",
        operations / "helpers.py": "import toolkit.storage.database",
        copy / "toolkit" / "domain" / "rules.py": "import boto3",
        operations / "atomic_file.py": "import sqlalchemy, click",
        copy / "toolkit" / "reports" / "wording.py": "import sqlalchemy",
        operations / "spreadsheets" / "records.py": "import toolkit.operations.register.bulk_load.columns",
        operations
        / "register"
        / "bulk_load"
        / "shapes.py": "import toolkit.operations.register.bulk_load.repairs",
        operations
        / "register"
        / "bulk_load"
        / "repairs.py": "import toolkit.operations.register.bulk_load.shapes",
    }
    for path, line in shortcuts.items():
        with path.open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")
    lint = (str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache")
    done = subprocess.run(lint, cwd=copy, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    return " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("contract", "shortcut"),
    [
        ("Imports point downwards, and every package has its layer", "toolkit.helpers"),
        ("The stages of the work stand one above the other", "toolkit.operations.helpers"),
        (
            "The stages of the work stand one above the other",
            "spreadsheets.records -> toolkit.operations.register.bulk_load",
        ),
        ("No circles among siblings", "No cycles are allowed in toolkit.operations."),
        ("No circles among siblings", "No cycles are allowed in toolkit.operations.register.bulk_load."),
        ("SQL lives in storage and operations", "toolkit.reports.wording -> sqlalchemy"),
        ("S3 lives in storage", "toolkit.domain.rules -> boto3"),
        (
            "Web, command line and notebook libraries live in the entrypoints",
            "toolkit.operations.atomic_file -> click",
        ),
    ],
)
def test_a_shortcut_breaks_its_contract(told, contract, shortcut):
    summary, _, reasons = told.partition("Broken contracts")
    assert f"{contract} BROKEN" in summary
    assert shortcut in reasons.partition(f"{contract} --")[2]
