"""Work on one sale finds its rows by indexes, however many sales there are."""

from __future__ import annotations

import pytest

from tests.benchmarks.made_sales import fill
from tests.table_scans import TableScans, about_one_sale
from toolkit.storage import schema
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database

SALES = 10_000


@pytest.mark.parametrize("by_month", [False, True])
def test_work_on_one_sale_goes_through_no_table(database: Database, bucket: Bucket, by_month: bool) -> None:
    fill(database, SALES)
    if by_month:
        schema.upgrade(database, by_month=True)
    scans = TableScans(database)
    found = {name: scans.during(work) for name, work in about_one_sale(database, bucket).items()}
    assert {name: read for name, read in found.items() if max(read.values(), default=0) >= SALES} == {}
