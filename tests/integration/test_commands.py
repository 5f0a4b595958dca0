"""Any command: it answers any argument with a sentence, tells no person unasked, and writes for its owner."""

import os
import stat
from pathlib import Path

import pytest

from tests.support.client_rows import client, write_csv
from tests.support.evidence_files import pdf
from tests.support.uploaded_sales import add_sale
from toolkit.cli import main
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


@pytest.fixture(autouse=True)
def _usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(*folders):
    """The mode of each file."""
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path): stat.S_IMODE(path.stat().st_mode) for path in files}


WRITING = {
    "clients load clients.csv --out {out}/rejected": 3,
    "sales load sales.csv --overwrite --out {out}/rejected": 3,
    "credentials request manifest.csv --out {out}/private/credentials.jsonl": 0,
    "evidence upload {out}/private/credentials.jsonl --from .": 0,
    "report --out {out}/report --format html,xlsx,csv,json": 0,
    "report --out {out}/private/whole --show-cpf --reason test": 0,
    "report --out {out}/partners --per-partner --format csv": 0,
    "log export {out}/log": 0,
    "db map --out {out}/map.toml": 0,
    "sample --out {out}/sample": 0,
    "notebooks copy {out}/notebooks": 0,
}
"""Commands that write files, and their exit statuses; notebooks have a test of their own."""


def test_what_commands_write_is_for_owner_and_group_and_what_names_people_for_its_owner(
    embedded_environment, tmp_path, monkeypatch
):
    given, out = tmp_path / "given", tmp_path / "out"
    environ = embedded_environment | {"TOOLKIT_AUDITS": str(out / "own-audits")}
    given.mkdir()
    monkeypatch.chdir(given)
    write_csv(given / "clients.csv", [client(1), client(2, cpf="39053344706")])
    (given / "sales.csv").write_text(
        "saleId,clientId,utilityGroup,isClientFinancialResponsible,createdAt\n"
        "V-1,,A,true,2026-03-02T12:00:00Z\nV-2,,A,perhaps,2026-03-02T12:00:00Z\n"
    )
    (given / "manifest.csv").write_text(
        "saleId,fileName,fileFormat,type,evidenceType\nV-1,Ana.pdf,application/pdf,application/pdf,KYC\n"
    )
    (given / "Ana.pdf").write_bytes(pdf())
    home = Path(environ["TOOLKIT_HOME"])
    before = modes(tmp_path, home).items()
    out.mkdir()
    (out / "private").mkdir()
    for command, status in WRITING.items():
        assert main(["-q", *command.format(out=out).split()], environ) == status, command
    written = modes(tmp_path, home).items() - before
    assert len(written) > 30
    assert [path for path, mode in written if mode & 0o037] == []
    told = ("private", "rejected", str(home / "checkpoints"), ".key", "custody-log.pem")
    open_to_the_group = {path for path, mode in written if mode & 0o077 and any(each in path for each in told)}
    assert open_to_the_group == set()


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
