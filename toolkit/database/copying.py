"""Copy Arrow rows into a table of PostgreSQL by COPY, as CSV that Arrow writes."""

from typing import Final

import pyarrow as pa
import uuid_utils
from psycopg import sql
from pyarrow import csv
from sqlalchemy import Connection

from toolkit.database.connection import raw

_PIECE: Final = 256 * 1024
"""Bytes handed over at once: whenever the server has taken some, the library moves all that it still holds."""


def copy_rows(connection: Connection, table: str, rows: pa.Table) -> None:
    """Copy the rows into the columns of ``table`` that are named as theirs; null and an empty text stay apart."""
    written = pa.BufferOutputStream()
    csv.write_csv(rows, written, csv.WriteOptions(include_header=False))
    block = memoryview(written.getvalue())
    names = sql.SQL(", ").join(map(sql.Identifier, rows.column_names))
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(sql.Identifier(table), names)
    with raw(connection).cursor() as cursor, cursor.copy(statement) as copy:
        for at in range(0, len(block), _PIECE):
            copy.write(block[at : at + _PIECE])


def new_ids(count: int) -> list[str]:
    """Return ``count`` ids as of ``toolkit.database.tables.new_id``, each as 32 digits."""
    return [uuid_utils.uuid7().hex for _ in range(count)]
