"""An S3 Inventory becomes observations. Scale 1 is 50,000,000 keys; goals: 500,000 keys a second, flat memory.

The first inventory finds nothing known, so each key becomes a row of PostgreSQL, beside a floor of a bare COPY of
the same rows into a table with the same indexes. The second one differs in one key of a thousand.
"""

from __future__ import annotations

import json
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import file_digest
from pathlib import Path
from typing import Any, cast

import duckdb
import sqlalchemy as sa

from tests.memory_bucket import MemoryBucket
from toolkit.operations.observe.delivered import TakenOver, find_inventory, take_over
from toolkit.storage import embedded, schema
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database, raw
from toolkit.storage.file_store import FolderStore

_KEYS = 50_000_000
_NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
_FILES = 8


def main(scale: float) -> None:
    """Print the measurements with their ratios."""
    home = Path(tempfile.mkdtemp(prefix="bench-inventory-", dir="/tmp"))  # open to the account of PostgreSQL
    keys = max(10_000, round(_KEYS * scale))
    try:
        database = Database(embedded.database_url(home), embedded=True)
        schema.upgrade(database, service_tables=True)
        first, second = home / "first", home / "second"
        _write(first, keys, _NOW, "true")
        _write(second, keys, _NOW + timedelta(days=1), "number % 1000 <> 7")
        print(f"{keys:,} keys{'seconds':>46}")
        floor, _ = _timed(lambda: _bare(database, first))
        _line("floor: COPY of the same rows from CSV", floor, keys, "")
        seconds, _ = _timed(lambda: _taken(database, first, home, _NOW))
        _line("first inventory: every key is new", seconds, keys, f"{seconds / floor:.2f} floors")
        seconds, taken = _timed(lambda: _taken(database, second, home, _NOW + timedelta(days=1)))
        _line(f"next inventory: {taken.asked:,} asked for, {taken.changes.vanished:,} gone", seconds, keys, "")
        print(
            f"memory of this process at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB"
        )
        database.dispose()
    finally:
        embedded.stop(home)
        shutil.rmtree(home)


def _taken(database: Database, folder: Path, home: Path, now: datetime) -> TakenOver:
    with tempfile.TemporaryDirectory(dir=home) as scratch:
        inventory = find_inventory(FolderStore(folder, "inventory"), None, Path(scratch))
        bucket = cast("Bucket", MemoryBucket())
        return take_over(database, bucket, inventory, Path(scratch), clock=lambda: now, memory="1GB")


def _bare(database: Database, folder: Path) -> None:
    with database.transaction() as connection:
        connection.execute(sa.text("CREATE TABLE bare (LIKE audit.object_observations INCLUDING ALL)"))
        columns = "key, size, etag, last_modified, seen_at"
        work = duckdb.connect()
        rows = f"SELECT key, size, e_tag, last_modified_date, now() FROM read_parquet('{folder}/data/*.parquet')"
        work.execute(f"COPY ({rows}) TO '{folder}/bare.csv' (FORMAT csv, HEADER false)")
        started = time.perf_counter()
        statement = f"COPY bare ({columns}) FROM STDIN (FORMAT csv)"
        with raw(connection).cursor().copy(statement) as copy, (folder / "bare.csv").open("rb") as file:
            while block := file.read(1 << 20):
                copy.write(block)
        print(f"{'(of the floor, the COPY alone)':46}{time.perf_counter() - started:>8.2f}")
        connection.execute(sa.text("DROP TABLE bare"))
    (folder / "bare.csv").unlink()


def _write(folder: Path, keys: int, moment: datetime, condition: str) -> None:
    """Write an inventory with the columns of S3, in Parquet."""
    (folder / "data").mkdir(parents=True)
    work = duckdb.connect(config={"memory_limit": "1GB", "temp_directory": str(folder / "spill")})
    files = []
    for part in range(_FILES):
        path = folder / "data" / f"{part}.parquet"
        work.execute(
            f"COPY (SELECT 'memory' AS bucket, "
            "'files/2026/' || (number % 12 + 1) || '/' || md5(number::VARCHAR) || '/recording.mp3' AS key, "
            "1000 + number % 100000 AS size, TIMESTAMPTZ '2026-01-01 00:00:00+00' + to_seconds(number % 20000000) "
            "AS last_modified_date, md5((number + 1)::VARCHAR) AS e_tag "
            f"FROM range({part}, {keys}, {_FILES}) AS all_keys(number) WHERE {condition}) TO '{path}'"
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


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    answer = work()
    return time.perf_counter() - started, answer


def _line(name: str, seconds: float, keys: int, ratio: str) -> None:
    print(f"{name:46}{seconds:>8.2f}  {keys / seconds:>10,.0f} keys/s  {ratio}", flush=True)
