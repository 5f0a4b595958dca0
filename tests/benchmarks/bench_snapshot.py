"""Exports beside COPY of the same tables, and the judging of a snapshot on each engine.

Scale 1 is 2,000,000 sales with 5,000,000 evidence records. Goals: an export at least half the speed of COPY;
DuckDB within 2 GB and within 1 GB; every engine with the same totals.
"""

from __future__ import annotations

import importlib.util
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.benchmarks.bench_audit import _fill
from toolkit.operations.judge.audit.engines import Engine, duckdb_engine, spark_engine
from toolkit.operations.judge.audit.from_snapshot import audit_snapshot
from toolkit.operations.snapshot import export_snapshot, open_snapshot
from toolkit.operations.snapshot.contents import CONTENTS
from toolkit.storage import embedded, schema
from toolkit.storage.database import Database
from toolkit.storage.file_store import FolderStore

_SALES = 2_000_000
_NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def main(scale: float) -> None:
    """Print the measurements with their ratios."""
    home = Path(tempfile.mkdtemp(prefix="bench-snapshot-", dir="/tmp"))  # open to the account of PostgreSQL
    try:
        database = Database(embedded.database_url(home), embedded=True)
        schema.upgrade(database, service_tables=True)
        sales = max(100, round(_SALES * scale))
        _fill(database, sales)
        print(f"{sales:,} sales, {sales * 5 // 2:,} evidence records{'seconds':>14}")
        _exports(database, home)
        _engines(home)
        database.dispose()
    finally:
        embedded.stop(home)
        shutil.rmtree(home)


def _exports(database: Database, home: Path) -> None:
    store = FolderStore(home / "snapshot", "snapshot")
    floor, _ = _timed(lambda: _copied(database, home / "floor.csv"))
    full, exported = _timed(lambda: export_snapshot(database, store, home, lambda: _NOW))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    later = _NOW + timedelta(hours=1)
    nothing, _ = _timed(lambda: export_snapshot(database, store, home, lambda: later))
    _line("floor: COPY of the same tables to a file", floor, "1.00 floors")
    _line("snapshot export, full", full, f"{full / floor:.2f} floors (goal 2); peak {peak:,.0f} MB")
    _line("snapshot export, nothing new", nothing, f"{nothing / full:.2f} of the full one")
    print(f"{exported.manifest.rows:,} rows, {sum(file.bytes for file in exported.manifest.files) / 1e6:,.0f} MB")


def _engines(home: Path) -> None:
    store = FolderStore(home / "snapshot", "snapshot")
    snapshot, totals = open_snapshot(store), set()

    def judged(opened: AbstractContextManager[Engine]) -> None:
        with opened as engine:
            found = audit_snapshot(snapshot, lambda file: str(store.local(file.name, home)), engine, clock=_clock)
        totals.add((found.sales, found.compliant, found.incomplete, found.conflict))

    for memory in ("2GB", "1GB"):
        scratch = home / f"scratch-{memory}"
        scratch.mkdir()
        seconds, _ = _timed(lambda memory=memory, scratch=scratch: judged(duckdb_engine(scratch, memory)))  # type: ignore[misc]
        _line(f"audit of the snapshot, DuckDB in {memory}", seconds, "")
    if importlib.util.find_spec("pysail") is not None:
        from pysail.spark import SparkConnectServer

        server = SparkConnectServer("127.0.0.1", 0)
        server.start(background=True)
        host, port = server.listening_address
        seconds, _ = _timed(lambda: judged(spark_engine(f"sc://{host}:{port}")))
        _line("audit of the snapshot, Spark Connect on Sail", seconds, "")
        server.stop()
    assert len(totals) == 1, totals


def _copied(database: Database, path: Path) -> None:
    for content in CONTENTS:
        columns = ", ".join(name for name in content.schema.names if name in content.table.columns)
        query = f"COPY (SELECT {columns} FROM {content.table.fullname}) TO STDOUT"
        with database.raw() as connection, path.open("wb") as file, connection.cursor().copy(query) as copy:
            for block in copy:
                file.write(block)


def _clock() -> datetime:
    return _NOW + timedelta(days=1)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    answer = work()
    return time.perf_counter() - started, answer


def _line(name: str, seconds: float, ratio: str) -> None:
    print(f"{name:46}{seconds:>8.2f}  {ratio}", flush=True)
