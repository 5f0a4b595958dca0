"""The public face: names, and help for every command."""

import doctest
import re
import subprocess
import sys

import click
import pytest

import toolkit
from toolkit.cli import _toolkit


def test_public_names_are_there_and_sorted():
    assert toolkit.__all__ == sorted(toolkit.__all__)
    assert all(hasattr(toolkit, name) for name in toolkit.__all__)


def test_the_example_of_the_package_runs():
    assert doctest.testmod(toolkit).failed == 0


def commands(group, path=()):
    context = click.Context(group)
    found = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        found.append((*path, name))
        if isinstance(command, click.Group):
            found += commands(command, (*path, name))
    return found


@pytest.mark.parametrize("path", commands(_toolkit), ids=" ".join)
def test_every_command_has_help(run, path):
    shown = run(*path, "--help", within={}).out
    assert "Usage: toolkit " + " ".join(path) in shown
    assert len(shown.splitlines()) > 4
    assert re.search(r"^  Examples?:\n    \S", shown, re.MULTILINE)
    assert not re.search(r"\w\.\.\.$", shown.replace("ARGS]...", "").partition("Commands:")[2], re.MULTILINE)


HEAVY = {
    *("alembic", "boto3", "ibis", "jinja2", "numpy", "pandas", "papermill", "psutil"),
    *("psycopg", "pyarrow", "sqlalchemy", "starlette", "tqdm", "urllib3"),
}
"""The packages that take longest to load."""


CALLS = """
from toolkit.cli import main
for call in (["--help"], ["--version"], ["notebooks", "list"]):
    assert main(call) == 0
"""


@pytest.mark.parametrize(
    ("program", "loaded"),
    [(CALLS, []), ("import toolkit.evidence.inspection", ["numpy"])],
    ids=["commands", "the process that looks at files"],
)
def test_what_needs_no_database_loads_nothing_heavy(program, loaded):
    shown = f"{program}\nimport sys; print(sorted({HEAVY} & set(sys.modules)))"
    printed = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True).stdout
    assert printed.endswith(f"{loaded}\n")


@pytest.mark.parametrize(
    "command",
    [["report", "--out", ""], ["clients", "load", ""], ["credentials", "request", "--out", ""], ["verify", ""]],
    ids=" ".join,
)
def test_an_empty_path_is_wrong_usage(run, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "the path is empty" in run(*command, ends=2, within={}).err
    assert not any(tmp_path.iterdir())
