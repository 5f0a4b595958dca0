"""A console in Portuguese: no sentence of the toolkit's own stays English."""

import io
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.support.message_catalogue import english_in
from tests.support.readme_commands import paths
from tests.support.uploaded_sales import add_sale

CPF = "11144477735\n"
WRITTEN_TO_THE_END = {
    "serve",
    "demo",
    "log cosign",
    "log cosign-request",
    "log timestamp",
    "db upgrade",
    "up",
    "down",
}
"""Commands that serve, need somebody else, or run on embedded services alone; tests of their own run them."""

WALK = Path(__file__).parents[1] / "data" / "walk"
"""Each command, rightly and wrongly used, a line each; the files that they are given, most of them wrong, too."""


def commands():
    for line in (WALK / "commands.txt").read_text("utf-8").splitlines():
        words = shlex.split(line)
        settings = dict(word.split("=", 1) for word in words[:1] if word.startswith("TOOLKIT_"))
        yield words[len(settings) :], settings


@pytest.mark.parametrize("path", [*paths()], ids=" ".join)
def test_every_help_is_portuguese(path, run, tmp_path):
    within = {"TOOLKIT_LANGUAGE": "pt-BR", "TOOLKIT_HOME": str(tmp_path)}
    assert english_in(run(*path, "--help", within=within).out) == {}


def test_every_command_answers_in_portuguese_to_right_and_wrong_use(
    run, database, add_file, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    shutil.copytree(WALK, tmp_path, dirs_exist_ok=True)
    add_file(add_sale(database, partner="Sul"))
    add_sale(database, "sale-2", utility_group="Z")
    left = {}
    for words, settings in commands():
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(CPF.encode()), encoding="utf-8"))
        settings = {name: str(tmp_path / text) if "." in text else text for name, text in settings.items()}
        said = run(*words, ends=None, TOOLKIT_LANGUAGE="pt-BR", **settings)
        if english := english_in(said.out + said.err):
            left[" ".join(words)] = english
    assert left == {}


def test_the_beginning_of_a_service_sql_is_the_same_sql_in_each_language(run, database, add_file):
    add_file(add_sale(database))
    mapped = ("db", "map", "--sales", "sales", "--records", "evidences", "--clients", "clients")
    english, portuguese = (run(*mapped, TOOLKIT_LANGUAGE=code).out for code in ("en", "pt-BR"))
    remark = re.compile("(?m)^-- (?!name: ).*")
    assert remark.sub("", portuguese) == remark.sub("", english)
    assert "email (text; pode ser NULL)" in portuguese
    assert english_in("\n".join(each for each in remark.findall(portuguese) if " (" not in each)) == {}


def test_the_walk_knows_every_command():
    walked = {" ".join(words) for words, _ in commands()} | WRITTEN_TO_THE_END
    groups = {path[:-1] for path in paths() if path}
    leaves = {" ".join(path) for path in paths() if path and path not in groups}
    assert {leaf for leaf in leaves if not any(f"{each} ".startswith(f"{leaf} ") for each in walked)} == set()
