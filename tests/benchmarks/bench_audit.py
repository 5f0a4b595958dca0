"""A whole audit beside its floor, a bare COPY of the inputs and SQL by hand in DuckDB, and SQL in PostgreSQL.

Scale 1 is 400,000 sales with 1,000,000 evidence records; every tenth sale lacks something. Goals: the audit,
everything judged and the findings compared, at most 1.3 times the floor and below half of the hand-written SQL in
PostgreSQL; with nothing new in a night, at most 0.5 seconds for a million rows of inputs.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

from tests.benchmarks.by_hand import IN_DUCKDB, IN_POSTGRESQL, TABLES
from tests.benchmarks.made_sales import NOW, fill
from tests.benchmarks.measuring import line, peak_mb, server_cpu, timed
from tests.support.audits import plan_in
from tests.support.own_database import own_database
from toolkit.audit.duckdb_session import duckdb_session
from toolkit.audit.extract import extract
from toolkit.audit.run import make_audit
from toolkit.database.connection import Database, raw

SALES = 400_000


def main(scale: float) -> None:
    """Print the measurements with their ratios."""
    with own_database() as (database, home):
        sales = max(100, round(SALES * scale))
        fill(database, sales, custody=False)
        print(f"{sales:,} sales, about {sales * 5 // 2:,} evidence records{'seconds':>14}{'sales/s':>12}  ratio")
        cpu = partial(server_cpu, home)
        copied = timed(lambda: _copied(database), cpu)
        arrow = timed(lambda: _extracted(database, home), cpu)
        judged = timed(lambda: _in_duckdb(database, home), cpu)
        by_hand = timed(lambda: _in_postgresql(database), cpu)
        floor = copied.seconds + judged.answer
        line("floor: bare COPY, by psycopg", copied.seconds, sales, f"{copied.cpu:.2f} CPU seconds")
        line("floor: SQL by hand in DuckDB", judged.answer, sales)
        line("peer: SQL by hand in PostgreSQL", by_hand.seconds, sales, f"{by_hand.cpu:.2f} CPU seconds")
        line("the inputs as Arrow, into DuckDB", arrow.seconds, sales, f"{arrow.cpu:.2f} CPU seconds")
        plan = plan_in(home)
        for name, hours in (("a whole audit, the first one", 0), ("a whole audit with nothing new", 1)):
            moment = NOW + timedelta(hours=hours)
            made = timed(lambda moment=moment: make_audit(database, plan, clock=lambda: moment), cpu)  # type: ignore[misc]
            ratio = (
                f"{made.seconds / floor:.2f} floors (goal 1.3), {made.seconds / by_hand.seconds:.2f} of PostgreSQL"
            )
            line(name, made.seconds, sales, f"{ratio} (goal 0.5), {made.cpu:.2f} CPU seconds")
        rows = sum(part.rows for name, part in made.answer.facts.parts.items() if name in TABLES)
        bytes_ = sum(path.stat().st_size for path in Path(made.answer.folder).iterdir())
        print(f"  {rows:,} rows of inputs; the folder has {bytes_ / 1e6:.0f} MB; peak {peak_mb():,.0f} MB")


def _copied(database: Database) -> int:
    """Read every input as binary COPY gives it, and do nothing with it."""
    size = 0
    with database.snapshot() as connection, raw(connection).cursor() as cursor:
        for query in TABLES.values():
            with cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT binary)".encode()) as copy:
                for block in copy:
                    size += len(block)
    return size


def _extracted(database: Database, home: Path) -> None:
    with database.snapshot() as connection, duckdb_session(home, "4GB") as session:
        extract(database, connection, NOW, session)


def _in_duckdb(database: Database, home: Path) -> float:
    """Return the seconds of the judging alone, over tables that are there, with its result written as Parquet."""
    with database.snapshot() as connection, duckdb_session(home, "4GB") as session:
        for name, query in TABLES.items():
            place = home / f"{name}.csv"
            copying = f"COPY ({query}) TO STDOUT (FORMAT csv, HEADER)".encode()
            with place.open("wb") as file, raw(connection).cursor() as cursor, cursor.copy(copying) as copy:
                for block in copy:
                    file.write(block)
            rows: pa.Table = csv.read_csv(place)
            session.register("rows", rows)
            session.execute(f"CREATE TABLE {name} AS FROM rows")
            place.unlink()
        output = home / "by_hand.parquet"
        return timed(
            lambda: session.execute(f"COPY ({IN_DUCKDB}) TO '{output}' (FORMAT parquet, COMPRESSION zstd)")
        ).seconds


def _in_postgresql(database: Database) -> None:
    """Judge into a temporary table."""
    with database.snapshot() as connection:
        raw(connection).execute(f"CREATE TEMPORARY TABLE judged ON COMMIT DROP AS {IN_POSTGRESQL}".encode())
