"""Register accepted rows in the database; in a dry run only count them."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

import numpy as np
import psycopg
import pyarrow as pa
import sqlalchemy as sa

from toolkit.operations.register.bulk_load.batches import Turn
from toolkit.operations.register.bulk_load.copying import Copying, NewIds, Positions, rows_of
from toolkit.operations.register.bulk_load.duplicates import (
    KEY,
    Hashes,
    Key,
    SeenKeys,
    hash_keys,
    keys_of,
    registered,
)
from toolkit.operations.register.bulk_load.options import OnDuplicate
from toolkit.operations.register.bulk_load.verdicts import ChunkVerdict
from toolkit.operations.spreadsheets import Chunk
from toolkit.operations.spreadsheets.text_bytes import Mask
from toolkit.storage.database import Database, raw
from toolkit.storage.tables import clients

_LATER: Final = 20_000
"""Rows that may wait to be looked up one by one before the copying is interrupted for it."""

Settled = Mapping[str, pa.StringArray]
Driver = psycopg.Connection[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Accepted:
    """Settled rows: how many are new, and those of clients who were there, with their ids.

    An id is ``None`` where the client stands earlier in the file and a dry run gave it none. A row with a
    ``refusal`` was counted as new before the service's own rules refused it.
    """

    new: int
    chunk: Chunk | None = None
    client_ids: tuple[UUID | None, ...] = ()
    refusal: str = ""


class ChunkRegistration:
    """Registers accepted rows, each client once; without a connection to write to, it only tells what would be.

    Most rows are surely new: nobody with their CPF was in the database, and their key was not seen in this
    file. Only the others wait to be looked up, in the order of the file. Files of one dry run share
    the keys that were ``seen``, as they would share the database.
    """

    def __init__(
        self,
        writing: Driver | None,
        reading: Driver | None,
        on_duplicate: OnDuplicate,
        created_at: datetime,
        *,
        ids: NewIds,
        seen: SeenKeys | None = None,
    ) -> None:
        self._copying = None if writing is None else Copying(writing)
        self._writing, self._reading = writing, reading
        self._all_are_new = on_duplicate is OnDuplicate.REGISTER
        self._created_at = created_at
        self._ids = ids
        self._seen = SeenKeys() if seen is None else seen
        self._later: list[tuple[Chunk, Settled]] = []
        self._waiting = 0

    @property
    def running(self) -> AbstractContextManager[object]:
        """Copies in the background while it is open."""
        return self._copying or nullcontext()

    def add(self, chunk: Chunk, verdict: ChunkVerdict) -> Iterator[Accepted]:
        """Take over the accepted rows of a chunk; rows that have to wait are told of later."""
        accepted = np.flatnonzero(verdict.accepted)
        if self._all_are_new:
            yield self._register(chunk, verdict.values, accepted)
            return
        keys = _taken({column: verdict.values[column] for column in KEY}, accepted)
        there, ids = self._in_database(keys)
        if ids:
            yield Accepted(0, chunk.take(accepted[there]), tuple(ids))
        hashes = hash_keys(keys)
        repeated = np.zeros(len(accepted), dtype=bool)
        repeated[~there] = self._seen.add(hashes[~there])
        if repeated.any():
            rows = accepted[repeated]
            self._later.append((chunk.take(rows), _taken(verdict.values, rows)))
            self._waiting += len(rows)
        yield self._register(chunk, verdict.values, accepted[~there & ~repeated])
        if self._waiting > _LATER:
            yield from self._look_up()

    @property
    def hashes(self) -> Hashes:
        """The hashes of the keys of all clients that were registered; none where each row is a new client."""
        return self._seen.hashes

    def finish(self) -> Iterator[Accepted]:
        """Settle the rows that waited, and wait until all are in the database."""
        yield from self._look_up()
        if self._copying is not None:
            self._copying.finish()
            yield from (Accepted(-1, chunk, refusal=reason) for chunk, reason in self._copying.refused)

    def _register(self, chunk: Chunk, settled: Settled, rows: Positions) -> Accepted:
        if len(rows) and self._copying is not None:
            taken = _taken(settled, rows)
            self._copying.write(rows_of(taken, self._created_at, self._ids, (chunk, rows)))
        return Accepted(len(rows))

    def _in_database(self, keys: Settled) -> tuple[Mask, list[UUID | None]]:
        """Find the rows of clients who were registered before this load, and their ids."""
        there = np.zeros(len(keys["cpf"]), dtype=bool)
        known = registered(self._reading, keys) if self._reading is not None and len(there) else {}
        ids: list[UUID | None] = []
        if known:
            for row, key in enumerate(keys_of(keys)):
                if key in known:
                    there[row] = True
                    ids.append(known[key])
        return there, ids

    def _look_up(self) -> Iterator[Accepted]:
        later, self._later, self._waiting = self._later, [], 0
        for chunk, settled in later:
            if self._copying is not None:
                self._copying.finish()  # the first of a key is in the database then, and the connection is free
            # Without a database to write to, the hash alone decides, and the client has no id yet.
            known: dict[Key, UUID | None] = dict(registered(self._writing, settled)) if self._writing else {}
            there, ids = [], []
            for row, key in enumerate(keys_of(settled)):
                if self._writing is None or key in known:
                    there.append(row)
                    ids.append(known.get(key))
                known.setdefault(key, None)
            new = np.setdiff1d(np.arange(len(chunk)), there)  # only shared the hash of another
            if new.size:
                yield self._register(chunk, settled, new)
            if there:
                yield Accepted(0, chunk.take(np.array(there)), tuple(ids))


def _taken(settled: Settled, rows: Positions) -> Settled:
    if len(rows) == len(settled["cpf"]):
        return settled
    at = pa.array(rows)
    return {column: values.take(at) for column, values in settled.items()}


@contextmanager
def lookup(database: Database, turn: Turn) -> Iterator[Driver | None]:
    """Open a connection that sees the clients registered until now; ``None`` where there are none."""
    with database.snapshot() as connection:
        turn.look(connection)
        some = connection.scalar(sa.select(sa.exists(sa.select(clients.c.id))))
        yield raw(connection) if some else None
