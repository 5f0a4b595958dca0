"""The operator's page names every code, key and variable, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from toolkit.domain.jobs import definitions
from toolkit.domain.jobs.outcomes import FailureCode
from toolkit.domain.jobs.relative_dates import RELATIVE_DATES
from toolkit.entrypoints import jobs

FOLDER = Path(jobs.__file__).parent
README = (FOLDER / "README.md").read_text(encoding="utf-8")


def test_every_failure_code_is_explained() -> None:
    named = set(re.findall(r"`([A-Z]+_[A-Z_]+|STOPPED|UNEXPECTED)`", README.split("## Notices")[0]))
    assert {name for name in named if not name.startswith(("TOOLKIT_", "DATABASE_URL"))} == set(FailureCode)


def test_every_relative_date_is_named() -> None:
    assert set(re.findall(r"`\{([a-z-]+)\}`", README)) == {*RELATIVE_DATES, "slot", "out"}


def test_every_key_is_explained() -> None:
    source = Path(definitions.__file__).read_text(encoding="utf-8")
    keys = set(re.findall(r'table\.take\("([a-z-]+)"', source)) - {"notify", "name", "notebook", "command"}
    keys |= {f"notify.{key}" for key in re.findall(r'notify\.take\("([a-z-]+)"', source)}
    table = README.split("| key of a job")[1].split("\n\n")[0]
    explained = {key for line in table.splitlines()[2:] for key in re.findall(r"`([a-z.-]+)`", line.split("|")[1])}
    assert explained == keys - {"parameters"}


def test_every_variable_is_explained() -> None:
    read = set()
    for path in FOLDER.rglob("*settings.py"):
        read |= set(re.findall(r'"(TOOLKIT_[A-Z_]+)"', path.read_text(encoding="utf-8")))
    assert read <= set(re.findall(r"`(TOOLKIT_[A-Z_]+)`", README))
