"""Taking sales over: new, updated, unchanged, rejected; and what is kept of each state that was seen."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.support.request_bodies import CLIENT
from tests.support.uploaded_sales import rows
from toolkit.errors import UnreadableFile
from toolkit.intake.registration import register_client
from toolkit.intake.sales import load_sales

SAO_PAULO = ZoneInfo("America/Sao_Paulo")
HEADINGS = "saleId,clientId,utilityGroup,isClientFinancialResponsible,createdAt,partner"


@pytest.fixture
def load(database, tmp_path, clock):
    def load(*lines, headings=HEADINGS):
        path = tmp_path / "sales.csv"
        path.write_text("\n".join([headings, *lines]), encoding="utf-8")
        return load_sales(database, path, timezone=SAO_PAULO, clock=clock)

    return load


def observations(database):
    query = "SELECT sale_id, utility_group, seen_at, gone_at FROM audit.sale_observations ORDER BY sale_id, id"
    return rows(database, query)


def test_a_sale_is_taken_over_with_its_client_and_partner(load, database, clock):
    client = register_client(database, CLIENT, clock).client_id
    loaded = load(f"S-1,{client},B,false,2026-02-28T09:30:00,Luz do Vale")
    assert (loaded.rows, loaded.inserted, loaded.rejected) == (1, 1, ())
    columns = "id, client_id, utility_group, is_client_financial_responsible, created_at, partner"
    created_at = datetime(2026, 2, 28, 12, 30, tzinfo=UTC)  # a bare time is in São Paulo
    expected = [("S-1", client, "B", False, created_at, "Luz do Vale")]
    assert rows(database, f"SELECT {columns} FROM sales") == expected


def test_a_second_load_tells_new_updated_and_unchanged_apart(load, database, clock):
    first = clock.now
    load("S-1,,A,true,2026-02-28T09:30:00Z,", "S-2,,A,true,2026-02-28T09:30:00Z,")
    clock.now += timedelta(days=1)
    again = load(
        "S-1,,A,true,2026-02-28T06:30:00-03:00,",  # the same moment
        "S-2,,B,true,2026-02-28T09:30:00Z,",
        "S-3,,C,true,2026-02-28T09:30:00Z,",
    )
    assert (again.inserted, again.updated, again.unchanged) == (1, 1, 1)
    assert observations(database) == [
        ("S-1", "A", first, None),
        ("S-2", "A", first, clock.now),
        ("S-2", "B", clock.now, None),
        ("S-3", "C", clock.now, None),
    ]


def test_rejected_rows_are_named_by_line_with_every_reason_and_the_others_are_taken(load):
    loaded = load(
        "S-1,,A,true,2026-02-28T09:30:00Z,",
        ",,A,perhaps,yesterday,",
        "",
        "S-1,,A,true,2026-02-28T09:30:00Z,",
        "S-2,00000000-0000-7000-8000-000000000000,A,true,2026-02-28,",
        "S-3,4711,A,true,2026-02-28,",
        f"{'9' * 101},,A,true,2026-02-28,",
    )
    assert loaded.inserted == 1
    assert {row.line: [f"{item.field}: {item.message}" for item in row.invalid] for row in loaded.rejected} == {
        3: [
            "saleId: Required",
            "isClientFinancialResponsible: Must be true or false",
            "createdAt: Must be a time such as 2026-11-20T18:00:00-03:00",
        ],
        5: ["saleId: Stands in line 2 already"],
        6: ["clientId: No client is registered under this id"],
        7: ["clientId: Must be the UUID that the registration answered, or empty"],
        8: ["saleId: Must have at most 100 characters"],
    }


def test_portuguese_headings_and_dates_are_understood(load, database):
    headings = "ID da Venda,id do cliente,Grupo Tarifario,Contratante paga,Data da venda,Parceiro"
    assert load("S-1,,A,sim,02/01/2026 10:00,Luz", headings=headings).inserted == 1
    assert rows(database, "SELECT created_at FROM sales") == [(datetime(2026, 1, 2, 13, tzinfo=UTC),)]


def test_a_file_never_takes_a_completion_back(load, database):
    row = "S-1,,A,true,2026-02-28T09:30:00Z,"
    load(f"{row},2026-03-01T09:00:00Z", headings=f"{HEADINGS},completedAt")
    assert load(row).unchanged == 1
    assert rows(database, "SELECT completed_at FROM sales") == [(datetime(2026, 3, 1, 9, tzinfo=UTC),)]


def test_a_file_without_the_headings_changes_nothing_and_says_what_is_missing(load, database):
    with pytest.raises(
        UnreadableFile,
        match=r"sales\.csv: no heading for clientId, createdAt\. Found on line 1: saleId, .* rename",
    ):
        load("S-1,A,true", headings="saleId,utilityGroup,isClientFinancialResponsible")
    assert observations(database) == []


def test_the_command_prints_what_became_of_the_rows(run, tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text(f"{HEADINGS}\nS-1,,A,true,2026-02-28,\nS-2,,A,maybe,2026-02-28,\n")
    printed = run("sales", "load", path, "--overwrite", "--json", ends=3).told
    assert printed == {
        "rows": 2,
        "inserted": 1,
        "updated": 0,
        "unchanged": 0,
        "rejected": 1,
        "rejectedFiles": [f"{path}.rejected.csv", f"{path}.rejected.xlsx"],
        "rejectedRows": [
            {"line": 3, "errors": [{"field": "isClientFinancialResponsible", "message": "Must be true or false"}]}
        ],
        "differing": 0,
        "differingRows": [],
    }


def test_a_shared_database_is_compared_and_not_written(run, tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text(f"{HEADINGS}\nS-1,,A,true,2026-02-28,\nS-2,,B,true,2026-02-28,\n")
    run("sales", "load", path, "--overwrite")
    path.write_text(f"{HEADINGS}\nS-1,,A,false,2026-02-28,x\nS-2,,B,true,2026-02-28,\nS-3,,C,true,2026-02-28,\n")
    for _ in range(2):
        printed = run("sales", "load", path, "--json", ends=3).told
        assert (printed["inserted"], printed["updated"], printed["unchanged"]) == (0, 0, 1)
        assert printed["differingRows"] == [
            {"line": 2, "saleId": "S-1", "fields": ["isClientFinancialResponsible", "partner"]},
            {"line": 4, "saleId": "S-3", "fields": []},
        ]
