"""The commands that a guide shows, and a run of those of the README, one after the other."""

import re
import shlex
import subprocess
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import click

from toolkit.cli import _toolkit
from toolkit.samples.dataset import make_samples

README = Path(__file__).parents[2] / "README.md"

ELSEWHERE = re.compile(r"toolkit (up|down|serve|bucket sync --inventory)\b")
"""What would touch the servers of the tests, does not end, or asks a bucket that a person has."""


def paths(command=_toolkit, path=()):
    """The words of each command and group, the empty ones of all first."""
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from paths(command.get_command(context, name), (*path, name))


def commands(guide):
    """The lines that begin with ``$ toolkit``, without the remark behind them; a backslash goes on below."""
    shown = re.findall(r"^\$ (toolkit .+?)(?:\s{2,}#.*)?$", guide.replace("\\\n", ""), flags=re.MULTILINE)
    return [" ".join(each.split()) for each in shown]


def check_usage(line):
    """The command of a line exists, and its options; the command, and the words behind it."""
    command, words = _toolkit, shlex.split(line)[1:]
    context = click.Context(command)
    while isinstance(command, click.Group):
        found = command.get_command(context, words[0])
        assert found is not None, f"there is no {words[0]}"
        command, context, words = found, click.Context(found, parent=context), words[1:]
    names = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= names, f"unknown options of {command.name}"
    return command, words


def run_the_readme(run, environ):
    """Run each command of the README; each does its job, though it may find what needs attention."""
    known = {"TOOLKIT_JWT_SECRET": "not-a-secret-but-long-enough-for-tests"}
    for line in commands(README.read_text(encoding="utf-8")):
        if ELSEWHERE.match(line):
            continue
        if "EVIDENCE_ID" in line:
            listed = run("evidence", "list", "V-2026-00064", "--json", within=environ).told
            line = line.replace("EVIDENCE_ID", listed["records"][0]["id"])
        if line.startswith("toolkit job run"):
            line += " --late"  # a night's grace time has passed at most hours of the day
        line, _, _given = line.partition(" < ")
        words = subprocess.check_output(["sh", "-c", f"printf '%s\\n' {line}"], text=True).splitlines()
        with patch("sys.stdin", StringIO(f"{make_samples().clients[0]['cpf']}\n")):
            ran = run(*words[1:], ends=None, within=environ | known)
        assert ran.status in (0, 3), (line, ran)
