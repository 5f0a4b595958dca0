"""Copy rows from PostgreSQL to DuckDB and back, in memory that does not grow with their number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from psycopg import sql
from pyarrow import compute as pc
from sqlalchemy import Connection

from toolkit.database.connection import raw
from toolkit.database.copying import copy_rows as copy_arrow_rows
from toolkit.database.frames import streamed

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_ROWS: Final = 50_000
"""The rows of a statement; PostgreSQL sorts them once more for the custody log, within its own memory."""


def take_rows(work: DuckDBPyConnection, made: str, schema: pa.Schema, rows: Iterator[pa.RecordBatch]) -> None:
    """Make a table of DuckDB; ``made`` is its definition over the table ``rows``."""
    with streamed(rows, schema) as reader:
        work.register("rows", reader)
        work.execute(made)
        work.unregister("rows")


def copy_rows(
    connection: Connection, work: DuckDBPyConnection, query: str, place: str, *, key: str | None = None
) -> Iterator[int]:
    """Copy the rows of a query on DuckDB into a table of PostgreSQL; yields how many, after each statement.

    With ``key`` they are copied in its order, which indexes like, and one of several with the same key is taken.
    """
    last = pa.scalar(None, pa.string())
    for batch in stream(work, query if key is None else f"FROM ({query}) ORDER BY {key}", _ROWS):
        rows = batch
        if key is not None:
            keys = batch.column(key)
            before = pa.concat_arrays([pa.array([last], pa.string()), keys[:-1]])
            rows, last = batch.filter(pc.fill_null(pc.not_equal(keys, before), True)), keys[-1]
        copy_arrow_rows(raw(connection), sql.SQL(place), pa.Table.from_batches([rows]))
        yield len(rows)


def stream(work: DuckDBPyConnection, query: str, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a query, some at a time, while the connection stays free."""
    yield from work.cursor().sql(query).to_arrow_reader(rows)
