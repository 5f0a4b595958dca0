"""A command that is killed while it holds personal data leaves no named copy of them behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from tests.client_rows import FIELDS, client
from tests.integration.evidence_bytes import pdf
from tests.integration.uploaded_sales import add_sale
from toolkit.domain.evidence import KEY_PREFIX
from toolkit.entrypoints.cli import main
from toolkit.operations.observe.bucket_sync import sync_bucket
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database

STALLED = """
import sys, time
from {module} import {owner}
def stall(*args, **options):
    print("stalled", flush=True)
    time.sleep(600)
{owner}.{name} = stall
from toolkit.entrypoints.cli import main
main(sys.argv[1:])
"""


@pytest.fixture
def environ(
    home: Path, database: Database, bucket_environment: Mapping[str, str], tmp_path: Path
) -> dict[str, str]:
    (tmp_path / "scratch").mkdir()
    url = database.engine.url.render_as_string(hide_password=False)
    return {
        **os.environ,
        **bucket_environment,
        "TOOLKIT_HOME": str(home),
        "DATABASE_URL": url,
        "TMPDIR": str(tmp_path / "scratch"),
    }


@contextmanager
def stalled(environ: Mapping[str, str], place: tuple[str, str, str], *arguments: str) -> Iterator[None]:
    """The command while it stands still in the function at ``place``; killed at the end of the block."""
    module, owner, name = place
    code = STALLED.format(module=module, owner=owner, name=name)
    process = subprocess.Popen(
        [sys.executable, "-c", code, "-q", *arguments], env=dict(environ), stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "stalled\n"
        yield
    finally:
        process.kill()
        process.communicate()


def names(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*")]


def test_evidence_verify(
    environ: dict[str, str], database: Database, bucket: Bucket, s3: Any, clock: Any, tmp_path: Path
) -> None:
    key = f"{KEY_PREFIX}2026/03/02/0199c0de-0000-7000-8000-000000000001/CPF 390.533.447-05.pdf"
    s3.put_object(Bucket=bucket.name, Key=key, Body=pdf())
    sync_bucket(database, bucket, clock=clock)
    inspector = ("toolkit.operations.verify.contents.inspector", "Inspector", "inspect")
    with stalled(environ, inspector, "evidence", "verify"):
        assert names(tmp_path / "scratch") == []
    assert names(tmp_path / "scratch") == []


def test_clients_load_of_a_workbook(environ: dict[str, str], tmp_path: Path) -> None:
    with xlsxwriter.Workbook(tmp_path / "clients.xlsx") as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, FIELDS)
        sheet.write_row(1, 0, [client(1)[field] for field in FIELDS])
    reading = ("toolkit.operations.spreadsheets.workbook", "_Process", "answer")
    arguments = ("clients", "load", str(tmp_path / "clients.xlsx"), "--out", str(tmp_path / "out"))
    with stalled(environ, reading, *arguments):
        assert names(tmp_path / "scratch") == []
    assert names(tmp_path / "scratch") == []
    assert not (tmp_path / "out").exists()


def test_a_report_is_written_where_only_its_owner_sees_it_and_the_next_one_sweeps_up(
    environ: dict[str, str], database: Database, tmp_path: Path
) -> None:
    add_sale(database)
    out = tmp_path / "out"
    arguments = ("report", "--out", str(out), "--format", "csv")
    with stalled(environ, ("toolkit.reports", "folder", "_write_manifest"), *arguments):
        (draft,) = out.iterdir()
        assert draft.stat().st_mode & 0o077 == 0
    assert list(out.iterdir()) == [draft]
    assert main(["-q", *arguments], environ) == 0
    assert sorted(names(out)) == ["index.html", "manifest.json", "missing-evidence.csv"]
    assert names(tmp_path / "scratch") == []


@pytest.mark.parametrize(
    "command",
    [["credentials", "request", "manifest.csv", "--out", "out.jsonl"], ["evidence", "log", "--out", "out.jsonl"]],
    ids=" ".join,
)
def test_a_file_that_is_being_written_has_no_name(
    command: list[str],
    environ: dict[str, str],
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All of it is written, and the command is killed before it gets its name."""
    monkeypatch.chdir(tmp_path)
    add_sale(database)
    manifest = tmp_path / "manifest.csv"
    manifest.write_text(
        "saleId,fileName,fileFormat,type,evidenceType\nsale-1,Ana.pdf,application/pdf,application/pdf,KYC\n"
    )
    with stalled(environ, ("toolkit.operations.atomic_file", "os", "fsync"), *command):
        pass
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size] == [manifest]
    assert main(["-q", *command], environ) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifest.csv", "out.jsonl", "scratch"]
    assert (tmp_path / "out.jsonl").stat().st_mode & 0o777 == 0o600
