"""Write clients and their addresses by COPY in a thread of its own, while checking goes on."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import psycopg
import pyarrow as pa
import sqlalchemy as sa
from psycopg import sql

from toolkit.operations.register.bulk_load.threads import Behind
from toolkit.operations.register.limits import REFUSALS, refusal
from toolkit.operations.spreadsheets import Chunk
from toolkit.operations.spreadsheets.text_bytes import Bytes
from toolkit.storage.binary_copy import binary_rows, copy_binary, ids_column
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
    client_ids, address_ids = map(ids_column, ids(count))
    columns = {
        **settled,
        "id": client_ids,
        "client_id": client_ids,
        "birthdate": settled["birthdate"].cast(pa.date32()),
        "created_at": pa.repeat(pa.scalar(created_at, pa.timestamp("us", "UTC")), count),
    }
    client_rows = binary_rows([columns[name] for name in _CLIENT_COLUMNS])
    columns["id"] = address_ids
    return Rows(client_rows, binary_rows([columns[name] for name in _ADDRESS_COLUMNS]), source)


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
                    self._connection.execute("SET CONSTRAINTS ALL DEFERRED")
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
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        place = sql.SQL("{} ({})").format(sql.Identifier(table.schema or "", table.name), names)
        copy_binary(self._connection, place, rows)
