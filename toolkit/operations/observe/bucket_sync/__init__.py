"""Read the bucket into the database: a listing, then the first bytes of objects not examined yet.

::

    scope             the keys that a reading lists: all of them, or the days that can have changed
    listing           those keys, several parts of the bucket side by side
    object_history    the listing becomes ``audit.object_observations``, in one transaction
    type_detection    the kind of each new object, by its first bytes

The row in ``audit.bucket_syncs`` comes last: a reading that was killed counts as not made, and the next one
does what it left undone.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from toolkit.operations import Clock
from toolkit.operations.observe.bucket_sync.listing import listed_pages
from toolkit.operations.observe.bucket_sync.object_history import Changes, observe_objects
from toolkit.operations.observe.bucket_sync.scope import FULL_EVERY, address, next_scope
from toolkit.operations.observe.bucket_sync.type_detection import examine
from toolkit.operations.progress import Progress, Quiet
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database
from toolkit.storage.observation_clock import stamp
from toolkit.storage.tables import bucket_syncs

__all__ = ["FULL_EVERY", "Synced", "sync_bucket"]


@dataclass(frozen=True, slots=True)
class Synced:
    """The result of one reading of the bucket, in objects; ``examined`` counts those whose bytes were read.

    ``full`` tells whether every key was read.
    """

    listed: int
    appeared: int
    changed: int
    vanished: int
    examined: int
    full: bool = True


def sync_bucket(
    database: Database,
    bucket: Bucket,
    *,
    clock: Clock,
    full: bool = False,
    progress: Progress | None = None,
) -> Synced:
    """Take over what lies in the bucket: everything, or only what can have changed since the last reading.

    A reading that is not ``full`` lists the days on which an upload form that was alive since the last reading
    can have been issued. It cannot see that an older object vanished, or was overwritten by other means than a
    form. So a reading is full by itself when it is the first one, when the last full one is ``FULL_EVERY`` ago,
    and while the bucket is small.

    Raises:
        BucketUnavailable: nothing was taken over, or the examination stopped half-way; run it again.
    """
    progress = progress or Quiet()
    started_at = clock()
    scope = next_scope(database, bucket, started_at, full=full)
    pages = listed_pages(database, bucket, scope)
    changes = observe_objects(database, pages, scope, clock, progress)
    examined = examine(database, bucket, scope, clock, progress)
    with database.transaction() as connection:
        connection.execute(
            sa.insert(bucket_syncs),
            {
                "started_at": started_at,
                "finished_at": stamp(connection, clock),
                "bucket": address(bucket),
                "full_listing": scope.full,
                "listed": changes.listed,
                "appeared": changes.appeared,
                "vanished": changes.vanished,
            },
        )
    return _synced(changes, examined, scope.full)


def _synced(changes: Changes, examined: int, full: bool) -> Synced:
    return Synced(changes.listed, changes.appeared, changes.changed, changes.vanished, examined, full)
