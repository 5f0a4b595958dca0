"""Compare what the tables hold now with what the custody log says of it.

A log that is whole says nothing of the tables: a record that was moved to another sale stays there.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa

from toolkit.domain.log_keys import LogKeys
from toolkit.operations.prove.custody_log.comparisons import differences
from toolkit.operations.prove.custody_log.export import sealed_lines
from toolkit.operations.prove.custody_log.moved_rows import moved_sources
from toolkit.operations.prove.custody_log.sealing import NO_KEYS, Epoch, has_seal, newest_epoch
from toolkit.operations.prove.custody_log.verification import Chain, Difference
from toolkit.operations.snapshot.moved import Elsewhere
from toolkit.storage.database import Database
from toolkit.storage.tables import moved_partitions


@dataclass(frozen=True, slots=True)
class LiveVerdict:
    """The numbers of events and seals, the hash and epoch of the newest seal, and every difference."""

    events: int
    seals: int
    newest: str
    epoch: Epoch
    differences: tuple[Difference, ...]
    moved: int = 0
    """Observations that were moved to a snapshot."""


def verify_live(
    database: Database, keys: LogKeys = NO_KEYS, kept_seal: str | None = None, elsewhere: Elsewhere | None = None
) -> LiveVerdict:
    """Follow the chain in the database, and compare each event with what it tells of.

    ``kept_seal`` is the hash of a seal that was kept elsewhere: without it a log that was cut off at a seal
    cannot be told from a whole one. ``elsewhere`` is needed where observations were moved to a snapshot.

    Raises:
        InvalidInput: a key that the log was sealed with is not here.
    """
    with database.at(datetime.now(UTC)) as connection:
        chain, found = Chain(), list[Difference]()
        for line in sealed_lines(connection, keys):
            if (misfit := chain.follow(line)) is not None:
                found.append(misfit)
            if chain.broken:
                break
        moved_rows = connection.scalar(sa.select(sa.func.sum(moved_partitions.c.rows))) or 0
        sources = moved_sources(database, connection, elsewhere)
        found += (*sources.differences, *differences(connection, sources))
        epoch = newest_epoch(connection)
        if kept_seal is not None and not has_seal(connection, kept_seal.strip().lower()):
            found.append(Difference("seal", kept_seal, "is not here: the log was forged as a whole, or cut off"))
    return LiveVerdict(chain.events, chain.seals, chain.newest, epoch, tuple(found), int(moved_rows))
