"""Read a query's rows as columns: COPY out of PostgreSQL, into Arrow."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Final

import psycopg
import pyarrow as pa
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from pyarrow import csv
from sqlalchemy import Connection

from toolkit.database.connection import raw
from toolkit.errors import DatabaseError

_BLOCK: Final = 1 << 22
"""Bytes that are parsed at a time."""

_PARSE: Final = csv.ParseOptions(newlines_in_values=True)


@contextmanager
def streamed(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatchReader]:
    """Open rows for another engine to read; an error that they raise leaves as it was raised.

    The engine would wrap it into one of its own, and nobody would know it any more.
    """
    raised: list[Exception] = []

    def rows() -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except Exception as error:
            raised.append(error)
            raise

    try:
        yield pa.RecordBatchReader.from_batches(schema, rows())
    except Exception:
        if raised:
            raise raised[0] from None
        raise


def stream_arrow(connection: Connection, query: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``query``, some at a time, in memory that does not grow with their number."""
    convert = csv.ConvertOptions(
        column_types={field.name: field.type for field in schema},
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
        true_values=["t"],
        false_values=["f"],
    )
    read = csv.ReadOptions(column_names=schema.names, use_threads=False, block_size=2 * _BLOCK)
    driver = raw(connection)
    driver.execute("SET LOCAL TimeZone = 'UTC'")
    with driver.cursor() as cursor, cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT csv)") as copy:
        for rows in _joined(copy):
            try:
                table = csv.read_csv(pa.BufferReader(rows), read, parse_options=_PARSE, convert_options=convert)
            except pa.ArrowInvalid:
                # Arrow quotes the value, which may be personal.
                raise DatabaseError(
                    "The database holds a value that cannot be read, such as an infinite time."
                ) from None
            # The reader takes every column for one that may hold nulls.
            yield from (pa.RecordBatch.from_arrays(each.columns, schema=schema) for each in table.to_batches())


def _joined(copy: psycopg.Copy) -> Iterator[memoryview]:
    """Yield many rows at a time; the server sends each in a message of its own.

    Those that have arrived are taken one level below ``Copy.read``, which takes twice as long for each.
    """
    arrived = copy.connection.pgconn
    block = BytesIO()  # a list of rows would have the garbage collector look through them again and again
    while True:
        size, row = arrived.get_copy_data(1)
        if not block.write(row if size else copy.read()):  # which waits for the next one
            break
        if block.tell() >= _BLOCK:
            yield block.getbuffer()
            block = BytesIO()
    if size < 0:
        for result in list(iter(arrived.get_result, None)):
            if result.status != ExecStatus.COMMAND_OK:
                raise error_from_result(result)
    if block.tell():
        yield block.getbuffer()
