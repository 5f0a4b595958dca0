"""Read the rows of a snapshot on DuckDB: all exports together, ended where a later one says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import compute as pc

from toolkit.operations.snapshot.contents import CLOSINGS, Content
from toolkit.operations.snapshot.manifest import File
from toolkit.operations.snapshot.reading import Snapshot
from toolkit.storage.duckdb_session import files_alone

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PathOf = Callable[[File], str]
"""Tells where a file of a snapshot is."""


def history_of(session: DuckDBPyConnection, exported: Snapshot, content: Content, path_of: PathOf) -> str:
    """Return a query for the rows of a table as they were at the moment of the snapshot."""
    rows = _files(session, exported, content, "rows", content.schema, path_of)
    if not content.closes:
        return f"SELECT {', '.join(content.schema.names)} FROM {rows}"  # noqa: S608  # our own names
    closings = _files(session, exported, content, "closings", CLOSINGS, path_of)
    ended = "coalesce(seen.gone_at, ended.gone_at) AS gone_at"
    columns = (ended if name == "gone_at" else f"seen.{name}" for name in content.schema.names)
    return (
        f"SELECT {', '.join(columns)} FROM {rows} AS seen "  # noqa: S608
        f"LEFT JOIN {closings} AS ended ON ended.id = seen.id"
    )


def _files(
    session: DuckDBPyConnection,
    exported: Snapshot,
    content: Content,
    part: str,
    schema: pa.Schema,
    path_of: PathOf,
) -> str:
    paths = [path_of(file) for file in exported.files(content.name, part)]
    if not paths:
        return table_of_rows(session, f"no_{content.name}_{part}", schema.empty_table())
    return f"read_parquet({files_alone(paths)})"


def table_of_rows(session: DuckDBPyConnection, name: str, rows: pa.Table) -> str:
    """Make a table of these rows, and return its name."""
    session.register("rows", rows)
    session.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM rows")  # noqa: S608  # our own names
    session.unregister("rows")
    return name


def digest(batches: Iterable[pa.RecordBatch]) -> tuple[int, str]:
    """Return the number of rows, and a SHA-256 over all their values, row by row."""
    count, told = 0, sha256()
    for batch in batches:
        values = [_text(column) for column in batch.columns]
        told.update("".join(pc.binary_join_element_wise(*values, "", "\0").to_pylist()).encode())
        count += batch.num_rows
    return count, told.hexdigest()


def _text(column: pa.Array) -> pa.Array:
    """Return each value behind a sign that tells it from a null; no text of PostgreSQL has the separator."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return pc.fill_null(pc.binary_join_element_wise("+", column.cast(pa.string()), ""), "-")
