"""Chain the events recorded since the last seal, and write the sealed log into a file.

Events are sealed in the order of their epochs and transactions, and only when no older transaction can still
record any: so the place of an event in the chain never changes, and no writer is made to wait.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection, Row

from toolkit.atomic_files import atomic_file
from toolkit.contract.deadlines import Clock
from toolkit.contract.events import (
    BEGINNING,
    DIGEST_BYTES,
    Event,
    LogKeys,
    Seal,
    event_digest,
    first_digest,
    seal_hash,
    seal_header,
)
from toolkit.database.connection import Database, Lock, take
from toolkit.database.tables import custody_epochs, custody_seals
from toolkit.errors import InvalidInput
from toolkit.log.events import record_report

NO_KEYS: Final = LogKeys()

BATCH: Final = 1000
"""Events under one seal at most."""


def seal_events(database: Database, clock: Clock, keys: LogKeys = NO_KEYS) -> Seal | None:
    """Seal every event that can be sealed; return the newest seal, ``None`` while there is none at all."""
    with database.transaction() as connection:
        take(connection, Lock.CUSTODY_SEAL)
        # The horizon is read after the lock, and after it no transaction below the horizon is under way.
        horizon: int = connection.execute(sa.text(_HORIZON)).scalar_one()
        last = connection.execute(_newest()).one_or_none()
        for rows in _unsealed(connection, last, horizon):
            last = _seal(connection, last, rows, clock(), keys)
        return seal_of(last) if last is not None else None


def record_and_seal_report(
    database: Database, files: Mapping[str, str], clock: Clock, keys: LogKeys = NO_KEYS
) -> str | None:
    """Record that a report with these files (SHA-256 by name) was written; the hash of the seal that covers it.

    ``None`` where none does yet (an older transaction is under way, and the next seal will), and where this role
    or session may only read.
    """
    before = newest_seal(database)
    with database.transaction() as connection:
        if not connection.execute(sa.text(_MAY_WRITE)).scalar_one():
            return None
        event = record_report(connection, files, before.hash if before is not None else None, clock())
    newest = seal_events(database, clock, keys)
    with database.transaction() as connection:
        covered = connection.execute(sa.text(_COVERED), {"event": event}).scalar_one()
    return newest.hash if newest is not None and covered else None


def newest_seal(database: Database) -> Seal | None:
    """Return the newest seal, to be kept elsewhere; ``None`` while there is none."""
    with database.transaction() as connection:
        row = connection.execute(_newest()).one_or_none()
    return seal_of(row) if row is not None else None


def has_seal(connection: Connection, kept_seal: str) -> bool:
    """Tell whether a seal of the log has this hash."""
    query = sa.select(sa.select(custody_seals.c.number).where(custody_seals.c.hash == kept_seal).exists())
    return bool(connection.scalar(query))


def newest_epoch(connection: Connection) -> Row[Any]:
    """Return the epoch that the log is in: one more after each restore into another cluster, counted from 1."""
    return connection.execute(sa.select(custody_epochs).order_by(custody_epochs.c.number.desc()).limit(1)).one()


def seal_of(row: Row[Any]) -> Seal:
    """Return the seal in a row of its table."""
    return Seal(row.number, row.sealed_at, row.events, row.previous, row.hash)


def event_of(row: Row[Any]) -> Event:
    """Return the event in a row of its table."""
    return Event(row.id, row.kind, row.happened_at, row.detail)


def _newest() -> sa.Select[Any]:
    return sa.select(custody_seals).order_by(custody_seals.c.number.desc()).limit(1)


def _unsealed(connection: Connection, last: Row[Any] | None, horizon: int) -> Iterator[list[Row[Any]]]:
    place = {"epoch": 0, "transaction": 0, "id": 0}
    if last is not None:
        place = {"epoch": last.last_epoch, "transaction": last.last_transaction, "id": last.last_id}
    while rows := connection.execute(sa.text(_UNSEALED), {**place, "horizon": horizon, "batch": BATCH}).all():
        yield list(rows)
        place = {"epoch": rows[-1].epoch, "transaction": rows[-1].transaction, "id": rows[-1].id}


def _seal(
    connection: Connection, last: Row[Any] | None, rows: list[Row[Any]], now: datetime, keys: LogKeys
) -> Row[Any]:
    number, previous = (last.number + 1, last.hash) if last is not None else (1, BEGINNING)
    digest, digests = first_digest(previous), bytearray()
    for row in rows:
        digest = event_digest(digest, keys.hashed(event_of(row).as_json(), keys.newest))
        digests += digest
    seal = {
        "number": number,
        "sealed_at": now,
        "events": len(rows),
        "last_epoch": rows[-1].epoch,
        "last_transaction": rows[-1].transaction,
        "last_id": rows[-1].id,
        "digests": bytes(digests),
        "key_id": keys.newest,
        "previous": previous,
        "hash": seal_hash(digest, seal_header(number, now, len(rows), previous)),
    }
    return connection.execute(sa.insert(custody_seals).returning(custody_seals), seal).one()


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


_MAY_WRITE: Final = """
    SELECT NOT current_setting('transaction_read_only')::boolean
       AND has_table_privilege('audit.custody_events', 'INSERT')
       AND has_table_privilege('audit.custody_seals', 'INSERT')
"""

_COVERED: Final = """
    SELECT coalesce((epoch, transaction, id) <= (
        SELECT last_epoch, last_transaction, last_id FROM audit.custody_seals ORDER BY number DESC LIMIT 1
    ), FALSE)
    FROM audit.custody_events
    WHERE id = :event
"""

# Transactions of other databases of the cluster, and the analysis of tables by autovacuum, record no event here.
_HORIZON: Final = """
    SELECT coalesce(min(running::text::bigint), pg_snapshot_xmax(pg_current_snapshot())::text::bigint)
    FROM pg_snapshot_xip(pg_current_snapshot()) AS running
    WHERE xid(running)::text NOT IN (
        SELECT locks.transactionid::text
        FROM pg_locks AS locks JOIN pg_stat_activity AS sessions USING (pid)
        WHERE locks.locktype = 'transactionid' AND locks.mode = 'ExclusiveLock' AND locks.granted
          AND (sessions.datname <> current_database() OR sessions.backend_type = 'autovacuum worker')
    )
"""

_UNSEALED: Final = """
    SELECT id, epoch, transaction, kind, happened_at, detail
    FROM audit.custody_events
    WHERE (epoch, transaction, id) > (:epoch, :transaction, :id)
      AND (transaction < :horizon OR epoch < (SELECT max(number) FROM audit.custody_epochs))
    ORDER BY epoch, transaction, id
    LIMIT :batch
"""

_SEALED: Final = """
    SELECT id, kind, happened_at, detail
    FROM audit.custody_events
    WHERE (epoch, transaction, id) > (:after_epoch, :after_transaction, :after_id)
      AND (epoch, transaction, id) <= (:last_epoch, :last_transaction, :last_id)
    ORDER BY epoch, transaction, id
"""
