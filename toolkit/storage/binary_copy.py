"""Copy Arrow columns into a table in COPY's binary format, which takes the server a sixth less work than text."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

_MICROSECONDS: Final = pa.timestamp("us", "UTC")
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""The moment from which PostgreSQL counts the days of a date and the microseconds of a timestamp."""
_DAYS_BEFORE: Final = (_EPOCH.date() - date(1970, 1, 1)).days
_MICROSECONDS_BEFORE: Final = int(_EPOCH.timestamp()) * 1_000_000

_HEADER: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER: Final = b"\xff\xff"
_PIECE: Final = 256 * 1024
"""Bytes handed over at once: whenever the server has taken some, the library moves all that it still holds."""

Rows = npt.NDArray[np.uint8]
"""Values that are equally long, each a row of bytes."""


def binary_rows(columns: Sequence[pa.Array]) -> pa.BinaryArray:
    """Return the rows as COPY reads them: the number of fields, then each field behind its length.

    Texts go to ``text``, whole numbers to ``bigint``, timestamps to ``timestamptz``, dates to ``date``, and fixed
    bytes to ``uuid``.
    """
    count = len(columns[0])
    parts: list[pa.BinaryArray] = []
    fixed = [_big_endian(np.full(count, len(columns)), ">i2")]
    for column in columns:
        found = _fixed(column)
        if found is not None and not column.null_count:
            fixed += [_big_endian(np.full(count, found.shape[1]), ">i4"), found]
            continue
        if found is None:
            texts = column.cast(pa.binary())
        else:
            texts = pc.if_else(column.is_valid(), _column(found), pa.scalar(None, pa.binary()))
        lengths = pc.fill_null(pc.binary_length(texts), -1).to_numpy()
        parts += [_column(np.hstack([*fixed, _big_endian(lengths, ">i4")])), texts]
        fixed = []
    if fixed:
        parts.append(_column(np.hstack(fixed)))
    absent = pc.JoinOptions(null_handling="replace", null_replacement="")
    return pc.binary_join_element_wise(*parts, pa.scalar(b""), options=absent)


def copy_binary(
    connection: psycopg.Connection[tuple[object, ...]], place: sql.Composable, rows: pa.BinaryArray
) -> None:
    """Copy the rows into ``place``, a table with or without the names of its columns."""
    if connection.info.encoding != "utf-8":
        connection.execute("SET LOCAL client_encoding TO 'UTF8'")
    statement = sql.SQL("COPY {} FROM STDIN (FORMAT binary)").format(place)
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(_HEADER)
        if len(rows):
            begin, end = np.frombuffer(rows.buffers()[1], np.int32)[[rows.offset, rows.offset + len(rows)]]
            written = memoryview(rows.buffers()[2])[begin:end]
            for at in range(0, len(written), _PIECE):
                copy.write(written[at : at + _PIECE])
        copy.write(_TRAILER)


def ids_column(ids: Rows) -> pa.FixedSizeBinaryArray:
    """Return ids as a column for ``uuid``."""
    return pa.Array.from_buffers(pa.binary(16), len(ids), [None, pa.py_buffer(np.ascontiguousarray(ids))])


def _fixed(column: pa.Array) -> Rows | None:
    """Return the values as PostgreSQL reads them, ``None`` where they differ in their lengths."""
    kind = column.type
    if pa.types.is_fixed_size_binary(kind):
        bytes_before = column.offset * kind.byte_width
        found = np.frombuffer(column.buffers()[1], np.uint8, len(column) * kind.byte_width, bytes_before)
        return found.reshape(len(column), kind.byte_width)
    if pa.types.is_date(kind):
        return _big_endian(_numbers(column.cast(pa.date32()).view(pa.int32())) - _DAYS_BEFORE, ">i4")
    if pa.types.is_timestamp(kind):
        return _big_endian(_numbers(column.cast(_MICROSECONDS).view(pa.int64())) - _MICROSECONDS_BEFORE, ">i8")
    if pa.types.is_integer(kind):
        return _big_endian(_numbers(column.cast(pa.int64())), ">i8")
    return None


def _numbers(column: pa.Array) -> npt.NDArray[np.integer[Any]]:
    return np.asarray((pc.fill_null(column, 0) if column.null_count else column).to_numpy())


def _big_endian(numbers: npt.NDArray[np.integer[Any]], kind: str) -> Rows:
    return numbers.astype(kind).view(np.uint8).reshape(len(numbers), np.dtype(kind).itemsize)


def _column(rows: Rows) -> pa.BinaryArray:
    count, length = rows.shape
    ends = np.arange(0, (count + 1) * length, length, dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(rows))]
    return pa.Array.from_buffers(pa.binary(), count, buffers)
