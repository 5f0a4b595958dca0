"""Copy rows from PostgreSQL to DuckDB and back, in memory that does not grow with their number.

DuckDB writes the lines that COPY reads: Python sees none of the rows, only blocks of their text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyarrow import compute as pc
from sqlalchemy import Connection

from toolkit.storage.database import raw
from toolkit.storage.frames import streamed

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_ROWS: Final = 50_000
"""The rows of a statement; PostgreSQL sorts them once more for the custody log, within its own memory."""

_TEXT: Final = {
    "VARCHAR": """'"' || replace({}, '"', '""') || '"'""",
    "TIMESTAMP WITH TIME ZONE": "CAST({} AT TIME ZONE 'UTC' AS VARCHAR) || '+00'",
}
"""The text of a value in CSV, by its type in DuckDB; any other is written as it is, and a null as nothing."""


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
    columns = work.execute(f"DESCRIBE {query}").fetchall()
    values = ", ',', ".join(_TEXT.get(kind, "{}").format(name) for name, kind, *_ in columns)
    lines = f"SELECT concat({values}, chr(10)) AS line, {key or 'NULL'} FROM ({query})"  # noqa: S608  # constants
    if key is not None:
        lines += f" ORDER BY {key}"
    last = pa.scalar(None, pa.string())
    for batch in stream(work, lines, _ROWS):
        text = batch.column(0)
        if key is not None:
            keys = batch.column(1)
            before = pa.concat_arrays([pa.array([last], pa.string()), keys[:-1]])
            text, last = text.filter(pc.fill_null(pc.not_equal(keys, before), True)), keys[-1]
        block = pc.binary_join(pa.ListArray.from_arrays([0, len(text)], text), "")[0].as_buffer()
        with raw(connection).cursor().copy(f"COPY {place} FROM STDIN (FORMAT csv)") as statement:
            statement.write(block)
        yield len(text)


def stream(work: DuckDBPyConnection, query: str, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a query, some at a time, while the connection stays free."""
    yield from work.cursor().sql(query).to_arrow_reader(rows)
