"""The one bucket that a database belongs to."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.errors import WrongBucket
from toolkit.operations import Clock
from toolkit.operations.observe.bucket_sync.scope import address
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database
from toolkit.storage.observation_clock import stamp
from toolkit.storage.tables import adopted_buckets, bucket_syncs


def belongs_to(connection: Connection) -> str | None:
    """Return the address of the bucket; ``None`` where the database has none yet."""
    for table in (adopted_buckets, bucket_syncs):
        found: str | None = connection.scalar(sa.select(table.c.bucket).order_by(table.c.id.desc()).limit(1))
        if found is not None:
            return found
    return None


def check_belonging(connection: Connection, bucket: Bucket) -> None:
    """Make sure that the database belongs to this bucket, or to none yet.

    Raises:
        WrongBucket: it belongs to another one; nothing was written.
    """
    known, this = belongs_to(connection), address(bucket)
    if known is not None and known != this:
        raise WrongBucket(
            f"This database belongs to the bucket {known}, and this is {this}. Nothing was read. Check "
            "EVIDENCE_BUCKET and the AWS_* variables; if the evidence has really moved, run: toolkit bucket adopt"
        )


def adopt_bucket(database: Database, bucket: Bucket, clock: Clock) -> tuple[str | None, str]:
    """Let the database belong to this bucket from now on; return the addresses of the old and the new one."""
    bucket.check()
    with database.transaction() as connection:
        former = belongs_to(connection)
        adopted_at = stamp(connection, clock)
        connection.execute(sa.insert(adopted_buckets), {"bucket": address(bucket), "adopted_at": adopted_at})
    return former, address(bucket)
