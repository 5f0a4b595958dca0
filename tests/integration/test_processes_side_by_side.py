"""Four loads of clients, four of sales and four requests of credentials, all processes, share one database."""

import json
import os
import signal

import pytest

from tests.support.client_rows import client, write_csv
from tests.support.process_pool import start_command
from tests.support.uploaded_sales import add_sale, rows
from tests.support.waiting import PATIENCE, wait_until

TYPES = {"POV": "audio/mpeg", "AUT": "audio/mpeg", "DOC_CONTRATANTE": "application/pdf"}
OLD, NEW = range(12), range(12, 40)
"""Sales that are there before, and others."""


def sales_file(path, numbers):
    """Sales of group D, half of which were of group A before, and a row that is rejected."""
    lines = [f"S-{number},,D,true,2026-02-28T09:30:00Z" for number in numbers] + [",,A,true,2026-02-28"]
    path.write_text("\n".join(["saleId,clientId,utilityGroup,isClientFinancialResponsible,createdAt", *lines]))
    return path


def manifest(path, numbers):
    lines = [f"S-{number},{kind}.x,{media},{media},{kind}" for number in numbers for kind, media in TYPES.items()]
    path.write_text("\n".join(["saleId,fileName,fileFormat,type,evidenceType", *lines]))
    return path


@pytest.fixture
def commands(database, tmp_path):
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
    commands, database, embedded_environment, run, tmp_path
):
    with database.transaction() as holder:
        holder.exec_driver_sql("LOCK TABLE clients, sales, evidences IN SHARE MODE")
        started = [start_command(os.environ | embedded_environment, *words) for words in commands]
        # Each has read its file and sent rows, and waits for the tables or for one that waits for them.
        wait_until(lambda: rows(database, _WAITING)[0][0] >= len(commands))
        for process in started[:3]:
            process.kill()
    for process in started:
        process.join(PATIENCE)
    assert [process.exitcode for process in started] == [-signal.SIGKILL] * 3 + [3, 3, 0] * 3
    for words, status in zip(commands, (3, 3, 0), strict=False):
        run(*words, ends=status)
    new_ones = (39, 39, "D")
    for found, expected in {
        "count(DISTINCT cpf) FROM clients": (100, 100),
        "count(DISTINCT client_id) FROM addresses": (100, 100),
        "count(DISTINCT id), min(utility_group) FROM sales": new_ones,
        "count(DISTINCT sale_id), min(utility_group) FROM audit.sale_observations WHERE gone_at IS NULL": new_ones,
        "count(DISTINCT (sale_id, evidence_type, file_name)) FROM evidences": (36, 36),
        "count(DISTINCT detail ->> 'evidence') FROM audit.custody_events WHERE kind = 'ISSUED'": (36, 36),
    }.items():
        assert rows(database, f"SELECT count(*), {found}") == [expected]
    ids = {str(each) for (each,) in rows(database, "SELECT id FROM evidences")}
    told = [
        {json.loads(line)["id"] for line in (tmp_path / f"credentials{at}.jsonl").read_text().splitlines()}
        for at in range(4)
    ]
    assert [len(each) for each in told] == [18] * 4
    assert set.union(*told) == ids


_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
