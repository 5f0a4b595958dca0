"""A command answers any argument with an exit status and a sentence."""

import pytest

from toolkit.cli.context import DONE, FAILED, NEEDS_ATTENTION, WRONG_USAGE

ODD = ["", "S-9\udcff", "S-9\x00", "9" * 5000, "\u202eS-9", "2026-99-99"]

COMMANDS = """
sales complete ?
sales load ?
clients load ?
clients load clients.csv --out ?
clients load clients.csv --encoding ?
clients load clients.csv --delimiter ?
clients load clients.csv --sheet ?
credentials request ? --out credentials.jsonl
credentials request manifest.csv --out ?
credentials request manifest.csv --out credentials.jsonl --requested-by ?
evidence list ?
evidence upload ? --from .
evidence upload credentials.jsonl --from ?
evidence withdraw ? --reason r --by a --approved-by b
evidence withdraw ID --reason ? --by a --approved-by b
evidence withdraw ID --reason r --by ? --approved-by b
evidence withdraw ID --reason r --by a --approved-by ?
log export ?
log prove ? --out proof
log prove 1 --out ?
log verify ?
log verify empty --key ?
log consistency ? ?
audit --no-sync --as-of ?
report --no-sync --as-of ?
report --no-sync --format csv --out ?
report --no-sync --format ?
verify ?
verify empty --seal ?
explain ?
run ?
notebooks copy ?
token issue --subject ?
token issue --subject a --ttl ?
run partner-scores -p weeks ?
serve --host ? --port 0
?
""".strip().splitlines()


DEEP = "[" * 100_000
DIGITS = "9" * 5000

INVENTORY = (
    '{"fileSchema": "Key", "fileFormat": "ORC", "sourceBucket": "b", "creationTimestamp": "99999999999999999999"}'
)

HANDED_OVER = {
    "verify report": ("manifest.json", ["verify", "."]),
    "verify log": ("log.jsonl", ["verify", "log.jsonl"]),
    "evidence upload": ("credentials.jsonl", ["evidence", "upload", "credentials.jsonl", "--from", "."]),
    "waiver lint": ("waivers.toml", ["waiver", "lint", "waivers.toml"]),
    "job list": ("jobs.toml", ["job", "list"]),
    "db check": ("service.sql", ["db", "check"]),
    "bucket sync": ("manifest.json", ["bucket", "sync", "--inventory", "."]),
}


@pytest.mark.parametrize("command", HANDED_OVER)
def test_a_file_of_endless_depth_or_digits_gets_a_sentence(run, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name, line = HANDED_OVER[command]
    settings = {"TOOLKIT_JOBS": "jobs.toml"} if name == "jobs.toml" else {}
    settings |= {"TOOLKIT_SERVICE_SQL": "service.sql"} if name == "service.sql" else {}
    begin = "a = " if name.endswith(".toml") else ""
    for hostile in (DEEP, DIGITS, "a\n" + "x" * 200_000, INVENTORY):
        (tmp_path / name).write_text(begin + hostile + "\n")
        ran = run(*line, ends=None, **settings)
        assert ran.status == DONE or name in ran.out + ran.err


def test_a_setting_of_endless_digits_gets_a_sentence(run):
    said = run("status", ends=WRONG_USAGE, TOOLKIT_QUOTA_REQUESTS=DIGITS).err
    assert "TOOLKIT_QUOTA_REQUESTS must be a whole number" in said


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
