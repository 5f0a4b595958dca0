"""Exports beside COPY of the same tables, and the judging of a snapshot on each engine, row by row the same.

Scale 1 is 2,000,000 sales with 5,000,000 evidence records; scale 5 is 10,000,000 with 25,000,000. They are judged
in a snapshot that is made for it, and PostgreSQL is filled with all of it; another one is filled with a tenth and
exported. A running Spark is measured too where ``SPARK_REMOTE`` names it. Goals: an export
at least half the speed of COPY; DuckDB at most 1.2 times hand-written SQL on DuckDB, also within 1 GB; four times
the data at most 4.5 times the time; two workers at least 1.5 times one; every engine with the same fingerprint.

Exports, and what DuckDB does, are compared by CPU seconds, which the neighbours on the machine change least; the
cluster by the clock. ``python -m tests.benchmarks.bench_snapshot fingerprints 5`` compares the rows alone.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from functools import partial
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
from pyarrow import compute as pc
from pyarrow.csv import WriteOptions, write_csv
from pyarrow.parquet import ParquetFile

from tests.benchmarks.by_hand import BY_HAND
from tests.benchmarks.commands import peak_mb, server_cpu
from tests.benchmarks.generated_snapshot import generate
from tests.benchmarks.made_sales import NOW, fill
from tests.benchmarks.timing import Timed, timed
from tests.own_services import own_database, own_home
from tests.spark_server import REMOTE, sail
from toolkit.errors import EngineUnavailable
from toolkit.operations.judge.audit.engines import Engine, bound, duckdb_engine, spark_engine
from toolkit.operations.judge.audit.judgement import judging
from toolkit.operations.judge.audit.snapshot_tables import table_of
from toolkit.operations.private_folder import PrivateFolder
from toolkit.operations.snapshot.contents import CONTENTS
from toolkit.operations.snapshot.export import export_snapshot
from toolkit.operations.snapshot.reading import Snapshot, open_snapshot
from toolkit.operations.spreadsheets.text_bytes import offsets, values
from toolkit.storage.database import Database
from toolkit.storage.duckdb_session import duckdb_session
from toolkit.storage.file_store import FolderStore
from toolkit.storage.frames import read_arrow

_SALES = 2_000_000
_AMPLE = "16GB"
"""Enough memory for the hand-written SQL, which fails in 2 GB at full size."""

_HALF = "8GB"
"""Half of it, which leaves room for the rows of ten million sales, where DuckDB spills."""

_ROUNDS = 2


def main(scale: float) -> None:
    """Print the measurements with their ratios."""
    sales = max(4000, round(_SALES * scale))
    exports(sales // 10)
    engines(sales)
    fingerprints(sales)


def exports(sales: int) -> None:
    """Export a filled database, and judge it there and from the export."""
    with own_database() as (database, home):
        fill(database, sales)
        _heading(sales)
        floor = timed(lambda: _copied(database, home / "floor.csv"), partial(server_cpu, home))
        store = FolderStore(home / "snapshot", "snapshot")
        full = timed(lambda: export_snapshot(database, store, home, lambda: NOW), partial(server_cpu, home))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        later = NOW + timedelta(hours=1)
        nothing = timed(lambda: export_snapshot(database, store, home, lambda: later), partial(server_cpu, home))
        with database.raw() as connection:
            connection.execute(_A_HUNDREDTH.replace(":sales", str(sales // 100)).encode())
        last = later + timedelta(hours=1)
        little = timed(lambda: export_snapshot(database, store, home, lambda: last), partial(server_cpu, home))
        _line("floor: COPY of the same tables to a file", floor, "1.00 floors")
        _line("snapshot export, full", full, f"{full.cpu / floor.cpu:.2f} floors (goal 2); peak {peak:,.0f} MB")
        _line("snapshot export, nothing new", nothing, f"{nothing.cpu / full.cpu:.2f} of the full one")
        _line("snapshot export, a hundredth new", little, f"{little.cpu / full.cpu:.2f} of the full one")
        manifest = full.answer.manifest
        print(f"{manifest.rows:,} rows, {sum(file.bytes for file in manifest.files) / 1e6:,.0f} MB")
        with PrivateFolder(home) as scratch, duckdb_engine(scratch) as engine:
            exported = _fingerprint(engine.read(_judged(engine, open_snapshot(store, NOW), home)))
        assert exported == _fingerprint(_in_postgres(database))
        print(f"one fingerprint of every judged row on PostgreSQL and of its export: {exported[:16]}")


def engines(sales: int) -> None:
    """Judge a snapshot on every engine, compare the judged rows, and judge a quarter of it."""
    with _generated(sales) as (snapshot, home):
        _heading(sales)
        prints: set[str] = set()
        by_hand, ours = _in_turn(
            lambda: _by_hand(snapshot, home), lambda: _by_duckdb(snapshot, home, _AMPLE, prints)
        )
        _line(f"floor: hand-written SQL on DuckDB in {_AMPLE}", by_hand, "1.00 floors")
        _line(f"judging the snapshot, DuckDB in {_AMPLE}", ours, f"{ours.cpu / by_hand.cpu:.2f} floors (goal 1.2)")
        for memory in ("2GB", "1GB"):
            try:
                less = _by_duckdb(snapshot, home, memory, prints)
            except EngineUnavailable as error:
                print(f"judging the snapshot, DuckDB in {memory}: {error}")
            else:
                _line(f"judging the snapshot, DuckDB in {memory}", less, f"{less.cpu / by_hand.cpu:.2f} floors")
        if importlib.util.find_spec("pysail") is not None:
            one, two = (_by_sail(snapshot, home, workers, prints) for workers in (1, 2))
            _line("judging the snapshot, Sail with one worker", one, "")
            _line(
                "judging the snapshot, Sail with two workers", two, f"{one.seconds / two.seconds:.2f} (goal 1.5)"
            )
        if REMOTE in os.environ:
            real = _by_spark(snapshot, home, os.environ[REMOTE], prints)
            _line(f"judging the snapshot, Spark at {os.environ[REMOTE]}", real, "")
    assert len(prints) == 1, prints
    quarter = growth(sales // 4)
    _line("a quarter of it", quarter, f"the whole takes {ours.cpu / quarter.cpu:.2f} of it (goal 4.5)")


def fingerprints(sales: int) -> None:
    """Compare all judged rows of every engine, each asked after the other, by one fingerprint."""
    with own_database() as (database, home):
        snapshot = generate(home, sales, NOW)
        _heading(sales)
        prints: set[str] = set()

        def compare(name: str, judged: Callable[[], pa.Table]) -> None:
            found = timed(lambda: _fingerprint(judged()), partial(server_cpu, home))
            _line(name, found, found.answer[:16])
            prints.add(found.answer)

        def spark(url: str) -> pa.Table:
            with spark_engine(url) as engine:
                return engine.read(_judged(engine, snapshot, home))

        def duckdb() -> pa.Table:
            with PrivateFolder(home) as scratch, duckdb_engine(scratch, _HALF) as engine:
                return engine.read(_judged(engine, snapshot, home))

        if importlib.util.find_spec("pysail") is not None:
            with _sail(2) as (url, server):
                compare("Sail with two workers", partial(spark, url))
                print(f"Sail held {peak_mb(server.pid):,.0f} MB at most", flush=True)
        if REMOTE in os.environ:
            compare("Spark", partial(spark, os.environ[REMOTE]))
        compare(f"DuckDB in {_HALF}", duckdb)
        _line("PostgreSQL, filled", timed(lambda: _fill(database, snapshot, home), partial(server_cpu, home)), "")
        compare("PostgreSQL", partial(_in_postgres, database))
    assert len(prints) == 1, prints
    print(f"one fingerprint of every judged row on every engine: {prints.pop()[:16]}")


def growth(sales: int) -> Timed[Any]:
    """Return the time that DuckDB takes for a snapshot of so many sales."""
    with _generated(sales) as (snapshot, home):
        return _by_duckdb(snapshot, home, _AMPLE)


@contextmanager
def _generated(sales: int) -> Iterator[tuple[Snapshot, Path]]:
    with own_home() as home:
        yield generate(home, sales, NOW), home


def _in_turn(*works: Callable[[], Timed[Any]]) -> list[Timed[Any]]:
    """Return the best of some rounds of each, so that all meet the same neighbours on the machine."""
    rounds = [[work() for work in works] for _ in range(_ROUNDS)]
    return [min(each, key=lambda each: each.cpu) for each in zip(*rounds, strict=True)]


def _by_duckdb(snapshot: Snapshot, home: Path, memory: str, prints: set[str] | None = None) -> Timed[Any]:
    with PrivateFolder(home) as scratch, duckdb_engine(scratch, memory) as engine:
        judged = timed(lambda: _judged(engine, snapshot, home))
        if prints is not None:
            prints.add(_fingerprint(engine.read(judged.answer)))
    return judged


def _sail(workers: int) -> AbstractContextManager[tuple[str, subprocess.Popen[bytes]]]:
    """A cluster of Sail, which gets a core for each worker."""
    environ = {
        "SAIL_MODE": "local-cluster",
        "SAIL_CLUSTER__WORKER_INITIAL_COUNT": str(workers),
        "SAIL_CLUSTER__WORKER_MAX_COUNT": str(workers),
        "SAIL_CLUSTER__WORKER_TASK_SLOTS": "16",
        "SAIL_EXECUTION__DEFAULT_PARALLELISM": str(workers),
        "RUST_LOG": "error",
    }
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[:workers]))
    return sail(environ, ("taskset", "--cpu-list", cores))


def _by_sail(snapshot: Snapshot, home: Path, workers: int, prints: set[str]) -> Timed[Any]:
    with _sail(workers) as (url, _):
        return _by_spark(snapshot, home, url, prints)


def _by_spark(snapshot: Snapshot, home: Path, url: str, prints: set[str]) -> Timed[Any]:
    with spark_engine(url) as spark:
        judged = _judged(spark, snapshot, home)
        answered = timed(lambda: spark.read(_status(judged)))
        prints.add(_fingerprint(spark.read(judged)))
    return answered


def _judged(engine: Engine, snapshot: Snapshot, home: Path) -> ibis.Table:
    contents = {content.name: content for content in CONTENTS}

    def path_of(file: Any) -> str:
        return str(home / "snapshot" / file.name)

    return engine.kept(bound(judging(NOW), lambda name: table_of(engine, snapshot, contents[name], path_of)))


def _status(judged: ibis.Table) -> ibis.Table:
    """A small answer that needs every sale judged."""
    return judged.group_by("status", "missing", "reasons", "problems", "counted").aggregate(sales=judged.count())


def _by_hand(snapshot: Snapshot, home: Path) -> Timed[Any]:
    with PrivateFolder(home) as scratch, duckdb_session(scratch, _AMPLE) as session:
        session.execute("CREATE SCHEMA audit")
        for content in CONTENTS:
            paths = [str(home / "snapshot" / file.name) for file in snapshot.files(content.name, "rows")]
            if paths:
                session.execute(f"CREATE VIEW {content.table.fullname} AS SELECT * FROM read_parquet({paths})")
            else:
                empty = content.schema.empty_table()  # noqa: F841  # which DuckDB finds by its name
                session.execute(f"CREATE TABLE {content.table.fullname} AS SELECT * FROM empty")
        return timed(lambda: session.execute(f"CREATE TABLE judged AS {BY_HAND}"))


def _in_postgres(database: Database) -> pa.Table:
    with database.snapshot() as connection:
        query = judging(NOW)
        return read_arrow(connection, str(ibis.to_sql(query, dialect="postgres")), query.schema().to_pyarrow())


def _fill(database: Database, snapshot: Snapshot, home: Path) -> None:
    """Put the rows of the snapshot into the tables that it is of, without events of the custody log.

    The indexes are made anew at the end, which takes a fraction of entering each row into each of them.
    """
    tables = [content.table.fullname for content in CONTENTS]
    with database.raw() as connection:
        connection.execute("SET LOCAL session_replication_role = replica")
        connection.execute("SET LOCAL maintenance_work_mem = '1GB'")
        indexes: list[tuple[Any, ...]] = connection.execute(_INDEXES, {"tables": tables}).fetchall()
        for name, _ in indexes:
            connection.execute(f"DROP INDEX {name}".encode())
        for content in CONTENTS:
            names = [name for name in content.schema.names if name in content.table.columns]
            told = f"COPY {content.table.fullname} ({', '.join(names)}) FROM STDIN (FORMAT csv)"
            for file in snapshot.files(content.name, "rows"):
                with connection.cursor() as cursor, cursor.copy(told.encode()) as copy:
                    for batch in ParquetFile(home / "snapshot" / file.name).iter_batches(columns=names):
                        lines = BytesIO()
                        write_csv(batch, lines, WriteOptions(include_header=False))
                        copy.write(lines.getvalue())
        for _, made in indexes:
            connection.execute(made.encode())
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM ANALYZE")


def _fingerprint(rows: pa.Table) -> str:
    """The SHA-256 of all columns, in the order of the ids of the sales."""
    order, digest = pc.sort_indices(rows["sale_id"]), sha256()
    for name in sorted(rows.column_names):
        column = rows[name]
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        # Large rows stay columns here: texts in Python would take many gigabytes.
        texts = column.cast(pa.string()).take(order).fill_null("\0").combine_chunks()
        digest.update(np.diff(offsets(texts)).data)
        digest.update(values(texts).data)
    return digest.hexdigest()


def _copied(database: Database, path: Path) -> None:
    for content in CONTENTS:
        columns = ", ".join(name for name in content.schema.names if name in content.table.columns)
        query = f"COPY (SELECT {columns} FROM {content.table.fullname}) TO STDOUT"
        with database.raw() as connection, path.open("wb") as file, connection.cursor().copy(query) as copy:
            for block in copy:
                file.write(block)


def _heading(sales: int) -> None:
    print(f"{f'{sales:,} sales, {sales * 5 // 2:,} records':46}{'seconds':>8}{'CPU':>8}")


def _line(name: str, taken: Timed[Any], ratio: str) -> None:
    print(f"{name:46}{taken.seconds:>8.2f}{taken.cpu:>8.2f}  {ratio}", flush=True)


_INDEXES = """
    SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid)
    FROM pg_index WHERE indrelid = ANY (%(tables)s::text[]::regclass[])
    AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
"""

_A_HUNDREDTH = """
    INSERT INTO audit.evidence_observations (evidence_id, sale_id, evidence_type, type, object_key, requested_at,
                                             expires_at, seen_at)
    SELECT gen_random_uuid(), 'S-' || i, 'POV', 'x', 'night/' || i, '2026-11-20T13:30Z', '2026-11-21',
           '2026-11-20T13:30Z'
    FROM generate_series(1, :sales) AS i;
    INSERT INTO audit.object_observations (key, size, etag, last_modified, seen_at)
    SELECT 'night/' || i, 1000, 'etag', '2026-11-20T13:30Z', '2026-11-20T13:30Z'
    FROM generate_series(1, :sales) AS i;
    UPDATE audit.sale_observations SET gone_at = '2026-11-20T13:30Z'
    WHERE sale_id IN (SELECT 'S-' || i FROM generate_series(1, :sales) AS i);
"""
"""What a day brings: records and files of every hundredth sale, which was also changed."""


if __name__ == "__main__":
    parts = {"exports": exports, "engines": engines, "fingerprints": fingerprints}
    parts[sys.argv[1]](round(_SALES * float(sys.argv[2])))
