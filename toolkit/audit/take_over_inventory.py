"""Take over an inventory: the differences become observations, as those of a listing do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.audit import inventory_differences as differences
from toolkit.audit.bucket_scope import CLOCKS_APART, Scope, listed_since
from toolkit.audit.duckdb_session import DEFAULT_MEMORY, duckdb_session
from toolkit.audit.file_types import examine
from toolkit.audit.inventory import Inventory
from toolkit.audit.inventory_rows import copy_rows
from toolkit.audit.object_history import Changes, holds_unrecorded
from toolkit.audit.observe_bucket import Synced, note_reading
from toolkit.bucket.client import Bucket
from toolkit.contract.contents import GoneHow
from toolkit.contract.deadlines import Clock
from toolkit.database.belonging import check_bucket
from toolkit.database.connection import Database
from toolkit.database.locks import Lock, take
from toolkit.database.observation_clock import stamp
from toolkit.database.observations import Tolerance, observe_service
from toolkit.database.tables import bucket_syncs
from toolkit.errors import InvalidInput, WrongBucket
from toolkit.progress import Progress, Quiet

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


_LISTED_WITHIN: Final = timedelta(days=2)
"""The time after which an object is in each inventory; S3 says that those of the last days may not be."""


@dataclass(frozen=True, slots=True)
class TakenOver:
    """The result, and the moment of which the listing is now."""

    synced: Synced
    asked: int
    """Keys that the bucket was asked for, because the delivery contradicts what is known or leaves it open."""
    moment: datetime
    """The moment of which the delivery tells."""
    listed_since: datetime | None
    """The oldest part of the listing, ``None`` where the bucket has never been looked at as a whole."""
    lacking: int = 0
    """Objects that are there and were long before an inventory that lacks them: it is not of the whole bucket."""


def take_over(
    database: Database,
    bucket: Bucket,
    delivery: Inventory,
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
        InvalidInput: every key was looked at since the moment of the inventory, or the delivery tells of a moment
            that is still to come.
        UnreadableFile: the delivery lacks a column.
        MassDisappearance: most objects are gone at once; nothing of them was taken over.
    """
    progress, tolerance = progress or Quiet(), tolerance or Tolerance()
    denied: list[str] = []
    with duckdb_session(scratch, memory) as work:
        moment = delivery.show(work)
        with database.transaction() as connection:
            check_bucket(connection, bucket)
            _check_bucket(work, delivery, bucket)
            before = listed_since(connection)
        if moment > clock() + CLOCKS_APART:
            raise InvalidInput(
                "{} tells of {}, which is still to come. Check the clock of this machine. Nothing was taken over.",
                delivery.address,
                moment.isoformat(timespec="seconds"),
            )
        if before is not None and before >= moment:
            raise InvalidInput(
                "{} tells of {}, and every key was looked at since {}. Nothing was taken over.",
                delivery.address,
                moment.isoformat(timespec="seconds"),
                before.isoformat(timespec="seconds"),
            )
        observe_service(database, clock, tolerance)
        with database.transaction() as connection:
            take(connection, Lock.OBJECT_HISTORY)
            progress.begin("Comparing with what is known", None, "objects")
            looked = connection.scalar(sa.select(sa.func.max(bucket_syncs.c.finished_at)))
            known = differences.differ_from_inventory(connection, work, bucket, moment, looked)
            progress.end()
            tolerance.check(differences.gone(work, "differences"), known, "objects")
            asked = differences.ask(work, bucket, denied, progress)
            tolerance.check(differences.gone(work, "settled"), known, "objects")
            lacking = differences.lacking(work, moment - _LISTED_WITHIN)
            changes = _write(connection, work, clock, progress)
        if changes.unrecorded:  # as after a listing
            observe_service(database, clock, tolerance)
        examined = examine(database, bucket, Scope(since=moment), clock, progress)
        examined = replace(examined, unreadable=tuple(dict.fromkeys((*examined.unreadable, *denied))))
        with database.transaction() as connection:
            values = _reading_of(connection, moment, whole=not lacking) | {
                "asked": asked,
                "denied": len(denied),
                "source": delivery.address,
            }
            synced = note_reading(connection, bucket, changes, examined, clock, **values)
            since = listed_since(connection)
    return TakenOver(replace(synced, full=since == moment), asked, moment, since, lacking)


def _check_bucket(work: DuckDBPyConnection, delivery: Inventory, bucket: Bucket) -> None:
    told = [(delivery.bucket,)] if delivery.bucket is not None else work.execute(_BUCKETS).fetchall()
    names = {row[0] for row in told}
    if names != {bucket.name}:
        raise WrongBucket(
            "{} tells of the bucket {}, and this is {}. Nothing was taken over.",
            delivery.address,
            ", ".join(sorted(map(str, names))),
            bucket.name,
        )


def _write(connection: Connection, work: DuckDBPyConnection, clock: Clock, progress: Progress) -> Changes:
    """Close what ended and add what is new; it was compared under the lock, so nothing else was written since."""
    connection.execute(sa.text("CREATE TEMPORARY TABLE ended (id bigint, how text) ON COMMIT DROP"))
    ended = sum(copy_rows(connection, work, _ENDED, "ended"))
    connection.execute(sa.text("ANALYZE ended"))
    now = stamp(connection, clock)
    connection.execute(sa.text(_CLOSE), {"now": now})
    listed = 0
    progress.begin("Taking over what is new", None, "objects")
    for rows in copy_rows(connection, work, differences.listed(now), _OBSERVATIONS, key="key"):
        listed += rows
        progress.advance(rows)
    progress.end()
    vanished = differences.gone(work, "settled")
    changed = ended - vanished
    appeared = listed - changed
    unrecorded = bool(appeared) and holds_unrecorded(connection, now)
    return Changes(listed, appeared, changed, vanished, unrecorded, differences.unholdable(work))


def _reading_of(connection: Connection, moment: datetime, *, whole: bool) -> dict[str, Any]:
    """Return the delivery as a reading of every key at its moment, in columns of ``audit.bucket_syncs``.

    An inventory that is not of the whole bucket tells nothing of the rest: then the age of the listing, and what
    the next reading has to look at, stay as they were.
    """
    last = connection.execute(sa.select(bucket_syncs).order_by(bucket_syncs.c.id.desc()).limit(1)).one_or_none()
    cycle = 1 if last is None else (last.cycle or 0) + 1
    values = {"started_at": moment, "cycle": cycle, "read_to": None, "full_listing": True}
    if whole:
        return values
    if last is None:
        return values | {"cycle": None, "full_listing": False}
    return {name: getattr(last, name) for name in values}


_BUCKETS: Final = "SELECT DISTINCT bucket FROM delivered"

_OBSERVATIONS: Final = "audit.object_observations (key, size, etag, last_modified, version_id, seen_at)"

_ENDED: Final = f"""
    SELECT id, CASE WHEN there THEN '{GoneHow.OVERWRITTEN}' ELSE coalesce(how, '{GoneHow.DELETED}') END AS how
    FROM settled
    WHERE id IS NOT NULL
"""

_CLOSE: Final = """
    UPDATE audit.object_observations AS seen
    SET gone_at = :now, gone_how = ended.how
    FROM ended
    WHERE seen.id = ended.id AND seen.gone_at IS NULL
"""
