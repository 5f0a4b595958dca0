"""Write the sealed log into a file: JSON Lines, each event with its digest, each seal after its events."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection, Row

from toolkit.atomic_files import atomic_file
from toolkit.contract.deadlines import Clock
from toolkit.contract.events import DIGEST_BYTES, LogKeys, Seal
from toolkit.database.connection import Database
from toolkit.database.tables import custody_seals
from toolkit.errors import InvalidInput
from toolkit.log.sealing import NO_KEYS, event_of, seal_events, seal_of


def export_log(database: Database, out: Path, clock: Clock, keys: LogKeys = NO_KEYS) -> Seal | None:
    """Seal what can be sealed, and write the whole sealed log to ``out``; return its newest seal, if any.

    The digests and hashes are those of the time of sealing: an event that was changed since does not fit them.

    Raises:
        InvalidInput: the log cannot be written there, or a key that it was sealed with is not here.
    """
    newest = seal_events(database, clock, keys)
    with atomic_file(out) as draft, database.snapshot() as connection:
        for line in sealed_lines(connection, keys):
            draft.file.write(json.dumps(line, ensure_ascii=False) + "\n")
        draft.finish()
    return newest


def sealed_lines(connection: Connection, keys: LogKeys) -> Iterator[dict[str, Any]]:
    """Yield the lines of the sealed log.

    Raises:
        InvalidInput: a key that it was sealed with is not here.
    """
    last_epoch, last_transaction, last_id = 0, 0, 0
    for seal in _seals(connection):
        if not keys.has(seal.key_id):
            raise InvalidInput(
                "Seal {} of the custody log was made with the key {}, which is not here: put it behind the "
                "newest one in TOOLKIT_LOG_KEY.",
                seal.number,
                seal.key_id,
            )
        bounds = {
            "after_epoch": last_epoch,
            "after_transaction": last_transaction,
            "after_id": last_id,
            "last_epoch": seal.last_epoch,
            "last_transaction": seal.last_transaction,
            "last_id": seal.last_id,
        }
        events = connection.execute(sa.text(_SEALED), bounds)
        for number, row in enumerate(events):
            digest = seal.digests[number * DIGEST_BYTES : (number + 1) * DIGEST_BYTES]
            event = keys.hashed(event_of(row).as_json(), seal.key_id)
            yield {"event": event, "digest": digest.hex()}
        yield {"seal": seal_of(seal).as_json()}
        last_epoch, last_transaction, last_id = seal.last_epoch, seal.last_transaction, seal.last_id


def _seals(connection: Connection) -> Iterator[Row[Any]]:
    number = 0
    query = sa.select(custody_seals).order_by(custody_seals.c.number).limit(1)
    while (row := connection.execute(query.where(custody_seals.c.number > number)).one_or_none()) is not None:
        yield row
        number = row.number


_SEALED: Final = """
    SELECT id, kind, happened_at, detail
    FROM audit.custody_events
    WHERE (epoch, transaction, id) > (:after_epoch, :after_transaction, :after_id)
      AND (epoch, transaction, id) <= (:last_epoch, :last_transaction, :last_id)
    ORDER BY epoch, transaction, id
"""
