"""Take over an inventory or a journal: the differences become observations, as those of a listing do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import sqlalchemy as sa
from pyarrow import csv
from sqlalchemy import Connection

from toolkit.domain.evidence import KEY_PREFIX
from toolkit.errors import InvalidInput, WrongBucket
from toolkit.operations import Clock
from toolkit.operations.observe.belonging import check_bucket
from toolkit.operations.observe.bucket_sync.object_history import Changes, holds_unrecorded
from toolkit.operations.observe.bucket_sync.scope import Scope, picture_since
from toolkit.operations.observe.bucket_sync.type_detection import Examined, examine
from toolkit.operations.observe.delivered import differences
from toolkit.operations.observe.delivered.inventory import Inventory
from toolkit.operations.observe.delivered.journal import Journal
from toolkit.operations.observe.disappearance import Tolerance
from toolkit.operations.observe.service_history import observe_service
from toolkit.operations.progress import Progress, Quiet
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database, raw
from toolkit.storage.duckdb_session import DEFAULT_MEMORY, duckdb_session
from toolkit.storage.locks import Lock, take
from toolkit.storage.observation_clock import stamp
from toolkit.storage.tables import bucket_syncs

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True, slots=True)
class TakenOver:
    """The result: what changed, in objects, and the moment of which the picture is now."""

    changes: Changes
    examined: Examined
    asked: int
    """Keys that the bucket was asked for, because the delivery contradicts what is known or leaves it open."""
    events: int
    """Events of a journal that are new."""
    moment: datetime
    """The moment of which the delivery tells."""
    picture_since: datetime | None
    """The oldest part of the picture, ``None`` where the bucket has never been looked at as a whole."""


def take_over(
    database: Database,
    bucket: Bucket,
    delivery: Inventory | Journal,
    scratch: Path,
    *,
    clock: Clock,
    memory: str = DEFAULT_MEMORY,
    tolerance: Tolerance | None = None,
    progress: Progress | None = None,
) -> TakenOver:
    """Observe the sales and their records, then take over what ``delivery`` tells of the bucket.

    Memory stays within ``memory``; what is beyond is spilled into ``scratch``.

    Raises:
        WrongBucket: the database belongs to another bucket, or the delivery tells of another one.
        InvalidInput: every key was looked at since the moment of the inventory.
        UnreadableFile: the delivery lacks a column.
        MassDisappearance: most objects are gone at once; nothing of them was taken over.
    """
    progress, tolerance = progress or Quiet(), tolerance or Tolerance()
    with duckdb_session(scratch, memory) as work:
        if isinstance(delivery, Inventory):
            began, moment = None, delivery.show(work)
        else:
            began, moment = delivery.tell(work)
        with database.transaction() as connection:
            check_bucket(connection, bucket)
            _check_bucket(work, delivery, bucket)
            before = picture_since(connection)
        if began is None and before is not None and before >= moment:
            raise InvalidInput(
                f"{delivery.address} tells of {moment.isoformat(timespec='seconds')}, and every key was looked at "
                f"since {before.isoformat(timespec='seconds')}. Nothing was taken over."
            )
        observe_service(database, clock, tolerance)
        with database.transaction() as connection:
            take(connection, Lock.OBJECT_HISTORY)
            progress.begin("Comparing with what is known", None, "objects")
            known = differences.take_known(connection, work, bucket.area, began or moment)
            looked = connection.scalar(sa.select(sa.func.max(bucket_syncs.c.finished_at)))
            if began is None:
                differences.differ_from_inventory(work, bucket.area, moment, looked)
            else:
                differences.differ_from_journal(work, bucket.area, looked)
            progress.end()
            tolerance.check(differences.gone(work, "differences"), known, "objects")
            asked = differences.ask(work, bucket, progress)
            tolerance.check(differences.gone(work, "settled"), known, "objects")
            changes = _write(connection, work, clock, progress)
            events = 0 if began is None else _note_events(connection, work, clock)
        if changes.unrecorded:  # as after a listing
            observe_service(database, clock, tolerance)
        examined = examine(database, bucket, Scope(since=moment), clock, progress)
        with database.transaction() as connection:
            _note(connection, bucket, delivery, changes, examined, asked, began, moment, clock)
            since = picture_since(connection)
    return TakenOver(changes, examined, asked, events, moment, since)


def _check_bucket(work: DuckDBPyConnection, delivery: Inventory | Journal, bucket: Bucket) -> None:
    named = delivery.bucket if isinstance(delivery, Inventory) else None
    names = {named} if named is not None else {row[0] for row in work.execute(_BUCKETS).fetchall()}
    if names != {bucket.name}:
        raise WrongBucket(
            f"{delivery.address} tells of the bucket {', '.join(sorted(map(str, names)))}, and this is "
            f"{bucket.name}. Nothing was taken over."
        )


def _write(connection: Connection, work: DuckDBPyConnection, clock: Clock, progress: Progress) -> Changes:
    """Close what ended and add what is new; it was compared under the lock, so nothing else was written since."""
    connection.execute(sa.text("CREATE TEMPORARY TABLE ended (id bigint, how text) ON COMMIT DROP"))
    ended = _copy(connection, "ended", differences.ended(work))
    connection.execute(sa.text("ANALYZE ended"))
    now = stamp(connection, clock)
    connection.execute(sa.text(_CLOSE), {"now": now})
    columns = "audit.object_observations (key, size, etag, last_modified, version_id, seen_at)"
    listed = 0
    progress.begin("Taking over what is new", None, "objects")
    for rows in differences.listed(work, now):
        listed += _copy(connection, columns, [rows])
        progress.advance(rows.num_rows)
    progress.end()
    vanished = differences.gone(work, "settled")
    changed = ended - vanished
    appeared = listed - changed
    unrecorded = bool(appeared) and holds_unrecorded(connection, now)
    return Changes(listed, appeared, changed, vanished, unrecorded, differences.unholdable(work))


def _note_events(connection: Connection, work: DuckDBPyConnection, clock: Clock) -> int:
    """Keep who wrote or deleted what, from where, of files that are evidence; how many events are new."""
    connection.execute(sa.text(_CREATE_EVENTS))
    names = "key, sequence_number, kind, happened_at, version_id, requester, source_address"
    _copy(connection, f"delivered_events ({names})", differences.stream(work, _EVENTS))
    bound = {"prefix": KEY_PREFIX, "now": stamp(connection, clock)}
    return connection.execute(sa.text(_NOTE_EVENTS.format(names=names)), bound).rowcount


def _copy(connection: Connection, place: str, batches: Iterable[pa.RecordBatch]) -> int:
    """Copy columns into a table; how many rows."""
    count = 0
    options = csv.WriteOptions(include_header=False)
    with raw(connection).cursor() as cursor, cursor.copy(f"COPY {place} FROM STDIN (FORMAT csv)") as copy:
        for batch in batches:
            block = BytesIO()
            csv.write_csv(batch, block, options)
            copy.write(block.getbuffer())
            count += batch.num_rows
    return count


def _note(
    connection: Connection,
    bucket: Bucket,
    delivery: Inventory | Journal,
    changes: Changes,
    examined: Examined,
    asked: int,
    began: datetime | None,
    moment: datetime,
    clock: Clock,
) -> None:
    """Note it as a reading of every key at the moment of the delivery.

    A journal that begins after the oldest part of the picture tells nothing of the time between: then the age of
    the picture, and what the next reading has to look at, stay as they were.
    """
    last = connection.execute(sa.select(bucket_syncs).order_by(bucket_syncs.c.id.desc()).limit(1)).one_or_none()
    before = picture_since(connection)
    values: dict[str, Any] = {"started_at": moment, "cycle": 1, "read_to": None, "full_listing": True}
    if last is not None:
        values["cycle"] = (last.cycle or 0) + 1
    if began is not None and (before is None or before < began):
        kept = ("started_at", "cycle", "read_to", "full_listing")
        if last is None:
            values |= {"cycle": None, "full_listing": False}
        else:
            values |= {name: getattr(last, name) for name in kept}
    connection.execute(
        sa.insert(bucket_syncs),
        values
        | {
            "finished_at": stamp(connection, clock),
            "bucket": bucket.address,
            "listed": changes.listed,
            "appeared": changes.appeared,
            "vanished": changes.vanished,
            "asked": asked,
            "unreadable": len(examined.archived) + len(examined.unreadable) + len(changes.unstorable),
            "source": delivery.address,
        },
    )


_BUCKETS: Final = "SELECT DISTINCT bucket FROM delivered"

_CLOSE: Final = """
    UPDATE audit.object_observations AS seen
    SET gone_at = :now, gone_how = ended.how
    FROM ended
    WHERE seen.id = ended.id AND seen.gone_at IS NULL
"""

_EVENTS: Final = """
    SELECT key, sequence_number, record_type, happened_at, version_id, requester, source_ip_address
    FROM events
    WHERE NOT contains(key, chr(0))
"""

_CREATE_EVENTS: Final = """
    CREATE TEMPORARY TABLE delivered_events (
        key text, sequence_number text, kind text, happened_at timestamptz, version_id text, requester text,
        source_address text
    ) ON COMMIT DROP
"""

_NOTE_EVENTS: Final = """
    INSERT INTO audit.object_events ({names}, noted_at)
    SELECT {names}, :now
    FROM delivered_events AS told
    WHERE starts_with(key, :prefix) OR EXISTS (
        SELECT FROM audit.evidence_observations AS record WHERE record.object_key = told.key
    )
    ORDER BY key, sequence_number
    ON CONFLICT DO NOTHING
"""
