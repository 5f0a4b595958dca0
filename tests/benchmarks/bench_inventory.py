"""An S3 Inventory becomes observations. Scale 1 is 50,000,000 keys; goals: 500,000 keys a second, flat memory.

Of the first inventory nothing is known, so each key becomes a row of PostgreSQL and an event of the custody log.
The floors beside it are a bare COPY of the same rows into a table with the same indexes, without that log and
with it.
The next inventory differs in one key of a hundred. CPU seconds are told apart: those of this process, which are
DuckDB's but for a little Python, and those of PostgreSQL.

Each size has a process of its own, for its memory, and one limit for DuckDB, which a quarter of the keys reaches.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import file_digest
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar, cast

import duckdb
import pyarrow as pa
import sqlalchemy as sa

from tests.benchmarks.commands import peak_mb, server_cpu
from tests.benchmarks.timing import Timed, timed
from tests.memory_bucket import MemoryBucket
from tests.own_services import own_database
from toolkit.operations.observe.delivered import TakenOver, find_inventory, take_over
from toolkit.storage.bucket import Bucket, ObjectSeen
from toolkit.storage.database import Database, raw
from toolkit.storage.file_store import FolderStore

T = TypeVar("T")

_KEYS = 50_000_000
_NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
_FILES = 8
_MEMORY = "1GB"
"""The memory of DuckDB where it prepares what is measured."""
_LEAST_MB = 250
_OVERWRITTEN = 7
"""The size of an object that was overwritten before the next inventory; no other has it."""


def main(scale: float) -> None:
    """Print the measurements with their ratios, at a quarter of the size and at all of it."""
    keys = max(40_000, round(_KEYS * scale))
    memory = f"{max(_LEAST_MB, min(1000, keys // 25_000))}MB"
    peaks = []
    for size in (keys // 4, keys):
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            peaks.append(process.submit(measure, size, memory).result())
    print(f"{'':46}four times the keys: {peaks[1] / peaks[0]:.2f} times the memory (goal 1.2)")


def measure(keys: int, memory: str) -> float:
    """Print the measurements with this many keys; return the most memory that this process held, in MB."""
    pa.array([])  # imports pandas, which takes as long as 200,000 keys
    with own_database() as (database, home):
        first, second = home / "first", home / "second"
        with ProcessPoolExecutor(1, get_context("spawn")) as another:  # its memory is not that of the work
            another.submit(_write, first, keys, _NOW).result()
            another.submit(_write, second, keys, _NOW + timedelta(days=1), changed=True).result()
        print(f"{f'{keys:,} keys':46}{'seconds':>8}{'CPU here':>33}{'CPU of PostgreSQL':>28}")
        new = _line(
            "first inventory: every key is new",
            keys,
            home,
            lambda: _taken(database, first, home, memory, MemoryBucket()),
        )
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM ANALYZE")  # as PostgreSQL does by itself within a day
        bucket = _Overwritten(second)
        next_one = _line(
            "next inventory: 1 % differs", keys, home, lambda: _taken(database, second, home, memory, bucket)
        )
        found = next_one.answer.synced
        print(f"{'':46}{found.appeared:,} new, {found.changed:,} overwritten, {found.vanished:,} gone")
        peak = peak_mb()
        print(f"memory of this process at most {peak:,.0f} MB, {memory} of it for DuckDB", flush=True)
        with database.raw() as connection:
            connection.execute("SET LOCAL session_replication_role = replica")  # else nothing may be deleted
            connection.execute(
                "TRUNCATE audit.object_observations, audit.custody_events CASCADE"
            )  # for the floors
        line = partial(_line, keys=keys, home=home)
        _bare(database, first, partial(line, "floor: COPY of the same rows"), "SELECT 1")
        floor = _bare(database, first, partial(line, "floor: the same, each told to the log"), _TELL)
        print(f"{'':46}the first inventory took {new.cpu / floor.cpu:.2f} times the CPU of that floor")
        return peak


def _line(name: str, keys: int, home: Path, work: Callable[[], T]) -> Timed[T]:
    """Print the seconds of some work and those of CPU, of this process and of PostgreSQL."""
    before = server_cpu(home)
    taken = timed(work, partial(server_cpu, home))
    served = server_cpu(home) - before
    rates = (f"{spent:>10.2f} s{keys / spent:>11,.0f} keys/s" for spent in (taken.cpu - served, served))
    print(f"{name:46}{taken.seconds:>8.2f}{keys / taken.seconds:>11,.0f} keys/s{''.join(rates)}", flush=True)
    return taken


class _Overwritten(MemoryBucket):
    """A bucket that knows of the objects that were overwritten."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        query = f"SELECT key, size, e_tag, epoch(last_modified_date) FROM '{folder}/data/*.parquet' "
        rows = duckdb.execute(f"{query} WHERE size = {_OVERWRITTEN}").fetchall()
        self._known = {
            key: ObjectSeen(key, size, etag, datetime.fromtimestamp(modified, UTC))
            for key, size, etag, modified in rows
        }

    def head(self, key: str) -> ObjectSeen | None:
        return self._known.get(key)


def _taken(database: Database, folder: Path, home: Path, memory: str, bucket: MemoryBucket) -> TakenOver:
    with tempfile.TemporaryDirectory(dir=home) as scratch:
        inventory = find_inventory(FolderStore(folder, "inventory"), None, Path(scratch))
        moment = inventory.moment or _NOW
        return take_over(
            database, cast("Bucket", bucket), inventory, Path(scratch), clock=lambda: moment, memory=memory
        )


def _bare(database: Database, folder: Path, line: Callable[..., Timed[None]], also: str) -> Timed[None]:
    """Copy the rows of an inventory, in the order of their keys, and roll it back."""
    rows = f"SELECT key, size, e_tag, last_modified_date, now() FROM '{folder}/data/*.parquet' ORDER BY key"
    with duckdb.connect(config={"memory_limit": _MEMORY, "temp_directory": str(folder / "spill")}) as work:
        work.execute(f"COPY ({rows}) TO '{folder}/bare.csv' (FORMAT csv, HEADER false)")

    def copy(connection: sa.Connection) -> None:
        statement = "COPY bare (key, size, etag, last_modified, seen_at) FROM STDIN (FORMAT csv)"
        with (folder / "bare.csv").open("rb") as file:
            while lines := file.readlines(1 << 24):  # as many as are held back for the log at a time
                with raw(connection).cursor().copy(statement) as copied:
                    copied.write(b"".join(lines))

    with database.transaction() as connection:
        connection.execute(sa.text("CREATE TABLE bare (LIKE audit.object_observations INCLUDING ALL)"))
        connection.execute(sa.text(also))
        spent = line(work=lambda: copy(connection))
        connection.rollback()
    (folder / "bare.csv").unlink()
    return spent


def _write(folder: Path, keys: int, moment: datetime, *, changed: bool = False) -> None:
    """Write an inventory with the columns of S3, in Parquet; a ``changed`` one has 1 % that differs."""
    (folder / "data").mkdir(parents=True)
    work = duckdb.connect(config={"memory_limit": _MEMORY, "temp_directory": str(folder / "spill")})
    overwritten = f"({changed} AND number % 400 = 207)"
    files = []
    for part in range(_FILES):
        path = folder / "data" / f"{part}.parquet"
        work.execute(
            f"COPY (SELECT 'memory' AS bucket, "
            "'files/2026/' || (number % 12 + 1) || '/' || md5(number::VARCHAR) || '/recording.mp3' AS key, "
            f"if({overwritten}, {_OVERWRITTEN}, 1000 + number % 100000) AS size, "
            "TIMESTAMPTZ '2026-01-01 00:00:00+00' + to_seconds(number % 20000000) AS last_modified_date, "
            "md5((number + 1)::VARCHAR) AS e_tag "
            f"FROM range({part}, {keys + keys // 200 * changed}, {_FILES}) AS all_keys(number) "
            f"WHERE NOT ({changed} AND number % 400 = 7)) TO '{path}'"
        )
        with path.open("rb") as file:
            digest = file_digest(file, "md5").hexdigest()
        files.append({"key": f"lists/data/{part}.parquet", "size": path.stat().st_size, "MD5checksum": digest})
    document = {
        "sourceBucket": "memory",
        "creationTimestamp": str(round(moment.timestamp() * 1000)),
        "fileFormat": "Parquet",
        "fileSchema": "message s3.inventory {}",
        "files": files,
    }
    (folder / "run").mkdir()
    (folder / "run" / "manifest.json").write_text(json.dumps(document))


_TELL = """
    CREATE TRIGGER tell AFTER INSERT ON bare REFERENCING NEW TABLE AS written
    FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_uploaded()
"""
