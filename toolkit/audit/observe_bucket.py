"""Read the bucket into the database: its objects, then the first bytes of those not examined yet.

::

    bucket_scope      the keys that a reading looks at, so that no part of the listing is older than stated
    bucket_listing    the objects under those keys, several folders side by side
    object_history    they become ``audit.object_observations``, in one transaction
    file_types        the kind of each new object, by its first bytes

The row in ``audit.bucket_syncs`` comes last: a reading that was killed counts as not made, and the next one
does what it left undone.
"""

from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.audit.bucket_listing import pages_of
from toolkit.audit.bucket_scope import EVERY_KEY_WITHIN, listed_since, next_scope
from toolkit.audit.file_types import Examined, examine
from toolkit.audit.object_history import Changes, observe_objects
from toolkit.bucket.client import Bucket
from toolkit.contract.deadlines import Clock
from toolkit.contract.fields import named
from toolkit.database.belonging import check_bucket
from toolkit.database.connection import Database
from toolkit.database.observation_clock import stamp
from toolkit.database.observations import Tolerance, observe_service
from toolkit.database.tables import bucket_syncs
from toolkit.progress import Progress, Quiet

__all__ = ["Synced", "listed_since", "note_reading", "sync_bucket"]


@dataclass(frozen=True, slots=True)
class Synced:
    """The result of one reading of the bucket, in objects; ``examined`` counts those whose bytes were read.

    ``full`` tells whether every key was read. ``archived`` and ``unreadable`` are the keys of objects that a
    record names or that lie where upload forms lead, and whose bytes could not be read.
    ``unstorable`` are keys that no database can hold, with their escapes: such an object counts for no sale.
    """

    listed: int
    appeared: int
    changed: int
    vanished: int
    examined: int
    full: bool = True
    archived: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    unstorable: tuple[str, ...] = ()


def note_reading(
    connection: Connection, bucket: Bucket, changes: Changes, looked: Examined, clock: Clock, **values: Any
) -> Synced:
    """Note a reading of the bucket, with the other ``values`` of its row; the last thing that it does."""
    result = Synced(
        full=values["full_listing"],
        **named(changes, "listed", "appeared", "changed", "vanished", "unstorable"),
        **named(looked, "examined", "archived", "unreadable"),
    )
    unread = len(looked.archived) + len(looked.unreadable) + len(changes.unstorable)
    row = {"finished_at": stamp(connection, clock), "bucket": bucket.address, "unreadable": unread}
    row |= named(changes, "listed", "appeared", "vanished")
    connection.execute(sa.insert(bucket_syncs), row | values)
    return result


def sync_bucket(
    database: Database,
    bucket: Bucket,
    *,
    clock: Clock,
    full: bool = False,
    every_key_within: timedelta = EVERY_KEY_WITHIN,
    tolerance: Tolerance | None = None,
    progress: Progress | None = None,
) -> Synced:
    """Observe the sales and their records, then take over what lies in the bucket.

    Afterwards every object that a record of an open sale names was looked at now, and the listing of any other
    is not older than ``every_key_within``. A reading is ``full`` by itself when it is the first one, while the
    bucket is small, and where reading every key is cheaper.

    Raises:
        WrongBucket: the database belongs to another bucket; nothing was read.
        WrongService: it belongs to another service; nothing was read.
        MassDisappearance: most sales, records or objects are gone at once; nothing of them was taken over.
        BucketUnavailable: nothing was taken over, or the examination stopped half-way; run it again.
    """
    progress, tolerance = progress or Quiet(), tolerance or Tolerance()
    started_at = clock()
    with database.transaction() as connection:
        check_bucket(connection, bucket)
    observe_service(database, clock, tolerance)
    with database.transaction() as connection:
        scope = next_scope(connection, bucket, started_at, full=full, within=every_key_within)
    denied: list[str] = []
    with closing(pages_of(bucket, scope, denied)) as pages:
        changes = observe_objects(database, bucket, pages, scope, denied, clock, progress, tolerance)
    if changes.unrecorded:  # their records were stored before them, and perhaps after the service was looked at
        observe_service(database, clock, tolerance)
    looked = examine(database, bucket, scope, clock, progress)
    looked = replace(looked, unreadable=tuple(dict.fromkeys((*looked.unreadable, *denied))))
    values = {
        "started_at": started_at,
        "full_listing": scope.full,
        "asked": len(scope.asked),
        "denied": len(denied),
    }
    values |= {"cycle": scope.cycle, "read_to": scope.read_to}
    with database.transaction() as connection:
        return note_reading(connection, bucket, changes, looked, clock, **values)
