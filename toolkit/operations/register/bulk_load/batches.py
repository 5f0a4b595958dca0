"""Let loads run side by side, and register each client once and load no file twice all the same."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.operations.progress import Progress
from toolkit.operations.register.bulk_load.duplicates import Hashes
from toolkit.operations.register.bulk_load.options import LoadOptions
from toolkit.operations.register.bulk_load.results import Tally
from toolkit.storage.identifiers import new_id
from toolkit.storage.locks import Lock, take, take_if_free, take_shared
from toolkit.storage.tables import load_batches, load_keys


@dataclass(frozen=True, slots=True)
class Batch:
    """A file to load, by the digest of its contents and the options."""

    source: str
    sha256: str
    options: LoadOptions

    def loaded_at(self, connection: Connection) -> datetime | None:
        """Return the time at which this file was loaded, ``None`` where it was not."""
        fingerprint = self.options.fingerprint(self.sha256)
        query = sa.select(load_batches.c.loaded_at).where(load_batches.c.fingerprint == fingerprint)
        return connection.scalar(query)

    def record(self, connection: Connection, tally: Tally, loaded_at: datetime) -> None:
        """Note in the transaction of its rows that this is loaded."""
        connection.execute(
            sa.insert(load_batches),
            {
                "id": new_id(),
                "fingerprint": self.options.fingerprint(self.sha256),
                "sha256": self.sha256,
                "options": self.options.deciding(),
                "source": self.source,
                "accepted": tally.accepted,
                "rejected": tally.rejected,
                "skipped": tally.skipped,
                "loaded_at": loaded_at,
            },
        )


class Overlap(Exception):
    """A load that ended in the meantime registered a client of this one, or this very file."""


@dataclass
class Turn:
    """The place of a load among those that run beside it.

    Loads do not see each other's rows until they are committed. So each compares the keys of its clients, at its
    end, with those of the loads that ended since it began, and starts anew ``alone`` where they overlap: then no
    other load ends before it. Keys are handed over as hashes; two that are equal by chance only cost time.
    """

    alone: bool = False
    since: int = 0

    def begin(self, connection: Connection, progress: Progress) -> None:
        """Let others know, until the transaction ends, that this load is under way."""
        take_shared(connection, Lock.CLIENT_LOADS)
        if self.alone and not take_if_free(connection, Lock.CLIENT_LOAD):
            progress.begin("Waiting for another load of clients to end", None, "loads")
            take(connection, Lock.CLIENT_LOAD)
            progress.end()

    def look(self, reading: Connection) -> None:
        """Note which loads had ended when the clients that were there already were read."""
        self.since = reading.scalar(sa.select(sa.func.max(load_keys.c.number))) or 0

    def end(self, connection: Connection, batch: Batch, hashes: Hashes) -> None:
        """Make sure that no other load registered any of these clients, and hand them over to those that run.

        Raises:
            Overlap: one did.
        """
        nobody_else = not self.alone and take_if_free(connection, Lock.CLIENT_LOADS)
        if not nobody_else:
            take(connection, Lock.CLIENT_LOAD)
        if batch.loaded_at(connection) is not None:
            raise Overlap
        ended = sa.select(load_keys.c.hashes).where(load_keys.c.number > self.since)
        for others in connection.scalars(ended):
            if np.intersect1d(hashes, np.frombuffer(others, np.uint64), assume_unique=True).size:
                raise Overlap
        if nobody_else:
            connection.execute(sa.delete(load_keys))
        elif hashes.size:
            connection.execute(sa.insert(load_keys), {"hashes": hashes.tobytes()})
