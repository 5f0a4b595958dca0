"""Read the bucket into the database: its objects, then the first bytes of those not examined yet.

::

    scope             the keys that a reading looks at, so that the picture is known to be no older than stated
    listing           the objects under those keys, several parts of the bucket side by side
    object_history    they become ``audit.object_observations``, in one transaction
    type_detection    the kind of each new object, by its first bytes

The row in ``audit.bucket_syncs`` comes last: a reading that was killed counts as not made, and the next one
does what it left undone.
"""

from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa

from toolkit.operations import Clock
from toolkit.operations.observe.belonging import check_bucket
from toolkit.operations.observe.bucket_sync.listing import pages_of
from toolkit.operations.observe.bucket_sync.object_history import observe_objects
from toolkit.operations.observe.bucket_sync.scope import EVERY_KEY_WITHIN, next_scope, picture_since
from toolkit.operations.observe.bucket_sync.type_detection import examine
from toolkit.operations.observe.disappearance import Tolerance
from toolkit.operations.observe.service_history import observe_service
from toolkit.operations.progress import Progress, Quiet
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database
from toolkit.storage.observation_clock import stamp
from toolkit.storage.tables import bucket_syncs

__all__ = ["Synced", "picture_since", "sync_bucket"]


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

    Afterwards the picture of every object that a record of an open sale names is of now, and that of any other
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
    pages = pages_of(database, bucket, scope, denied)
    changes = observe_objects(database, bucket, pages, scope, denied, clock, progress, tolerance)
    if changes.unrecorded:  # their records were stored before them, and perhaps after the service was looked at
        observe_service(database, clock, tolerance)
    looked = examine(database, bucket, scope, clock, progress)
    unreadable = tuple(dict.fromkeys((*looked.unreadable, *denied)))
    with database.transaction() as connection:
        connection.execute(
            sa.insert(bucket_syncs),
            {
                "started_at": started_at,
                "finished_at": stamp(connection, clock),
                "bucket": bucket.address,
                "full_listing": scope.full,
                "listed": changes.listed,
                "appeared": changes.appeared,
                "vanished": changes.vanished,
                "cycle": scope.cycle,
                "read_to": scope.read_to,
                "asked": len(scope.asked),
                "unreadable": len(looked.archived) + len(unreadable) + len(changes.unstorable),
            },
        )
    return Synced(
        changes.listed,
        changes.appeared,
        changes.changed,
        changes.vanished,
        looked.examined,
        scope.full,
        looked.archived,
        unreadable,
        changes.unstorable,
    )
