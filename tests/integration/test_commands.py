"""Any command: it answers any argument with a sentence, in Portuguese too, and tells no person unasked."""

import io
import os
import re
import shlex
import shutil
import signal
from pathlib import Path
from threading import Timer
from unittest.mock import Mock

import duckdb
import pytest

from tests.support.client_rows import client, write_csv
from tests.support.message_catalogue import english_in
from tests.support.readme_commands import paths
from tests.support.uploaded_sales import add_sale
from toolkit.cli import main
from toolkit.cli.context import DONE, FAILED, NEEDS_ATTENTION, WRONG_USAGE

ODD = ["", "S-9\udcff", "S-9\x00", "9" * 5000, "\u202eS-9", "2026-99-99"]

WALK = Path(__file__).parents[1] / "data" / "walk"
"""Each command, rightly and wrongly used, a line each; the files that they are given, most of them wrong, too."""

COMMANDS = (WALK / "odd.txt").read_text("utf-8").splitlines()
"""Commands with a question mark in the place of an odd argument."""


@pytest.mark.parametrize("command", COMMANDS)
def test_an_odd_argument_gets_a_sentence(run, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "clients.csv").write_text("cpf,rg\n52998224725,1\n")
    (tmp_path / "manifest.csv").write_text("saleId,fileName,fileFormat,type,evidenceType\n")
    (tmp_path / "credentials.jsonl").write_text("")
    given = {"ID": "0199c0de-0000-7000-8000-000000000001"}
    for odd in ODD:
        line = [odd if word == "?" else given.get(word, word) for word in command.split()]
        ran = run(*line, ends=None, TOOLKIT_JWT_SECRET="s" * 32)
        assert ran.status in {DONE, FAILED, WRONG_USAGE, NEEDS_ATTENTION}
        assert ran.status == DONE or ran.err


def test_a_query_that_is_interrupted_ends_as_any_command_does(run, monkeypatch):
    """A real Ctrl-C, while DuckDB works; a shell has background jobs ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def long(*_, **_given):
        Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        duckdb.sql("SELECT count(*) FROM range(100000000000)").fetchall()

    counting = duckdb.InvalidInputException("counting the rows of an object failed: KeyboardInterrupt: ")
    try:
        for query in (long, Mock(side_effect=counting)):
            monkeypatch.setattr("toolkit.cli.audit.Kit.audit", query)
            assert run("audit", ends=130).err.strip() == "toolkit: interrupted"
        monkeypatch.setattr("toolkit.cli.audit.Kit.audit", Mock(side_effect=EOFError("marshal data too short")))
        assert "by a full disk: marshal data too short. Make room" in run("audit", ends=1).err
        monkeypatch.setattr("toolkit.cli.audit.Kit.audit", Mock(side_effect=MemoryError))
        assert "may not take more memory or threads" in run("audit", ends=1).err
    finally:
        signal.signal(signal.SIGINT, before)


READINGS = (
    "bucket sync --json",
    "evidence verify --json",
    "audit --no-sync --json",
    "evidence findings",
    "evidence findings --json",
    "evidence list sale-1 --json",
    "sale show sale-1",
    "sale show sale-1 --json",
    "findings --no-sync --json",
    "clients quality --json",
    "report --no-sync --out {out} --format html,csv,json",
    "log checkpoint",
    "log export {out}/log",
    "status --json",
)


def test_no_command_tells_a_cpf_or_the_name_of_a_file_unasked(
    embedded_environment, database, put, add_file, tmp_path, capfd
):
    environ = embedded_environment
    source = write_csv(tmp_path / "clients.csv", [client(1, cpf="39053344705")])
    assert main(["-q", "clients", "load", str(source)], environ) == 0
    for sale_id in ("sale-1", "sale-2"):
        add_file(add_sale(database, sale_id), file_name="CPF 390.533.447-05.pdf")
    put("foreign/39053344705.pdf")
    out = tmp_path / "out"
    for command in READINGS:
        assert main(["-q", *command.format(out=out).split()], environ) in {0, 3}, command
        told = "".join(capfd.readouterr())
        assert not [cpf for cpf in ("390.533.447-05", "39053344705") if cpf in told], command
    for path in (each for each in out.rglob("*") if each.is_file()):
        assert not [cpf for cpf in (b"390.533.447-05", b"39053344705") if cpf in path.read_bytes()], path


CPF = "11144477735\n"
SERVING = {"serve", "demo"}
"""Commands that serve, or run on embedded services alone; tests of their own run them."""


def commands():
    for line in (WALK / "commands.txt").read_text("utf-8").splitlines():
        words = shlex.split(line)
        settings = dict(word.split("=", 1) for word in words[:1] if word.startswith("TOOLKIT_"))
        yield words[len(settings) :], settings


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
    walked = {" ".join(words) for words, _ in commands()} | SERVING
    groups = {path[:-1] for path in paths() if path}
    leaves = {" ".join(path) for path in paths() if path and path not in groups}
    assert {leaf for leaf in leaves if not any(f"{each} ".startswith(f"{leaf} ") for each in walked)} == set()
