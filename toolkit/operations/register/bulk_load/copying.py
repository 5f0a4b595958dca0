"""Write clients and their addresses by COPY in a thread of its own, while checking goes on."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa
from psycopg import sql

from toolkit.operations.register.bulk_load.shapes import column_of
from toolkit.operations.register.bulk_load.threads import Behind
from toolkit.operations.register.limits import REFUSALS, refusal
from toolkit.operations.spreadsheets import Chunk
from toolkit.operations.spreadsheets.text_bytes import Bytes, mask_of, offsets, values
from toolkit.storage.tables import addresses, clients

_CLIENT_COLUMNS: Final = tuple(clients.columns.keys())
_ADDRESS_COLUMNS: Final = tuple(addresses.columns.keys())

Positions = npt.NDArray[np.int64]
Source = tuple[Chunk, Positions]
"""Rows of a chunk of the file."""

NewIds = Callable[[int], tuple[Bytes, Bytes]]
"""Returns ids, each of 16 bytes, for a number of new clients and for their addresses."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of both tables in COPY's binary format, ids included; ``source`` is their place."""

    clients: pa.BinaryArray
    addresses: pa.BinaryArray
    source: Source

    def part(self, begin: int, end: int) -> Self:
        """Return the rows from one place to another."""
        chunk, rows = self.source
        people, places = self.clients[begin:end], self.addresses[begin:end]
        return replace(self, clients=people, addresses=places, source=(chunk, rows[begin:end]))


def rows_of(settled: Mapping[str, pa.StringArray], created_at: datetime, ids: NewIds, source: Source) -> Rows:
    """Give each row its two ids, and write it down for COPY."""
    count = len(settled["cpf"])
    client_ids, address_ids = ids(count)
    days = settled["birthdate"].cast(pa.date32()).view(pa.int32()).to_numpy() - (_EPOCH.date() - _UNIX_DAY).days
    microseconds = np.full(count, (created_at - _EPOCH) // timedelta(microseconds=1))
    columns = {
        **settled,
        "id": client_ids,
        "client_id": client_ids,
        "birthdate": _big_endian(days, ">i4"),
        "created_at": _big_endian(microseconds, ">i8"),
    }
    client_rows = _as_binary(columns, _CLIENT_COLUMNS)
    columns["id"] = address_ids
    return Rows(client_rows, _as_binary(columns, _ADDRESS_COLUMNS), source)


_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""The moment from which PostgreSQL counts the days of a date and the microseconds of a timestamp."""
_UNIX_DAY: Final = date(1970, 1, 1)


def _as_binary(columns: Mapping[str, pa.StringArray | Bytes], names: tuple[str, ...]) -> pa.BinaryArray:
    """Return the rows in COPY's binary format, which the server reads with a sixth less work than text.

    It is the number of fields, then each field behind its length, -1 for one that is absent. Bytes are columns
    in which every value is as long.
    """
    count = len(columns["id"])
    parts: list[pa.BinaryArray] = []
    fixed = [_big_endian(np.full(count, len(names)), ">i2")]
    for name in names:
        column = columns[name]
        if isinstance(column, np.ndarray):
            fixed += [_big_endian(np.full(count, column.shape[1]), ">i4"), column]
            continue
        lengths = np.diff(offsets(column))
        if column.null_count:
            lengths = np.where(mask_of(column.is_null()), -1, lengths)
        fixed.append(_big_endian(lengths, ">i4"))
        parts += [column_of(np.hstack(fixed)).view(pa.binary()), column.view(pa.binary())]
        fixed = []
    if fixed:
        parts.append(column_of(np.hstack(fixed)).view(pa.binary()))
    absent = pc.JoinOptions(null_handling="replace", null_replacement="")
    return pc.binary_join_element_wise(*parts, pa.scalar(b""), options=absent)


def _big_endian(numbers: npt.NDArray[np.integer[Any]], kind: str) -> Bytes:
    """Return each number as a row of bytes, in the order in which PostgreSQL sends and reads them."""
    return numbers.astype(kind).view(np.uint8).reshape(len(numbers), -1)


_HEADER: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER: Final = b"\xff\xff"

_LINE: Final = re.compile(r"^COPY \w+, line ([0-9]+)", re.MULTILINE)


class Copying(Behind):
    """Copies batches of rows in the order given, inside the transaction of ``connection``.

    Nobody else may use the connection between ``write`` and ``finish``, which both raise what the database raised.
    What is not copied when the block is left is dropped with the transaction.
    """

    def __init__(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        super().__init__("copying")
        self._connection = connection
        self.refused: list[tuple[Chunk, str]] = []
        """Rows that the service's own rules refused, each with the reason; complete after ``finish``."""

    def write(self, rows: Rows) -> None:
        """Have these rows copied; waits while enough are waiting."""
        self.do(self._copy_what_is_taken, rows)

    def _copy_what_is_taken(self, rows: Rows) -> None:
        """Copy the rows; where one is refused, copy those before it, try it alone, and go on behind it."""
        waiting = [rows]
        while waiting:
            part = waiting.pop()
            try:
                with self._connection.transaction():
                    self._connection.execute("SET LOCAL client_encoding TO 'UTF8'; SET CONSTRAINTS ALL DEFERRED")
                    self._copy(clients, _CLIENT_COLUMNS, part.clients)
                    self._copy(addresses, _ADDRESS_COLUMNS, part.addresses)
                    self._connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
            except REFUSALS as error:
                chunk, places = part.source
                count = len(places)
                if count == 1:
                    self.refused.append((chunk.take(places), refusal(error)))
                    continue
                line = _LINE.search(error.diag.context or "")
                at = min(int(line[1]), count) - 1 if line else count // 2
                cuts = sorted({0, at, at + 1, count} if line else {0, at, count})
                waiting += reversed([part.part(one, two) for one, two in pairwise(cuts)])

    def _copy(self, table: sa.Table, columns: tuple[str, ...], rows: pa.BinaryArray) -> None:
        statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(
            sql.Identifier(table.schema or "", table.name),
            sql.SQL(", ").join(map(sql.Identifier, columns)),
        )
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            copy.write(_HEADER)
            copy.write(values(rows)[offsets(rows)[0] :].data)
            copy.write(_TRAILER)
