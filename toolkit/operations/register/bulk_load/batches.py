"""Let one load run at a time, and load no file twice, by an advisory lock and the table of batches."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.operations.progress import Progress
from toolkit.operations.register.bulk_load.options import LoadOptions
from toolkit.operations.register.bulk_load.results import Tally
from toolkit.storage.identifiers import new_id
from toolkit.storage.locks import Lock, take, take_if_free
from toolkit.storage.tables import load_batches


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


def wait_for_turn(connection: Connection, progress: Progress) -> None:
    """Hold the lock of loads until the transaction ends."""
    if take_if_free(connection, Lock.CLIENT_LOAD):
        return
    progress.begin("Waiting for another load of clients to end", None, "loads")
    take(connection, Lock.CLIENT_LOAD)
    progress.end()
