"""A command that is killed while it holds personal data leaves no named copy of them behind."""

import os

import pytest
import xlsxwriter

from tests.support.client_rows import FIELDS, client, write_csv
from tests.support.evidence_files import pdf
from tests.support.notebook_files import write_notebook
from tests.support.process_pool import stalled
from tests.support.uploaded_sales import add_sale, credentials_line, write_credentials
from toolkit.cli import main
from toolkit.contract.evidence import EvidenceType
from toolkit.log.bundle import BUNDLE


@pytest.fixture
def environ(embedded_environment, tmp_path):
    (tmp_path / "scratch").mkdir()
    return {**os.environ, **embedded_environment, "TMPDIR": str(tmp_path / "scratch")}


def names(folder):
    return [str(path.relative_to(folder)) for path in folder.rglob("*")]


@pytest.mark.parametrize("command", [("evidence", "verify"), ("sales", "complete", "sale-1")], ids=" ".join)
def test_a_file_that_is_looked_at(command, environ, database, add_file, sync, tmp_path):
    add_file(add_sale(database), EvidenceType.KYC, file_name="CPF 390.533.447-05.pdf")
    sync()
    with stalled(environ, ("toolkit.evidence.contents", "Inspector", "inspect"), *command):
        assert names(tmp_path / "scratch") == []
    assert names(tmp_path / "scratch") == []


def test_evidence_upload(environ, bucket, tmp_path):
    name = "CPF 390.533.447-05.pdf"
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / name).write_bytes(pdf())
    credentials = write_credentials(tmp_path / "out.jsonl", [credentials_line(bucket, "sale-1", name)])
    before = set(names(tmp_path))
    sending = ("toolkit.evidence", "upload", "post_file")
    with stalled(environ, sending, "evidence", "upload", str(credentials), "--from", str(tmp_path / "files")):
        pass
    written = {tmp_path / each for each in set(names(tmp_path)) - before}
    assert all("390.533.447-05" not in each.name + each.read_text() for each in written if each.is_file())
    assert names(tmp_path / "scratch") == []


@pytest.mark.parametrize("what", ["clients", "sales"])
def test_rejected_rows(what, environ, tmp_path):
    source = tmp_path / f"{what}.csv"
    if what == "clients":
        write_csv(source, [client(1, cpf="39053344706")])
    else:
        source.write_text(
            "saleId,clientId,utilityGroup,isClientFinancialResponsible,createdAt\nV-1,,A,perhaps,x\n"
        )
    arguments = (what, "load", str(source), "--out", str(tmp_path / "out"))
    with stalled(environ, ("toolkit.intake.results", "Outputs", "publish"), *arguments):
        (draft,) = (tmp_path / "out").iterdir()
        assert draft.stat().st_mode & 0o077 == 0
    assert main(["-q", *arguments], environ) == 3
    assert sorted(names(tmp_path / "out")) == [f"{what}.csv.rejected.csv", f"{what}.csv.rejected.xlsx"]
    assert names(tmp_path / "scratch") == []


def test_a_notebook(environ, tmp_path):
    write_notebook(tmp_path / "job.ipynb", "print('390.533.447-05')", parameters="weeks = 1")
    (tmp_path / "runs").mkdir()
    arguments = ("run", str(tmp_path / "job.ipynb"), "--out", str(tmp_path / "runs" / "out.ipynb"))
    with stalled(environ, ("toolkit.notebooks", "running", "_write"), *arguments):
        (draft,) = (tmp_path / "runs").iterdir()
        assert draft.stat().st_mode & 0o077 == 0
    assert main(["-q", *arguments], environ) == 0
    assert names(tmp_path / "runs") == ["out.ipynb"]
    assert names(tmp_path / "scratch") == []


def test_clients_load_of_a_workbook(environ, tmp_path):
    with xlsxwriter.Workbook(tmp_path / "clients.xlsx") as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, FIELDS)
        sheet.write_row(1, 0, [client(1)[field] for field in FIELDS])
    reading = ("toolkit.intake.workbooks", "subprocess", "run")
    arguments = ("clients", "load", str(tmp_path / "clients.xlsx"), "--out", str(tmp_path / "out"))
    with stalled(environ, reading, *arguments):
        assert names(tmp_path / "scratch") == []
    assert names(tmp_path / "scratch") == []
    assert not (tmp_path / "out").exists()


def test_a_report_is_written_where_only_its_owner_sees_it_and_the_next_one_sweeps_up(environ, database, tmp_path):
    add_sale(database)
    out = tmp_path / "out"
    formats = ("html", "xlsx", "csv", "json", "pdf")
    arguments = ("report", "--out", str(out), "--format", ",".join(formats))
    with stalled(environ, ("toolkit", "reports", "_write_manifest"), *arguments):
        (draft,) = out.iterdir()
        assert draft.stat().st_mode & 0o077 == 0
    assert list(out.iterdir()) == [draft]
    assert main(["-q", *arguments], environ) == 0
    assert set(names(out)) == {"manifest.json", *BUNDLE, *(f"missing-evidence.{each}" for each in formats)}
    assert names(tmp_path / "scratch") == []


def test_what_a_kill_leaves_of_a_file_is_its_owners_and_the_next_one_sweeps_up(
    environ, database, tmp_path, monkeypatch
):
    """All of it is written, and the command is killed before it gets its name."""
    command = ["credentials", "request", "manifest.csv", "--out", "out.jsonl"]
    monkeypatch.chdir(tmp_path)
    add_sale(database)
    manifest = tmp_path / "manifest.csv"
    manifest.write_text(
        "saleId,fileName,fileFormat,type,evidenceType\nsale-1,Ana.pdf,application/pdf,application/pdf,KYC\n"
    )
    with stalled(environ, ("toolkit.atomic_files", "os", "fsync"), *command):
        pass
    [draft] = tmp_path.glob(".toolkit-draft-*")
    assert draft.stat().st_mode & 0o077 == 0
    assert not (tmp_path / "out.jsonl").exists()
    assert main(["-q", *command], environ) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifest.csv", "out.jsonl", "scratch"]
    assert (tmp_path / "out.jsonl").stat().st_mode & 0o777 == 0o600
