"""The listing becomes observations: what vanished or was overwritten is closed, what is new is inserted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.operations import Clock
from toolkit.operations.observe.bucket_sync.listing import Page
from toolkit.operations.observe.bucket_sync.scope import Scope
from toolkit.operations.progress import Progress
from toolkit.storage.database import Database, raw
from toolkit.storage.locks import Lock, take
from toolkit.storage.observation_clock import stamp


@dataclass(frozen=True, slots=True)
class Changes:
    """The differences between a listing and the known objects, counted."""

    listed: int
    appeared: int
    changed: int
    vanished: int


def observe_objects(
    database: Database, pages: Iterable[Page], scope: Scope, clock: Clock, progress: Progress
) -> Changes:
    """Take over a listing of the scope's keys, all of it or nothing."""
    with database.transaction() as connection:
        take(connection, Lock.OBJECT_HISTORY)
        listed = _copy_listing(connection, pages, progress)
        now = stamp(connection, clock)
        changed, vanished = _close_observations(connection, scope, now)
        appeared = _insert_observations(connection, now) - changed
    return Changes(listed, appeared, changed, vanished)


def _copy_listing(connection: Connection, pages: Iterable[Page], progress: Progress) -> int:
    connection.execute(sa.text(_CREATE_LISTED))
    progress.begin("Listing the bucket", None, "objects")
    count = 0
    with raw(connection).cursor() as cursor, cursor.copy(_COPY_LISTED) as copy:
        for page in pages:
            for item in page:
                copy.write_row((item.key, item.size, item.etag, item.last_modified))
            count += len(page)
            progress.advance(len(page))
    progress.end()
    connection.execute(sa.text("ANALYZE listed"))
    return count


def _close_observations(connection: Connection, scope: Scope, now: datetime) -> tuple[int, int]:
    """Close what vanished or changed; how many changed, and how many vanished."""
    close = sa.text(_CLOSE.format(scope=scope.of_known))
    row = connection.execute(close, {"now": now, **scope.parameters}).one()
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
          AND {scope}
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
