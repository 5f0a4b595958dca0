"""Four loads of clients, four of sales and four requests of credentials, all processes, share one database."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.client_rows import client, write_csv
from tests.integration.uploaded_sales import add_sale, rows
from tests.waiting import wait_until
from toolkit.storage.database import Database

FORKS = """
import json, os, sys
from toolkit.entrypoints import application_context
from toolkit.entrypoints.cli import clients, credentials, main, sales
for line in sys.stdin:
    started = []
    for arguments in json.loads(line):
        if not (pid := os.fork()):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os._exit(main(arguments))
        started.append(pid)
    print(json.dumps(started), flush=True)
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in started]), flush=True)
"""
"""Each command is a process of its own, but for the modules, which take most of the time of so short a command."""

TYPES = ("POV,audio/mpeg", "AUT,audio/mpeg", "DOC_CONTRATANTE,application/pdf")
OLD, NEW = range(12), range(12, 40)
"""Sales that are there before, and others."""


class Forks:
    """Starts commands at once, and tells how they ended."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._read, self._write = process.stdout, process.stdin

    def start(self, commands: Sequence[Sequence[str]]) -> list[int]:
        assert self._write is not None
        print(json.dumps(commands), file=self._write, flush=True)
        return self._next()

    def ended(self) -> list[int]:
        return self._next()

    def _next(self) -> list[int]:
        assert self._read is not None
        return list(json.loads(self._read.readline()))


@contextmanager
def forking(environ: dict[str, str], said: Path) -> Iterator[Forks]:
    with said.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", FORKS],
            env={**os.environ, **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        with process:
            yield Forks(process)


def sales_file(path: Path, numbers: Sequence[int]) -> Path:
    """Sales of group D, half of which were of group A before, and a row that is rejected."""
    lines = [f"S-{number},,D,true,2026-02-28T09:30:00Z" for number in numbers] + [",,A,true,2026-02-28"]
    path.write_text("\n".join(["saleId,clientId,utilityGroup,isClientFinancialResponsible,createdAt", *lines]))
    return path


def manifest(path: Path, numbers: Sequence[int]) -> Path:
    lines = []
    for number in numbers:
        for evidence_type, media_type in (each.split(",") for each in TYPES):
            lines.append(f"S-{number},{evidence_type}.x,{media_type},{media_type},{evidence_type}")
    path.write_text("\n".join(["saleId,fileName,fileFormat,type,evidenceType", *lines]))
    return path


@pytest.fixture
def commands(database: Database, tmp_path: Path) -> list[list[str]]:
    """Three kinds by turns; each file overlaps with the next one, and every other one runs backwards."""
    for number in OLD:
        add_sale(database, f"S-{number}")
    found = []
    for at in range(4):
        order = -1 if at % 2 else 1
        people = [client(20 * at + n) for n in range(40)] + [client(900 + at, cpf="0")]
        some_sales = [*OLD, *NEW[5 * at : 5 * at + 12]][::order]
        wanted = [*OLD[2 * at : 2 * at + 6]][::order]
        clients = write_csv(tmp_path / f"clients{at}.csv", people[::order])
        sales = sales_file(tmp_path / f"sales{at}.csv", some_sales)
        asked = manifest(tmp_path / f"wanted{at}.csv", wanted)
        found += [
            ["-q", "clients", "load", str(clients), "--out", str(tmp_path / f"out{at}")],
            ["-q", "sales", "load", str(sales), "--overwrite"],
            ["-q", "credentials", "request", str(asked), "--out", str(tmp_path / f"credentials{at}.jsonl")],
        ]
    return found


def test_twelve_at_once_with_three_killed_in_the_middle_leave_each_row_once(
    commands: list[list[str]],
    database: Database,
    embedded_environment: dict[str, str],
    tmp_path: Path,
) -> None:
    said = tmp_path / "said.txt"
    with forking(embedded_environment, said) as forks:
        with database.transaction() as holder:
            holder.execute(sa.text("LOCK TABLE clients, sales, evidences IN SHARE MODE"))
            pids = forks.start(commands)
            # Each has read its file and sent rows, and waits for the tables or for one that waits for them.
            wait_until(lambda: rows(database, _WAITING)[0][0] >= len(commands))
            for pid in pids[:3]:
                os.kill(pid, signal.SIGKILL)
        assert forks.ended() == [-signal.SIGKILL] * 3 + [3, 3, 0] * 3, said.read_text()
        forks.start(commands[:3])
        assert forks.ended() == [3, 3, 0], said.read_text()
    assert "Traceback" not in said.read_text()
    for found in (
        "count(DISTINCT cpf) FROM clients",
        "count(DISTINCT client_id) FROM addresses",
    ):
        assert rows(database, f"SELECT count(*), {found}") == [(100, 100)]
    for found in (
        "count(DISTINCT id), min(utility_group) FROM sales",
        "count(DISTINCT sale_id), min(utility_group) FROM audit.sale_observations WHERE gone_at IS NULL",
    ):
        assert rows(database, f"SELECT count(*), {found}") == [(39, 39, "D")]
    for found in (
        "count(DISTINCT (sale_id, evidence_type, file_name)) FROM evidences",
        "count(DISTINCT detail ->> 'evidence') FROM audit.custody_events WHERE kind = 'ISSUED'",
    ):
        assert rows(database, f"SELECT count(*), {found}") == [(36, 36)]
    ids = {str(each) for (each,) in rows(database, "SELECT id FROM evidences")}
    told = [
        {json.loads(line)["id"] for line in (tmp_path / f"credentials{at}.jsonl").read_text().splitlines()}
        for at in range(4)
    ]
    assert [len(each) for each in told] == [18] * 4
    assert set.union(*told) == ids


_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
