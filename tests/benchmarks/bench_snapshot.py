"""Exports beside COPY of the same tables, and the judging of a snapshot on each engine, row by row the same.

Scale 1 is 2,000,000 sales with 5,000,000 evidence records; scale 5 is 10,000,000 with 25,000,000. Goals: an export
at least half the speed of COPY; DuckDB at most 1.2 times hand-written SQL on DuckDB, also within 1 GB; four times
the data at most 4.5 times the time; two workers at least 1.5 times one; every engine with the same fingerprint.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
from pyarrow import compute as pc

from tests.benchmarks.bench_audit import _BY_HAND, _NOW, _fill
from toolkit.operations.judge.audit.engines import Engine, bound, duckdb_engine, spark_engine
from toolkit.operations.judge.audit.judgement import judging
from toolkit.operations.judge.audit.snapshot_tables import table_of
from toolkit.operations.snapshot import Snapshot, export_snapshot, open_snapshot
from toolkit.operations.snapshot.contents import CONTENTS
from toolkit.storage import embedded, schema
from toolkit.storage.database import Database
from toolkit.storage.duckdb_session import duckdb_session
from toolkit.storage.file_store import FolderStore
from toolkit.storage.frames import read_arrow

_SALES = 2_000_000


def main(scale: float) -> None:
    """Print the measurements with their ratios."""
    sales = max(400, round(_SALES * scale))
    with _filled(sales) as (database, home):
        print(f"{sales:,} sales, {sales * 5 // 2:,} evidence records{'seconds':>14}")
        _exports(database, home)
        seconds = _engines(database, home)
    with _filled(sales // 4) as (database, home):
        quarter = growth(database, home)
    _line("DuckDB, four times the data", seconds, f"{seconds / quarter:.2f} of a quarter (goal 4.5)")


def growth(database: Database, home: Path) -> float:
    """Return the seconds that DuckDB takes for a snapshot of the database."""
    snapshot = _exported(database, home)
    with duckdb_engine(_scratch(home)) as engine:
        return _timed(lambda: _judged(engine, snapshot, home))[0]


@contextmanager
def _filled(sales: int) -> Iterator[tuple[Database, Path]]:
    home = Path(tempfile.mkdtemp(prefix="bench-snapshot-", dir="/tmp"))  # open to the account of PostgreSQL
    try:
        database = Database(embedded.database_url(home), embedded=True)
        schema.upgrade(database, service_tables=True)
        _fill(database, sales)
        yield database, home
        database.dispose()
    finally:
        embedded.stop(home)
        shutil.rmtree(home)


def _exports(database: Database, home: Path) -> None:
    floor, _ = _timed(lambda: _copied(database, home / "floor.csv"))
    store = FolderStore(home / "snapshot", "snapshot")
    full, exported = _timed(lambda: export_snapshot(database, store, home, lambda: _NOW))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    later = _NOW + timedelta(hours=1)
    nothing, _ = _timed(lambda: export_snapshot(database, store, home, lambda: later))
    _line("floor: COPY of the same tables to a file", floor, "1.00 floors")
    _line("snapshot export, full", full, f"{full / floor:.2f} floors (goal 2); peak {peak:,.0f} MB")
    _line("snapshot export, nothing new", nothing, f"{nothing / full:.2f} of the full one")
    print(f"{exported.manifest.rows:,} rows, {sum(file.bytes for file in exported.manifest.files) / 1e6:,.0f} MB")


def _engines(database: Database, home: Path) -> float:
    """Judge on every engine, compare the judged rows, and return the seconds of DuckDB."""
    snapshot = open_snapshot(FolderStore(home / "snapshot", "snapshot"), _NOW)
    by_hand, _ = _timed(lambda: _by_hand(snapshot, home))
    _line("floor: hand-written SQL on DuckDB, 2GB", by_hand, "1.00 floors")
    prints, seconds = {_fingerprint_of(database)}, {}
    for memory in ("2GB", "1GB"):
        with duckdb_engine(_scratch(home), memory) as engine:
            seconds[memory], judged = _timed(lambda engine=engine: _judged(engine, snapshot, home))  # type: ignore[misc]
            prints.add(_fingerprint(engine.read(judged)))
        ratio = f"{seconds[memory] / by_hand:.2f} floors (goal 1.2)"
        _line(f"judging the snapshot, DuckDB in {memory}", seconds[memory], ratio)
    if importlib.util.find_spec("pysail") is not None:
        workers = {}
        for count in (1, 2):
            with _sail(count) as url, spark_engine(url) as spark:
                judged = _judged(spark, snapshot, home)
                workers[count], _ = _timed(lambda spark=spark, judged=judged: spark.read(_status(judged)))  # type: ignore[misc]
                prints.add(_fingerprint(spark.read(judged)))
        _line("judging the snapshot, Sail with one worker", workers[1], "")
        _line(
            "judging the snapshot, Sail with two workers", workers[2], f"{workers[1] / workers[2]:.2f} (goal 1.5)"
        )
    assert len(prints) == 1, prints
    print(f"one fingerprint of every judged row on PostgreSQL and the engines: {prints.pop()[:16]}")
    return seconds["2GB"]


def _judged(engine: Engine, snapshot: Snapshot, home: Path) -> ibis.Table:
    contents = {content.name: content for content in CONTENTS}

    def path_of(file: Any) -> str:
        return str(home / "snapshot" / file.name)

    return engine.kept(bound(judging(_NOW), lambda name: table_of(engine, snapshot, contents[name], path_of)))


def _status(judged: ibis.Table) -> ibis.Table:
    """A small answer that needs every sale judged."""
    return judged.group_by("status", "missing", "reasons", "problems", "counted").aggregate(sales=judged.count())


def _by_hand(snapshot: Snapshot, home: Path) -> None:
    with duckdb_session(_scratch(home), "2GB") as session:
        session.execute("CREATE SCHEMA audit")
        for content in CONTENTS:
            paths = [str(home / "snapshot" / file.name) for file in snapshot.files(content.name, "rows")]
            if paths:
                session.execute(f"CREATE VIEW {content.table.fullname} AS SELECT * FROM read_parquet({paths})")
            else:
                empty = content.schema.empty_table()  # noqa: F841  # which DuckDB finds by its name
                session.execute(f"CREATE TABLE {content.table.fullname} AS SELECT * FROM empty")
        session.execute(f"CREATE TABLE judged AS {_BY_HAND}")


def _fingerprint_of(database: Database) -> str:
    with database.snapshot() as connection:
        query = judging(_NOW)
        return _fingerprint(
            read_arrow(connection, str(ibis.to_sql(query, dialect="postgres")), query.schema().to_pyarrow())
        )


def _fingerprint(rows: pa.Table) -> str:
    """The SHA-256 of all columns, in the order of the ids of the sales."""
    order, digest = pc.sort_indices(rows["sale_id"]), sha256()
    for name in sorted(rows.column_names):
        column = rows[name]
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        texts = column.cast(pa.string()).take(order).fill_null("\0")
        digest.update("\n".join(texts.to_pylist()).encode())
    return digest.hexdigest()


@contextmanager
def _sail(workers: int) -> Iterator[str]:
    """A cluster of Sail in a process of its own, which gets a core for each worker."""
    environ = os.environ | {
        "SAIL_MODE": "local-cluster",
        "SAIL_CLUSTER__WORKER_INITIAL_COUNT": str(workers),
        "SAIL_CLUSTER__WORKER_MAX_COUNT": str(workers),
        "SAIL_CLUSTER__WORKER_TASK_SLOTS": "16",
        "SAIL_EXECUTION__DEFAULT_PARALLELISM": str(workers),
        "RUST_LOG": "error",
    }
    command = "import pysail.spark as s; v = s.SparkConnectServer('127.0.0.1', 0); v.start(background=True)"
    command += "; print(v.listening_address[1], flush=True); input()"
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[:workers]))
    server = subprocess.Popen(
        ["taskset", "--cpu-list", cores, sys.executable, "-c", command],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert server.stdout is not None
        yield f"sc://127.0.0.1:{int(server.stdout.readline())}"
    finally:
        server.kill()
        server.communicate()


def _exported(database: Database, home: Path) -> Snapshot:
    store = FolderStore(home / "snapshot", "snapshot")
    export_snapshot(database, store, home, lambda: _NOW)
    return open_snapshot(store)


def _scratch(home: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=home))


def _copied(database: Database, path: Path) -> None:
    for content in CONTENTS:
        columns = ", ".join(name for name in content.schema.names if name in content.table.columns)
        query = f"COPY (SELECT {columns} FROM {content.table.fullname}) TO STDOUT"
        with database.raw() as connection, path.open("wb") as file, connection.cursor().copy(query) as copy:
            for block in copy:
                file.write(block)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    answer = work()
    return time.perf_counter() - started, answer


def _line(name: str, seconds: float, ratio: str) -> None:
    print(f"{name:46}{seconds:>8.2f}  {ratio}", flush=True)
