"""Whole columns of a sales file are judged as the contract judges each row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product
from zoneinfo import ZoneInfo

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from toolkit.domain.requests import parse
from toolkit.domain.sales import SaleRecord
from toolkit.errors import InvalidField, InvalidFields
from toolkit.operations.register.sales_verdicts import judge_sales

ZONE = ZoneInfo("America/Sao_Paulo")

ODD = ("", " ", "S-1 ", "\ufeffS-1", "S\x01", "S\u202e1", "é" * 51, "x" * 101, "\u00a0", "\ud7ff", "a\tb")
CELLS = {
    "saleId": ("S-1", "V 2", "x" * 100, "ção"),
    "clientId": (
        "0198c5d1-8f3a-7c00-8000-00000000000A",
        "0198c5d18f3a7c00800000000000000a",
        "{0198c5d1-8f3a-7c00-8000-00000000000a}",
        "0198c5d1-8f3a-7c00-8000-00000000000g",
        "0198c5d1-8f3a-7c00-8000+00000000000a",
        "٠198c5d1-8f3a-7c00-8000-0000000000",
    ),
    "utilityGroup": ("A", "d", "x" * 255, "x" * 256),
    "isClientFinancialResponsible": ("true", "SIM", "não", "0", "maybe", " s "),
    "partner": ("Norte", " Sul "),
}
TIMES = [
    *("2026-01-02", "31/12/2025", "2026-W01-1", "20260102T101010Z", "2026-01-02 10:11:12", "soon"),
    *map(
        "".join,
        product(
            ("2018-", "2024-", "2100-", "0001-", "9999-", "1899-"),
            ("02-", "11-", "04-", "12-", "13-"),
            ("04", "28", "29", "30", "31", "00"),
            ("T00:00:00", " 23:59:59", "T24:00:00"),
            ("", "Z", "z", "-03:00", "+13:59", "+14:00", "-23:59", "+0300", "+03", "-03:60", ".123Z"),
        ),
    ),
]
DAYS = st.datetimes(datetime.fromisoformat("1890-01-01"), datetime.fromisoformat("2110-01-01"))
USUAL = {name: usual[0] for name, usual in CELLS.items()} | {
    "createdAt": "2026-01-02T10:11:12-03:00",
    "completedAt": "02/01/2026 10:11:12",
}
CHANGED = [
    USUAL | {name: cell}
    for name in USUAL
    for cell in (*ODD, *CELLS.get(name, ()), *(TIMES if name in {"createdAt", "completedAt"} else ()))
]
"""A row for each way in which one cell may be odd."""
COLUMNS = {name: st.sampled_from(usual + ODD) for name, usual in CELLS.items()} | dict.fromkeys(
    ("createdAt", "completedAt"), DAYS.map(datetime.isoformat) | DAYS.map(lambda at: f"{at:%d/%m/%Y %H:%M:%S}")
)
EPOCH, MICROSECOND = datetime.fromtimestamp(0, UTC), timedelta(microseconds=1)


@example(rows=CHANGED, absent=set())
@given(
    rows=st.lists(st.fixed_dictionaries(COLUMNS), min_size=1, max_size=20),
    absent=st.sets(st.sampled_from(("partner", "completedAt"))),
)
def test_columns_and_rows_are_judged_alike(rows: list[dict[str, str]], absent: set[str]) -> None:
    rows = [{name: cell for name, cell in row.items() if name not in absent} for row in rows]
    cells = {name: pa.array([row[name] for row in rows], pa.string()) for name in rows[0]}
    columns, accepted, invalid = judge_sales(cells, ZONE)
    for name in ("created_at", "completed_at"):
        columns[name] = columns[name].cast(pa.int64())
    told = [
        [column[at].as_py() for column in columns.values()] if accepted[at] else list(invalid[at])
        for at in range(len(rows))
    ]
    assert told == [by_the_contract(row) for row in rows]


def by_the_contract(row: dict[str, str]) -> list[object] | list[InvalidField]:
    try:
        sale = parse(SaleRecord, {name: cell or None for name, cell in row.items()})
    except InvalidFields as error:
        return list(error.invalid)
    moments = [
        at and ((at if at.tzinfo else at.replace(tzinfo=ZONE)) - EPOCH) // MICROSECOND
        for at in (sale.created_at, sale.completed_at)
    ]
    client = None if sale.client_id is None else sale.client_id.bytes
    payer = bytes([sale.is_client_financial_responsible])
    return [sale.sale_id, client, sale.utility_group, payer, moments[0], sale.partner, moments[1]]
