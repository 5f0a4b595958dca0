"""A console in Portuguese: no sentence of the toolkit's own stays English."""

import click
import pytest

from tests.support.english import english_in
from tests.support.uploaded_sales import add_sale
from toolkit import cli

OF_THE_CONTRACT = "Minimum evidence rules per utility group"
"""The title of a section of the contract, which is English."""


def paths(command, path=()):
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from paths(command.get_command(context, name), (*path, name))


@pytest.mark.parametrize("path", [*paths(cli._toolkit)], ids=" ".join)
def test_every_help_is_portuguese(path, run, tmp_path):
    within = {"TOOLKIT_LANGUAGE": "pt-BR", "TOOLKIT_HOME": str(tmp_path)}
    assert english_in(run(*path, "--help", within=within).out) == []


def test_every_answer_is_portuguese(run, database, add_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    add_file(add_sale(database))
    add_sale(database, "sale-2")
    people = ["--owner", "ana", "--approved-by", "bruno", "--reason", "no exterior", "--end", "2999-12-31"]
    for words in (
        *(["audit"], ["report", "--per-partner"], ["audit"], ["findings"]),
        *(["report", "--audit", "latest", "--since", "2026-01-01", "--out", "since"], ["verify", "reports"]),
        *(["changes", "--from", "2026-01-01", "--out", "changed"], ["sale", "show", "sale-1"]),
        *(["waiver", "add", "--sale", "sale-2", *people], ["waiver", "list"], ["explain", "MISSING_POV"]),
        *(["evidence", "list", "sale-1"], ["evidence", "verify"], ["bucket", "sync"], ["db", "check"]),
        *(["db", "map"], ["job", "list"], ["job", "check"], ["job", "history"], ["notebooks", "list"]),
        *(["verify", "absent"], ["report", "--partner", "ninguém"], ["sale", "show", "absent"]),
        ["report", "--as-of", "2999-01-01"],
    ):
        said = run(*words, ends=None, TOOLKIT_LANGUAGE="pt-BR")
        assert english_in(said.out.replace(OF_THE_CONTRACT, "") + said.err) == [], words
