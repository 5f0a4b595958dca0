"""Read the bucket into the database: its objects, then the first bytes of those not examined yet.

::

    bucket_scope      the keys that a reading looks at, so that no part of the listing is older than stated
    object_history    their objects, listed or from an inventory, become ``audit.object_observations``
    file_types        the kind of each new object, by its first bytes

The row in ``audit.bucket_syncs`` comes last: a reading that was killed counts as not made, and the next one
does what it left undone.
"""

from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta

import pyarrow as pa
import sqlalchemy as sa

from toolkit.audit.bucket_scope import CLOCKS_APART, EVERY_KEY_WITHIN, Scope, listed_since, next_scope
from toolkit.audit.file_types import examine
from toolkit.audit.inventory import Inventory
from toolkit.audit.object_history import Synced, observe_objects, rows_of
from toolkit.bucket.client import Bucket
from toolkit.bucket.listing import list_objects
from toolkit.contract.deadlines import Clock
from toolkit.contract.fields import pick_camel
from toolkit.database.belonging import check_bucket
from toolkit.database.connection import Database
from toolkit.database.observation_clock import stamp
from toolkit.database.observations import observe_service
from toolkit.database.tables import bucket_syncs
from toolkit.errors import InvalidInput, ObjectArchived, WrongBucket
from toolkit.progress import Progress, Quiet


def sync_bucket(
    database: Database,
    bucket: Bucket,
    *,
    clock: Clock,
    full: bool = False,
    inventory: Inventory | None = None,
    every_key_within: timedelta = EVERY_KEY_WITHIN,
    confirmed: bool = False,
    progress: Progress | None = None,
) -> Synced:
    """Observe the sales and their records, then take over what lies in the bucket, or did by an inventory.

    Afterwards every object that a record of an open sale names was looked at now, and the listing of any other
    is not older than ``every_key_within``. A reading is ``full`` by itself when it is the first one, and where
    reading every key is cheaper.

    Raises:
        WrongBucket: the database belongs to another bucket, or the inventory tells of another one.
        WrongService: it belongs to another service; nothing was read.
        InvalidInput: every key was looked at since the moment of the inventory, or that is still to come.
        UnreadableFile: the inventory lacks a column, or cannot be read; nothing was taken over.
        MassDisappearance: most sales, records or objects are gone at once; nothing of them was taken over.
        BucketUnavailable: nothing was taken over, or the examination stopped half-way; run it again.
    """
    progress = progress or Quiet()
    started_at, as_of = clock(), None if inventory is None else inventory.moment
    with database.transaction() as connection:
        check_bucket(connection, bucket)
        if inventory is not None:
            _check_inventory(inventory, bucket, started_at, listed_since(connection))
    observe_service(database, clock, confirmed=confirmed)
    with database.transaction() as connection:
        scope = next_scope(
            connection, bucket, started_at, full=full or inventory is not None, within=every_key_within
        )
        before = connection.scalar(
            sa.select(bucket_syncs.c.started_at).order_by(bucket_syncs.c.id.desc()).limit(1)
        )
    with closing(_rows(bucket, scope, inventory)) as rows:
        found, unrecorded = observe_objects(database, bucket, rows, scope, clock, progress, confirmed, as_of=as_of)
    if unrecorded:  # their records were stored before them, and perhaps after the service was looked at
        observe_service(database, clock, confirmed=confirmed)
    examined, refusals = examine(database, bucket, scope, clock, progress)
    archived = tuple(key for key, error in refusals.items() if isinstance(error, ObjectArchived))
    # An inventory of a part of the bucket tells nothing of the rest, and the next reading begins as this one did.
    began = started_at if as_of is None else before if found.lacking and before is not None else as_of
    result = replace(
        found,
        examined=examined,
        full=scope.full and not found.lacking,
        archived=archived,
        unreadable=tuple(dict.fromkeys((*(key for key in refusals if key not in archived), *found.unreadable))),
    )
    with database.transaction() as connection:
        row = {
            "started_at": began,
            "finished_at": stamp(connection, clock),
            "bucket": bucket.address,
            "full_listing": result.full,
            "unreadable": len(refusals) + len(found.unstorable),
            "denied": len(found.unreadable),
            "source": None if inventory is None else inventory.address,
            **pick_camel(found, "listed", "appeared", "vanished", "asked"),
        }
        connection.execute(sa.insert(bucket_syncs), row)
        return replace(result, listed_since=listed_since(connection))


def _rows(bucket: Bucket, scope: Scope, inventory: Inventory | None) -> Generator[pa.Table]:
    if inventory is not None:
        yield from inventory.rows(bucket.area)
        return
    with closing(list_objects(bucket, scope.prefixes)) as pages:
        yield from map(rows_of, pages)


def _check_inventory(inventory: Inventory, bucket: Bucket, now: datetime, listed: datetime | None) -> None:
    told = inventory.moment.isoformat(timespec="seconds")
    if inventory.bucket != bucket.name:
        raise WrongBucket(
            "{} lists the bucket {}, and this is {}. Nothing was taken over.",
            inventory.address,
            inventory.bucket,
            bucket.name,
        )
    if inventory.moment > now + CLOCKS_APART:
        raise InvalidInput(
            "{} is dated {}, in the future. Check the clock of this machine. Nothing was taken over.",
            inventory.address,
            told,
        )
    if listed is not None and listed >= inventory.moment:
        raise InvalidInput(
            "{} is dated {}, and every key was looked at since {}. Nothing was taken over.",
            inventory.address,
            told,
            listed.isoformat(timespec="seconds"),
        )
