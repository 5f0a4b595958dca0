"""Turn a listing into observations: close those of vanished or overwritten objects, insert the new ones."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.audit.bucket_listing import ASKED_AT_ONCE, ask_each
from toolkit.audit.bucket_scope import Condition, Scope, in_area, in_ranges
from toolkit.bucket.client import Bucket, Page
from toolkit.contract.contents import GoneHow
from toolkit.contract.deadlines import Clock
from toolkit.database.connection import Database, raw
from toolkit.database.locks import Lock, take
from toolkit.database.observation_clock import stamp
from toolkit.database.observations import FEW, Tolerance
from toolkit.errors import ObjectDenied
from toolkit.progress import Progress


@dataclass(frozen=True, slots=True)
class Changes:
    """The differences of a listing from what was known, in objects."""

    listed: int
    appeared: int
    changed: int
    vanished: int
    unrecorded: bool = False
    """True if no observed record names one of those that appeared."""
    unstorable: tuple[str, ...] = ()
    """Keys with a character that no text of the database can hold, written with its escape."""


def observe_objects(
    database: Database,
    bucket: Bucket,
    pages: Iterable[Page],
    scope: Scope,
    denied: Sequence[str],
    clock: Clock,
    progress: Progress,
    tolerance: Tolerance,
) -> Changes:
    """Take over the objects of the scope, all of them or nothing.

    ``denied`` holds, once ``pages`` were read, the keys about which the bucket refused to answer: what was known
    of them stays.

    Raises:
        MassDisappearance: most of them are gone; nothing was written.
    """
    with database.transaction() as connection:
        take(connection, Lock.OBJECT_HISTORY)
        unstorable: list[str] = []
        listed = _copy_listing(connection, pages, progress, unstorable)
        known = _known(bucket, scope, denied)
        connection.execute(sa.text(_CREATE_ENDED.format(known=known.text)), known.bound)
        changed, vanished = connection.execute(sa.text(_COUNT_ENDED)).one()
        if vanished > FEW:
            count = sa.text(f"SELECT count(*) FROM ({known.text}) AS known")  # made of constants
            tolerance.check(vanished, connection.execute(count, known.bound).scalar_one(), "objects")
        _ask_for_versions(connection, bucket)
        now = stamp(connection, clock)
        connection.execute(sa.text(_CLOSE), {"now": now})
        appeared = connection.execute(sa.text(_INSERT), {"now": now}).rowcount - changed
        unrecorded = bool(appeared) and holds_unrecorded(connection, now)
        return Changes(listed, appeared, changed, vanished, unrecorded, tuple(unstorable))


def holds_unrecorded(connection: Connection, now: datetime) -> bool:
    """Tell whether no observed record names one of the objects that appeared ``now``."""
    return bool(connection.scalar(sa.text(_UNRECORDED), {"now": now}))


def _copy_listing(connection: Connection, pages: Iterable[Page], progress: Progress, unstorable: list[str]) -> int:
    connection.execute(sa.text(_CREATE_LISTED))
    connection.execute(sa.text("CREATE TEMPORARY TABLE told (key text, version text, how text) ON COMMIT DROP"))
    progress.begin("Listing the bucket", None, "objects")
    with raw(connection).cursor() as cursor, cursor.copy(_COPY_LISTED) as copy:
        for page in pages:
            copy.write(page.rows)
            unstorable.extend(page.unstorable)
            progress.advance(len(page))
    progress.end()
    connection.execute(sa.text("ANALYZE listed"))
    count: int = connection.scalar(sa.text("SELECT count(DISTINCT key) FROM listed")) or 0
    return count


def _known(bucket: Bucket, scope: Scope, denied: Sequence[str]) -> Condition:
    """Return the known objects of the scope, as a query."""
    ranges, area = in_ranges("key", scope.ranges), in_area("key", bucket.area)
    bound = {"asked": sorted({*scope.asked} - {*denied}), **ranges.bound, **area.bound}
    return Condition(_KNOWN.format(ranges=ranges.text, area=area.text), bound)


def _ask_for_versions(connection: Connection, bucket: Bucket) -> None:
    """Ask a bucket that keeps versions for that of each new object, and how each vanished one was deleted."""
    if not bucket.keeps_versions():
        return
    rows = connection.execute(sa.text(_UNLIKE).execution_options(stream_results=True))
    for answers in ask_each(partial(_told, bucket), rows.partitions(ASKED_AT_ONCE)):
        with raw(connection).cursor() as cursor, cursor.copy("COPY told (key, version, how) FROM STDIN") as copy:
            for answer in answers:
                copy.write_row(answer)
    connection.execute(sa.text("ANALYZE told"))


def _told(bucket: Bucket, row: sa.Row[Any]) -> tuple[str, str | None, GoneHow | None]:
    """Return the key with the version of its object, or with how that was deleted."""
    if not row.listed:
        return row.key, None, bucket.how_gone(row.key)
    try:
        item = bucket.head(row.key)
    except ObjectDenied:  # a listing shows it, so it is observed without its version
        item = None
    return row.key, None if item is None else item.version_id, None


_CREATE_LISTED: Final = """
    CREATE TEMPORARY TABLE listed (
        key text NOT NULL, size bigint NOT NULL, etag text NOT NULL, last_modified timestamptz NOT NULL
    ) ON COMMIT DROP
"""
_COPY_LISTED: Final = "COPY listed (key, size, etag, last_modified) FROM STDIN (ENCODING 'UTF8')"

_KNOWN: Final = """
    SELECT id, key, size, etag, last_modified
    FROM audit.object_observations
    WHERE gone_at IS NULL AND (({ranges} AND {area}) OR key COLLATE "C" = ANY(CAST(:asked AS text[])))
"""

_CREATE_ENDED: Final = """
    CREATE TEMPORARY TABLE ended ON COMMIT DROP AS
    SELECT id, key, EXISTS (SELECT FROM listed WHERE listed.key = known.key) AS changed
    FROM ({known}) AS known
    WHERE NOT EXISTS (
        SELECT FROM listed
        WHERE listed.key = known.key
          AND (listed.size, listed.etag, date_trunc('second', listed.last_modified))
            = (known.size, known.etag, date_trunc('second', known.last_modified))
    )
"""
"""An object that was asked for has its time to the second, and in some listings with parts of it."""

_COUNT_ENDED: Final = "SELECT count(*) FILTER (WHERE changed), count(*) FILTER (WHERE NOT changed) FROM ended"

_UNLIKE: Final = """
    SELECT key, false AS listed FROM ended WHERE NOT changed
    UNION ALL
    SELECT DISTINCT key, true
    FROM listed
    WHERE EXISTS (SELECT FROM ended WHERE ended.key = listed.key)
       OR NOT EXISTS (
          SELECT FROM audit.object_observations AS seen WHERE seen.key = listed.key AND seen.gone_at IS NULL
       )
"""

_CLOSE: Final = """
    UPDATE audit.object_observations AS seen
    SET gone_at = :now, gone_how = CASE WHEN ended.changed THEN 'OVERWRITTEN' ELSE coalesce(how, 'DELETED') END
    FROM ended
    LEFT JOIN (SELECT key, max(how) AS how FROM told GROUP BY key) AS told USING (key)
    WHERE seen.id = ended.id AND seen.gone_at IS NULL
"""

_INSERT: Final = """
    INSERT INTO audit.object_observations (key, size, etag, last_modified, version_id, seen_at)
    SELECT key, size, etag, last_modified, version, :now
    FROM listed
    LEFT JOIN (SELECT key, max(version) AS version FROM told GROUP BY key) AS told USING (key)
    WHERE NOT EXISTS (
        SELECT FROM audit.object_observations AS seen
        WHERE seen.key = listed.key AND seen.gone_at IS NULL
    )
    ORDER BY key
    ON CONFLICT DO NOTHING
"""

_UNRECORDED: Final = """
    SELECT EXISTS (
        SELECT FROM audit.object_observations AS seen
        WHERE seen_at = :now AND gone_at IS NULL AND NOT EXISTS (
            SELECT FROM audit.evidence_observations WHERE object_key = seen.key AND gone_at IS NULL
        )
    )
"""
