"""Turn what the bucket holds into observations: close those of vanished or overwritten objects, insert the new.

A listing and an inventory give the same rows, and one comparison takes over both. What an inventory contradicts is
asked for one by one first: it is older than now, and S3 says that it may lack objects.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import astuple, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.bucket.client import ASKED_AT_ONCE, Area, Bucket, ObjectSeen, ask_each
from toolkit.database.connection import Database, Lock, copy_rows, raw, take
from toolkit.database.observation_clock import stamp
from toolkit.database.observations import FEW, check_disappearance
from toolkit.errors import ObjectDenied
from toolkit.progress import Progress

OBJECT: Final = pa.schema(
    {
        "key": pa.string(),
        "size": pa.int64(),
        "etag": pa.string(),
        "last_modified": pa.timestamp("us", "UTC"),
        "version_id": pa.string(),
    }
)
"""An object, as both a listing and an inventory show it."""

_LISTED_WITHIN: Final = timedelta(days=2)
"""The time after which an object is in each inventory; S3 says that those of the last days may not be."""

EVERYTHING: Final = ("",)


@dataclass(frozen=True, slots=True)
class Scope:
    """The keys that a reading looks at: those with one of the ``prefixes`` by listing them, ``asked`` one by one.

    ``since`` is when the last reading began, if there was one.
    """

    prefixes: tuple[str, ...] = EVERYTHING
    asked: tuple[str, ...] = ()
    since: datetime | None = None

    @property
    def full(self) -> bool:
        """Tells whether every key is looked at."""
        return self.prefixes == EVERYTHING


@dataclass(frozen=True, slots=True)
class Synced:
    """The result of one reading of the bucket, in objects; ``examined`` counts those whose bytes were read.

    ``full`` tells whether every key was read. ``archived`` and ``unreadable`` are the keys of objects whose bytes
    could not be read, though a record names them or they lie where upload forms lead, or about which the bucket
    refused to answer: what was known of them stays.
    """

    listed: int = 0
    appeared: int = 0
    changed: int = 0
    vanished: int = 0
    examined: int = 0
    full: bool = True
    asked: int = 0
    """Keys that were asked for one by one."""
    lacking: int = 0
    """Objects that are there and were long before an inventory that lacks them: it is not of the whole bucket."""
    listed_since: datetime | None = field(default=None, compare=False)
    """When every key was looked at last."""
    archived: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition in SQL, and the values that it binds."""

    text: str
    bound: dict[str, Any]


def under(key: str, prefixes: Sequence[str], name: str = "under") -> Condition:
    """Return the condition that a key has one of the prefixes; PostgreSQL finds it by an index over "C"."""
    if "" in prefixes:
        return Condition("TRUE", {})
    bound = {f"{name}{place}": each for place, each in enumerate(prefixes)}
    texts = (f'starts_with({key} COLLATE "C", :{each})' for each in bound)
    return Condition(f"({' OR '.join(texts) or 'FALSE'})", bound)


def in_area(key: str, area: Area) -> Condition:
    """Return the condition that a listing of the area shows a key."""
    wanted, ignored = under(key, area.prefixes or EVERYTHING, "wanted"), under(key, area.ignored, "ignored")
    return Condition(f"({wanted.text} AND NOT {ignored.text})", wanted.bound | ignored.bound)


def rows_of(objects: Sequence[ObjectSeen]) -> pa.Table:
    """Return objects as rows."""
    columns = list(zip(*map(astuple, objects), strict=True)) or [()] * len(OBJECT)
    return pa.table(list(map(pa.array, columns, OBJECT.types)), OBJECT)


def observe_objects(
    database: Database,
    bucket: Bucket,
    rows: Iterable[pa.Table],
    scope: Scope,
    progress: Progress,
    confirmed: bool,
    *,
    as_of: datetime | None = None,
) -> tuple[Synced, bool]:
    """Take over the objects of the scope, all of them or nothing; ``rows`` come from an inventory of ``as_of``.

    Tells also whether no observed record names one of those that appeared.

    Raises:
        MassDisappearance: most of them are gone; nothing was written.
    """
    with database.transaction() as connection:
        take(connection, Lock.OBJECT_HISTORY)
        connection.execute(sa.text(_CREATE_LISTED))
        _copy_listing(connection, rows, progress)
        asked = len(scope.asked)
        starts = range(0, asked, ASKED_AT_ONCE)
        denied = _ask(connection, bucket, (scope.asked[start : start + ASKED_AT_ONCE] for start in starts))
        known = _known(bucket, scope, as_of)
        _find_ended(connection, known, denied, confirmed)
        doubtful, lacking = _settle(connection, bucket, as_of, denied, progress)
        asked += doubtful
        if as_of is None and lacking:  # a listing that lacks what is there may lack what is new as well
            lacking, listed = 0, under("object_key", scope.prefixes)
            unlisted = connection.scalars(sa.text(_UNLISTED.format(listed=listed.text)), listed.bound).all()
            asked += len(unlisted)
            denied += _ask(connection, bucket, [unlisted])
        if doubtful:
            _find_ended(connection, known, denied, confirmed)
        connection.execute(sa.text("CREATE TEMPORARY TABLE head_versions (key text, version text) ON COMMIT DROP"))
        if as_of is None and bucket.keeps_versions():
            _ask_for_versions(connection, bucket)
        # It was compared under the lock, so nothing was written since.
        listed = connection.execute(sa.text("SELECT count(DISTINCT key) FROM listed")).scalar_one()
        changed, vanished = connection.execute(sa.text(_COUNT_ENDED)).one()
        now = {"now": stamp(connection)}
        connection.execute(sa.text(_CLOSE), now)
        appeared = connection.execute(sa.text(_INSERT), now).rowcount - changed
        unrecorded = bool(appeared) and bool(connection.scalar(sa.text(_UNRECORDED), now))
    found = Synced(listed, appeared, changed, vanished, asked=asked, lacking=lacking)
    return replace(found, unreadable=tuple(denied)), unrecorded


def _copy_listing(connection: Connection, rows: Iterable[pa.Table], progress: Progress) -> None:
    """Copy the rows but for keys with a NUL, which no text of PostgreSQL can hold: no record names one.

    Nor does one name a key with a character that the database's encoding lacks; that is written as its number.
    """
    progress.begin("Listing the bucket", None, "objects")
    encoding = connection.execute(sa.text("SELECT current_setting('server_encoding')")).scalar_one()
    for each in rows:
        copied = each.filter(pc.invert(pc.match_substring(each["key"], "\0")))
        if encoding.startswith(("LATIN", "WIN")):
            name = encoding.replace("WIN", "cp")
            keys = [key.encode(name, "backslashreplace").decode(name) for key in copied["key"].to_pylist()]
            copied = copied.set_column(0, "key", pa.array(keys, pa.string()))
        copy_rows(connection, "listed", copied)
        progress.advance(each.num_rows)
    progress.end()
    connection.execute(sa.text("ANALYZE listed"))


def _ask(connection: Connection, bucket: Bucket, batches: Iterable[Sequence[str]]) -> list[str]:
    """Add what lies under the keys now to the listing; return those about which the bucket refuses to answer."""
    denied: list[str] = []

    def look(key: str) -> ObjectSeen | None:
        try:
            return bucket.head(key)
        except ObjectDenied:  # it may be there or not
            denied.append(key)
            return None

    for answers in ask_each(look, batches):
        copy_rows(connection, "listed", rows_of([each for each in answers if each is not None]))
    return denied


def _known(bucket: Bucket, scope: Scope, as_of: datetime | None) -> Condition:
    """Return the known objects of the scope, as a query; what was observed after an inventory is none of it."""
    listed, area = under("key", scope.prefixes), in_area("key", bucket.area)
    bound = {"asked": list(scope.asked), "as_of": as_of, **listed.bound, **area.bound}
    return Condition(_KNOWN.format(listed=listed.text, area=area.text), bound)


def _find_ended(connection: Connection, known: Condition, denied: Sequence[str], confirmed: bool) -> None:
    """Make the table ``ended`` of the known objects that are not listed as they were, without those ``denied``.

    Raises:
        MassDisappearance: these are most of the known objects.
    """
    connection.execute(sa.text("DROP TABLE IF EXISTS ended"))
    connection.execute(sa.text(_CREATE_ENDED.format(known=known.text)), known.bound | {"denied": denied})
    _, vanished = connection.execute(sa.text(_COUNT_ENDED)).one()
    if vanished > FEW and not confirmed:
        count = sa.text(f"SELECT count(*) FROM ({known.text}) AS known")
        check_disappearance(vanished, connection.execute(count, known.bound).scalar_one(), "objects")


def _settle(
    connection: Connection, bucket: Bucket, as_of: datetime | None, denied: list[str], progress: Progress
) -> tuple[int, int]:
    """Ask for what a listing lacks, or an inventory contradicts; list the answers in place of what it says.

    What an inventory alone knows is asked for as well where the bucket was looked at since: it may be gone.

    Returns:
        How many were asked for, and how many are there that the listing should have, too.
    """
    connection.execute(sa.text(_CREATE_DOUBTFUL), {"as_of": as_of})
    doubtful = connection.execute(sa.text("SELECT count(*) FROM doubtful")).scalar_one()
    if not doubtful:
        return 0, 0
    connection.execute(sa.text("DELETE FROM listed USING doubtful WHERE listed.key = doubtful.key"))
    progress.begin("Asking for what differs", doubtful, "objects")
    query = sa.text("SELECT key FROM doubtful").execution_options(stream_results=True)
    with closing(connection.execute(query)) as keys:
        denied += _ask(connection, bucket, _with_progress(keys.scalars().partitions(ASKED_AT_ONCE), progress))
    progress.end()
    before = "infinity" if as_of is None else str(as_of - _LISTED_WITHIN)
    return doubtful, connection.execute(sa.text(_COUNT_LACKING), {"before": before}).scalar_one()


def _with_progress(batches: Iterable[Sequence[str]], progress: Progress) -> Iterator[Sequence[str]]:
    for batch in batches:
        yield batch
        progress.advance(len(batch))


def _ask_for_versions(connection: Connection, bucket: Bucket) -> None:
    """Ask a bucket that keeps versions for those of new objects."""

    def version(key: str) -> tuple[str, str | None]:
        with suppress(ObjectDenied):  # a listing shows it, so it is observed without its version
            if (item := bucket.head(key)) is not None:
                return key, item.version_id
        return key, None

    query = sa.text(_NEW).execution_options(stream_results=True)
    with closing(connection.execute(query)) as keys, raw(connection).cursor() as cursor:
        for answers in ask_each(version, keys.scalars().partitions(ASKED_AT_ONCE)):
            with cursor.copy("COPY head_versions (key, version) FROM STDIN") as copy:
                for answer in answers:
                    copy.write_row(answer)
    connection.execute(sa.text("ANALYZE head_versions"))


_CREATE_LISTED: Final = """
    CREATE TEMPORARY TABLE listed (
        key text NOT NULL, size bigint NOT NULL, etag text NOT NULL, last_modified timestamptz NOT NULL,
        version_id text
    ) ON COMMIT DROP
"""

_KNOWN: Final = """
    SELECT id, key, size, etag, last_modified
    FROM audit.object_observations
    WHERE gone_at IS NULL
      AND (({listed} AND {area}) OR key COLLATE "C" = ANY(CAST(:asked AS text[])))
      AND (CAST(:as_of AS timestamptz) IS NULL OR seen_at <= :as_of)
"""

_CREATE_ENDED: Final = """
    CREATE TEMPORARY TABLE ended ON COMMIT DROP AS
    SELECT id, key, EXISTS (SELECT FROM listed WHERE listed.key = known.key) AS changed
    FROM ({known}) AS known
    WHERE key <> ALL(CAST(:denied AS text[])) AND NOT EXISTS (
        SELECT FROM listed
        WHERE listed.key = known.key
          AND (listed.size, listed.etag, date_trunc('second', listed.last_modified))
            = (known.size, known.etag, date_trunc('second', known.last_modified))
    )
"""
"""An object that was asked for has its time to the second, and in some listings with parts of it."""

_UNLISTED: Final = """
    SELECT DISTINCT object_key
    FROM audit.evidence_observations
    WHERE gone_at IS NULL AND {listed} AND NOT EXISTS (SELECT FROM listed WHERE key = object_key)
"""

_CREATE_DOUBTFUL: Final = """
    CREATE TEMPORARY TABLE doubtful ON COMMIT DROP AS
    SELECT key, NOT changed AS lacking FROM ended WHERE NOT changed OR CAST(:as_of AS timestamptz) IS NOT NULL
    UNION ALL
    SELECT DISTINCT key, false
    FROM listed
    WHERE EXISTS (SELECT FROM audit.bucket_syncs WHERE finished_at > :as_of)
      AND NOT EXISTS (
          SELECT FROM audit.object_observations AS seen WHERE seen.key = listed.key AND seen.gone_at IS NULL
      )
"""

_COUNT_LACKING: Final = """
    SELECT count(*) FROM doubtful JOIN listed USING (key)
    WHERE lacking AND last_modified < CAST(:before AS timestamptz)
"""

_COUNT_ENDED: Final = "SELECT count(*) FILTER (WHERE changed), count(*) FILTER (WHERE NOT changed) FROM ended"

_NEW: Final = """
    SELECT DISTINCT key
    FROM listed
    WHERE version_id IS NULL AND (
        EXISTS (SELECT FROM ended WHERE ended.key = listed.key)
        OR NOT EXISTS (
            SELECT FROM audit.object_observations AS seen WHERE seen.key = listed.key AND seen.gone_at IS NULL
        )
    )
"""

_CLOSE: Final = """
    UPDATE audit.object_observations AS seen
    SET gone_at = :now, gone_how = CASE WHEN ended.changed THEN 'OVERWRITTEN' ELSE 'DELETED' END
    FROM ended
    WHERE seen.id = ended.id AND seen.gone_at IS NULL
"""

_INSERT: Final = """
    INSERT INTO audit.object_observations (key, size, etag, last_modified, version_id, seen_at)
    SELECT key, size, etag, last_modified, coalesce(version_id, version), :now
    FROM listed
    LEFT JOIN (SELECT key, max(version) AS version FROM head_versions GROUP BY key) AS head USING (key)
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
