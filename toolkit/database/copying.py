"""Copy Arrow rows into a table of PostgreSQL by COPY, as CSV that Arrow writes."""

from collections.abc import Iterable
from typing import Final

import psycopg
import pyarrow as pa
import uuid_utils
from psycopg import sql
from pyarrow import csv

_PIECE: Final = 256 * 1024
"""Bytes handed over at once: whenever the server has taken some, the library moves all that it still holds."""


def named(table: str, columns: Iterable[str]) -> sql.Composable:
    """Return a table with the names of the columns that rows are copied into."""
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    return sql.SQL("{} ({})").format(sql.Identifier(table), names)


def copy_rows(connection: psycopg.Connection[tuple[object, ...]], place: sql.Composable, rows: pa.Table) -> None:
    """Copy the rows into ``place``, column by column; null and an empty text stay apart."""
    written = pa.BufferOutputStream()
    csv.write_csv(rows, written, csv.WriteOptions(include_header=False))
    block = memoryview(written.getvalue())
    statement = sql.SQL("COPY {} FROM STDIN (FORMAT csv)").format(place)
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for at in range(0, len(block), _PIECE):
            copy.write(block[at : at + _PIECE])


def new_ids(count: int) -> list[str]:
    """Return ``count`` ids as of ``toolkit.database.tables.new_id``, each as 32 digits."""
    return [uuid_utils.uuid7().hex for _ in range(count)]
