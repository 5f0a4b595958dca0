"""The tables that work goes through as a whole, and the indexes that it uses. Scale 1 is 2,000,000 sales.

Goals: work on one sale goes through no table; an audit after one sale of a thousand was touched goes through no
table of observations or checks. Work that compares everything on purpose is only shown. In the end come the
indexes that nothing here has used, but for those that keep rows apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import cast

import sqlalchemy as sa

from tests.benchmarks.made_sales import fill, touch
from tests.memory_bucket import MemoryBucket
from tests.own_services import own_database
from tests.table_scans import NOW, TableScans, about_one_sale
from toolkit.operations.judge.audit import run_audit
from toolkit.operations.observe.bucket_sync import sync_bucket
from toolkit.operations.observe.disappearance import Tolerance
from toolkit.operations.prove.custody_log.live import verify_live
from toolkit.operations.prove.custody_log.sealing import seal_events
from toolkit.operations.verify.contents.queue import in_batches, waiting
from toolkit.settings import Settings
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database
from toolkit.storage.tables import bucket_syncs

_SALES = 2_000_000
_NEXT_DAY = NOW + timedelta(days=1)


def main(scale: float) -> None:
    """Print what each piece of work went through; fail where that is more than it may."""
    sales = max(10_000, round(_SALES * scale))
    with own_database() as (database, home):
        fill(database, sales)
        scans = TableScans(database)
        bucket = Bucket.open(Settings.from_environment({"TOOLKIT_HOME": str(home)}))
        print(f"{sales:,} sales; rows read by going through a whole table")
        _show(scans, _everything(database), sales, may=True)
        _show(scans, about_one_sale(database, bucket), sales, may=False)
        touch(database, max(10, sales // 1000), _NEXT_DAY)
        audit = {"an audit after few were touched": lambda: run_audit(database, clock=lambda: _NEXT_DAY)}
        _show(scans, audit, sales, may=False)
        _show(scans, {"a reading of a part of the bucket": lambda: _part_read(database)}, sales, may=True)
        print(f"indexes that nothing here used: {', '.join(scans.unused()) or 'none'}")


def _show(scans: TableScans, works: Mapping[str, Callable[[], object]], sales: int, *, may: bool) -> None:
    for name, work in works.items():
        read = {table: rows for table, rows in scans.during(work).items() if rows >= sales}
        told = ", ".join(f"{table} {rows:,}" for table, rows in sorted(read.items())) or "none"
        print(f"{name:38}{told}", flush=True)
        wrong = [table for table in read if table.endswith(("_observations", "_checks", "custody_events"))]
        assert may or not wrong, f"{name} goes through {', '.join(wrong)}"


def _everything(database: Database) -> dict[str, Callable[[], object]]:
    """Work that concerns every sale or file."""
    return {
        "the first audit": lambda: run_audit(database, clock=lambda: NOW),
        "an audit with findings about files": lambda: run_audit(
            database, clock=lambda: NOW, with_file_findings=True
        ),
        "an audit as of an hour before": lambda: run_audit(
            database, clock=lambda: NOW, as_of=NOW - timedelta(hours=1)
        ),
        "the queue of files to verify": lambda: list(in_batches(database, waiting(database)[:1000])),
        "sealing the custody log": lambda: seal_events(database, lambda: NOW),
        "the custody log beside the tables": lambda: verify_live(database),
    }


def _part_read(database: Database) -> None:
    """Read an empty bucket that was read as a whole an hour before."""
    bucket = MemoryBucket()
    then = _NEXT_DAY - timedelta(hours=1)
    whole = {"bucket": bucket.address, "full_listing": True, "listed": 0, "appeared": 0, "vanished": 0, "cycle": 1}
    with database.transaction() as connection:
        connection.execute(sa.insert(bucket_syncs), whole | {"started_at": then, "finished_at": then})
    sync_bucket(database, cast("Bucket", bucket), clock=lambda: _NEXT_DAY, tolerance=Tolerance(confirmed=True))
