"""Golden files: spreadsheets as they arrive, and what must become of every row of them."""

import json
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.support.client_rows import read_csv
from toolkit.database.tables import addresses, clients
from toolkit.intake.clients import load_clients

MESSY = Path(__file__).parent.parent / "data" / "messy"
EXPECTED = json.loads((MESSY / "expected.json").read_text("utf-8"))


def test_every_messy_file_has_its_expectation():
    assert sorted(EXPECTED) == sorted(path.name for path in MESSY.iterdir() if path.suffix != ".json")


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_messy_file_is_read_as_a_person_would(database, clock, tmp_path, name):
    told = []
    result = load_clients(database, [MESSY / name], out=tmp_path, clock=clock, announce=told.append)
    assert as_expected(str(told[0]), result, database) == EXPECTED[name]


def as_expected(understood, result, database):
    query = (
        sa.select(*(column for column in (*clients.c, *addresses.c) if column.name not in ("id", "client_id")))
        .join(addresses, addresses.c.client_id == clients.c.id)
        .order_by(clients.c.number_on_dealership)
    )
    with database.transaction() as connection:
        registered = [
            {key: str(value) for key, value in row.items() if value is not None and key != "created_at"}
            for row in connection.execute(query).mappings()
        ]
    delimiter = result.files[0].understood.layout.delimiter or ";"
    rejected = [
        row for path in result.rejected_files if path.suffix == ".csv" for row in read_csv(path, delimiter)
    ]
    return {
        "understood": understood,
        "registered": registered,
        "rejected": {row["line"]: row["errors"] for row in rejected},
        "repairs": result.repairs,
        "warnings": result.warnings,
    }
