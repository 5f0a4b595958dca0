"""What lies in the bucket, into the database: a listing, then the first bytes of what was not examined yet.

The listing becomes ``audit.object_observations`` in one transaction: what vanished or was overwritten is
closed, what is new is inserted. Examined are only objects that can be evidence. The row in
``audit.bucket_syncs`` comes last, so a reading that was killed counts as not made, and the next one does
what it left undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.domain.evidence import KEY_PREFIX, FileKind
from toolkit.domain.signatures import SIGNATURE_BYTES, kind_of_bytes
from toolkit.errors import BucketError, BucketUnavailable
from toolkit.operations import Clock
from toolkit.operations.progress import Progress, Quiet
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database, raw
from toolkit.storage.tables import bucket_syncs

EMPTY: Final = "EMPTY"
"""The problem of an object without a single byte."""

READERS: Final = 16
"""Objects whose first bytes are read at the same time."""

_BATCH: Final = 1000
_LOCK: Final = 0x73796E63
"""Advisory lock under which observations are written: two readings at once become one after the other."""


@dataclass(frozen=True, slots=True)
class Synced:
    """What one reading of the bucket found, in objects; ``examined`` counts those looked into."""

    listed: int
    appeared: int
    changed: int
    vanished: int
    examined: int


def sync_bucket(
    database: Database,
    bucket: Bucket,
    *,
    clock: Clock,
    full: bool = False,  # noqa: ARG001  # every reading is full so far
    progress: Progress | None = None,
) -> Synced:
    """Take over what lies in the bucket.

    Raises:
        BucketUnavailable: nothing was taken over, or the examination stopped half-way; run it again.
    """
    progress = progress or Quiet()
    started_at = clock()
    with database.transaction() as connection:
        _take_lock(connection)
        listed = _copy_listing(connection, bucket, progress)
        changed, vanished = _close_observations(connection, clock())
        appeared = _insert_observations(connection, clock()) - changed
    examined = _examine(database, bucket, clock, progress)
    with database.transaction() as connection:
        connection.execute(
            sa.insert(bucket_syncs),
            {
                "started_at": started_at,
                "finished_at": clock(),
                "bucket": bucket.name,
                "full_listing": True,
                "listed": listed,
                "appeared": appeared,
                "vanished": vanished,
            },
        )
    return Synced(listed, appeared, changed, vanished, examined)


def _take_lock(connection: Connection) -> None:
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))


def _copy_listing(connection: Connection, bucket: Bucket, progress: Progress) -> int:
    connection.execute(sa.text(_CREATE_LISTED))
    progress.begin("Listing the bucket", None, "objects")
    count = 0
    with raw(connection).cursor() as cursor, cursor.copy(_COPY_LISTED) as copy:
        for page in bucket.seen():
            for item in page:
                copy.write_row((item.key, item.size, item.etag, item.last_modified))
            count += len(page)
            progress.advance(len(page))
    progress.end()
    connection.execute(sa.text("ANALYZE listed"))
    return count


def _close_observations(connection: Connection, now: datetime) -> tuple[int, int]:
    """Close what vanished or changed; how many changed, and how many vanished."""
    row = connection.execute(sa.text(_CLOSE), {"now": now}).one()
    return row.changed, row.closed - row.changed


def _insert_observations(connection: Connection, now: datetime) -> int:
    return connection.execute(sa.text(_INSERT), {"now": now}).rowcount


_CREATE_LISTED: Final = """
    CREATE TEMPORARY TABLE listed (
        key text NOT NULL, size bigint NOT NULL, etag text NOT NULL, last_modified timestamptz NOT NULL
    ) ON COMMIT DROP
"""
_COPY_LISTED: Final = "COPY listed (key, size, etag, last_modified) FROM STDIN"

_CLOSE: Final = """
    WITH closed AS (
        UPDATE audit.object_observations AS known
        SET gone_at = :now
        WHERE known.gone_at IS NULL
          AND NOT EXISTS (
              SELECT FROM listed
              WHERE listed.key = known.key
                AND (listed.size, listed.etag, listed.last_modified)
                    = (known.size, known.etag, known.last_modified)
          )
        RETURNING known.key
    )
    SELECT count(*) AS closed,
           count(*) FILTER (WHERE EXISTS (SELECT FROM listed WHERE listed.key = closed.key)) AS changed
    FROM closed
"""

_INSERT: Final = """
    INSERT INTO audit.object_observations (key, size, etag, last_modified, seen_at)
    SELECT key, size, etag, last_modified, :now
    FROM listed
    WHERE NOT EXISTS (
        SELECT FROM audit.object_observations AS known
        WHERE known.key = listed.key AND known.gone_at IS NULL
    )
    ORDER BY key
    ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class _Unexamined:
    observation_id: int
    key: str
    size: int


def _examine(database: Database, bucket: Bucket, clock: Clock, progress: Progress) -> int:
    """Look into the first bytes of every object that nobody looked into; how many could be read."""
    progress.begin("Examining objects", None, "objects")
    examined = 0
    with ThreadPoolExecutor(READERS) as readers:
        for batch in _unexamined(database):
            kinds = readers.map(lambda item: _first_look(bucket, item), batch)
            checks = [check for check in kinds if check is not None]
            _keep_checks(database, checks, clock())
            examined += len(checks)
            progress.advance(len(batch))
    progress.end()
    return examined


def _unexamined(database: Database) -> Iterator[list[_Unexamined]]:
    last = 0
    while True:
        with database.transaction() as connection:
            rows = connection.execute(
                sa.text(_UNEXAMINED), {"last": last, "prefix": KEY_PREFIX, "batch": _BATCH}
            ).all()
        if not rows:
            return
        last = rows[-1].id
        yield [_Unexamined(row.id, row.key, row.size) for row in rows]


def _first_look(bucket: Bucket, item: _Unexamined) -> dict[str, Any] | None:
    """What the first bytes say, or ``None`` where they cannot be read: it stays unexamined, for the next time."""
    if item.size == 0:
        return {"observation_id": item.observation_id, "kind": FileKind.OTHER, "problem": EMPTY}
    try:
        head = bucket.read(item.key, 0, SIGNATURE_BYTES)
    except BucketUnavailable:
        raise
    except BucketError:
        return None
    return {"observation_id": item.observation_id, "kind": kind_of_bytes(head), "problem": None}


def _keep_checks(database: Database, checks: Iterable[dict[str, Any]], now: datetime) -> None:
    rows = [check | {"now": now} for check in checks]
    if not rows:
        return
    with database.transaction() as connection:
        _take_lock(connection)
        connection.execute(sa.text(_KEEP_CHECK), rows)


_UNEXAMINED: Final = """
    SELECT id, key, size
    FROM audit.object_observations AS observed
    WHERE gone_at IS NULL
      AND starts_with(key, :prefix)
      AND id > :last
      AND NOT EXISTS (SELECT FROM audit.content_checks WHERE observation_id = observed.id)
    ORDER BY id
    LIMIT :batch
"""

_KEEP_CHECK: Final = """
    INSERT INTO audit.content_checks (observation_id, kind, problem, checked_at)
    SELECT :observation_id, :kind, :problem, :now
    WHERE NOT EXISTS (SELECT FROM audit.content_checks WHERE observation_id = :observation_id)
"""
