"""Find out on DuckDB where a delivery differs from what is known, and ask the bucket where they contradict.

Of an object that is known, two hashes suffice to see that it is shown as it was. Only of the others is more read
from PostgreSQL, and only they are compared by their values.

What is known of a key stays where it was observed, or came into being, after the moment of which the delivery
tells. S3 itself says that an inventory may lack objects and that one should ask before acting on it. So every
object that an inventory says to be gone or overwritten is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.audit.bucket_listing import ASKED_AT_ONCE, ask_each
from toolkit.audit.inventory_rows import copy_rows, stream, take_rows
from toolkit.bucket.client import Area, Bucket
from toolkit.database.frames import stream_arrow
from toolkit.errors import ObjectDenied
from toolkit.progress import Progress

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MOMENT: Final = pa.timestamp("us", "UTC")
_OBJECT: Final = {"key": pa.string(), "size": pa.int64(), "etag": pa.string(), "last_modified": _MOMENT}

_OPEN: Final = pa.schema({"id": pa.int64(), **_OBJECT})
_KNOWN: Final = pa.schema([*_OPEN, ("seen_at", _MOMENT), ("gone_at", _MOMENT)])

_ASKED: Final = pa.schema(
    {
        "key": pa.string(),
        "id": pa.int64(),
        "old_size": pa.int64(),
        "old_etag": pa.string(),
        "old_modified": _MOMENT,
    }
    | {"asked": pa.bool_()}
)
_ANSWERS: Final = pa.schema({**_OBJECT, "version_id": pa.string(), "how": pa.string()})


def differ_from_inventory(
    connection: Connection, work: DuckDBPyConnection, bucket: Bucket, moment: datetime, looked: datetime | None
) -> int:
    """Make the view ``differences`` of the view ``shown``, which shows every object that there was at ``moment``.

    ``looked`` is when the bucket was last looked at: an object that is news may have been seen to be gone since.
    Returns how many objects are known.
    """
    bound = {"shows": _shows(bucket.area), "news": looked is not None and looked > moment}
    query = f"SELECT {', '.join(_OPEN.names)} FROM audit.object_observations WHERE gone_at IS NULL"
    take_rows(work, _CREATE_OPEN.format(**bound), _OPEN, stream_arrow(connection, query, _OPEN))
    known = count(work, "open")
    work.execute((_APART if known else _ALL_APART).format(**bound))
    _take_known(connection, work, "id", _UNLIKE if known else "SELECT id FROM open", moment)
    _take_unlisted(connection, work, bucket.area)
    work.execute(_CONTRADICTIONS, [moment, moment])
    work.execute(_OF_INVENTORY.format(**bound))
    return known


def gone(work: DuckDBPyConnection, found: str) -> int:
    """Return the known objects that are gone by what was ``found``: ``differences`` or ``settled``."""
    return count(work, f"{found} WHERE id IS NOT NULL AND NOT there")


def ask(work: DuckDBPyConnection, bucket: Bucket, denied: list[str], progress: Progress) -> int:
    """Make the view ``settled``, with the bucket's answers for the keys that need one; how many were asked for.

    Keys about which it refuses to answer go into ``denied``, and what was known of them stays.
    """
    asked = count(work, "differences WHERE asked")
    answers = _answers(work, bucket, asked, denied, progress) if asked else iter(())
    take_rows(work, "CREATE TABLE answers AS FROM rows", _ANSWERS, answers)
    work.execute(_SETTLED)
    return asked


def lacking(work: DuckDBPyConnection, written_before: datetime) -> int:
    """Return how many known objects the bucket has that an inventory lacks, although they were written before."""
    written = f"TIMESTAMPTZ '{written_before.isoformat()}'"
    return count(
        work, f"differences JOIN answers USING (key) WHERE NOT there AND answers.last_modified < {written}"
    )


def listed(now: datetime) -> str:
    """Return the query for the objects to take over as observations of ``now``; a key may come twice."""
    return (
        f"SELECT key, size, etag, last_modified, version_id, TIMESTAMPTZ '{now.isoformat()}' AS seen_at "
        f"FROM settled WHERE there AND {_HOLDABLE}"
    )


def unholdable(work: DuckDBPyConnection) -> tuple[str, ...]:
    """Return the keys that no text of PostgreSQL can hold, written with their escapes."""
    rows = work.execute(f"SELECT key FROM settled WHERE there AND NOT {_HOLDABLE} ORDER BY key").fetchall()
    return tuple(key.encode("unicode_escape").decode() for (key,) in rows)


def count(work: DuckDBPyConnection, rows: str) -> int:
    """Return the number of rows of a table, or of those that a condition behind its name leaves."""
    ((found,),) = work.execute(f"SELECT count(*) FROM {rows}").fetchall()  # made of constants
    return int(found)


def _take_known(
    connection: Connection, work: DuckDBPyConnection, column: str, wanted: str, since: datetime
) -> None:
    """Make the table ``known`` of the open observations that are wanted, and of all that ended ``since``."""
    likewise = f"SELECT {column} FROM audit.object_observations WHERE false"
    connection.execute(sa.text(f"CREATE TEMPORARY TABLE wanted_{column} ON COMMIT DROP AS {likewise}"))
    sum(copy_rows(connection, work, wanted, f"wanted_{column}"))
    connection.execute(sa.text(f"ANALYZE wanted_{column}"))
    query = _WANTED.format(columns=", ".join(_KNOWN.names), column=column, since=since.isoformat())
    take_rows(work, "CREATE TABLE known AS FROM rows", _KNOWN, stream_arrow(connection, query, _KNOWN))


def _take_unlisted(connection: Connection, work: DuckDBPyConnection, area: Area) -> None:
    """Make the table ``unlisted`` of the keys of records that no listing shows, which are asked for each time."""
    query = _UNLISTED.format(shows=_shows(area))
    take_rows(work, "CREATE TABLE unlisted AS FROM rows", _ASKED, stream_arrow(connection, query, _ASKED))


def _answers(
    work: DuckDBPyConnection, bucket: Bucket, asked: int, denied: list[str], progress: Progress
) -> Iterator[pa.RecordBatch]:
    progress.begin("Asking for what differs", asked, "objects")
    keeps_versions = bucket.keeps_versions()

    def answer(key: str) -> dict[str, object] | None:
        try:
            found = bucket.head(key)
        except ObjectDenied:
            denied.append(key)
            return None
        if found is not None:
            return asdict(found)
        return {"key": key, "how": bucket.how_gone(key) if keeps_versions else None}

    batches = stream(work, "SELECT key FROM differences WHERE asked", ASKED_AT_ONCE)
    for answers in ask_each(answer, (batch.column(0).to_pylist() for batch in batches)):
        yield pa.RecordBatch.from_pylist([each for each in answers if each is not None], _ANSWERS)
        progress.advance(len(answers))
    progress.end()


def _shows(area: Area) -> str:
    """Return the condition in DuckDB that a listing of the area shows a key."""

    def within(prefixes: tuple[str, ...], otherwise: str) -> str:
        quoted = (each.replace("'", "''") for each in prefixes)
        return " OR ".join(f"starts_with(key, '{each}')" for each in quoted) or otherwise

    return f"(({within(area.prefixes, 'true')}) AND NOT ({within(area.ignored, 'false')}))"


_HOLDABLE: Final = "NOT contains(key, chr(0))"

_OTHER: Final = (
    "(shown.size, shown.etag, shown.last_modified) IS DISTINCT FROM (open.size, open.etag, open.last_modified)"
)

_HASHES: Final = "hash(key) AS name, hash(size, etag, last_modified) AS state"

_CREATE_OPEN: Final = f"CREATE TABLE open AS SELECT id, {_HASHES} FROM rows WHERE {{shows}}"

_ALL_APART: Final = "CREATE VIEW apart AS SELECT * FROM shown WHERE {shows}"

_APART: Final = f"""
    CREATE TABLE apart AS
    SELECT shown.*, open.id
    FROM open
    FULL JOIN (SELECT *, {_HASHES} FROM shown WHERE {{shows}}) AS shown
        ON shown.name = open.name AND shown.state = open.state
    WHERE shown.key IS NULL OR open.id IS NULL
"""

_UNLIKE: Final = """
    SELECT id FROM apart WHERE key IS NULL
    UNION
    SELECT id FROM open WHERE name IN (SELECT name FROM apart WHERE key IS NOT NULL)
"""

_WANTED: Final = """
    SELECT {columns} FROM audit.object_observations JOIN wanted_{column} USING ({column}) WHERE gone_at IS NULL
    UNION ALL
    SELECT {columns} FROM audit.object_observations WHERE gone_at > '{since}'
"""

_UNLISTED: Final = """
    SELECT DISTINCT key, open.id, size AS old_size, etag AS old_etag, last_modified AS old_modified, true AS asked
    FROM (SELECT object_key AS key FROM audit.evidence_observations WHERE gone_at IS NULL) AS record
    LEFT JOIN (SELECT * FROM audit.object_observations WHERE gone_at IS NULL) AS open USING (key)
    WHERE NOT {shows}
"""

_CONTRADICTIONS: Final = f"""
    CREATE TABLE contradictions AS
    SELECT open.key, open.id, open.size AS old_size, open.etag AS old_etag, open.last_modified AS old_modified,
           shown.size, shown.etag, shown.last_modified, shown.version_id, shown.key IS NOT NULL AS there,
           true AS asked
    FROM (SELECT * FROM known WHERE gone_at IS NULL) AS open
    LEFT JOIN apart AS shown ON shown.key = open.key
    WHERE {_OTHER}
      AND open.seen_at <= ?
      AND open.last_modified <= ?
      AND open.key NOT IN (SELECT key FROM known WHERE gone_at IS NOT NULL)
"""

_OF_INVENTORY: Final = """
    CREATE VIEW differences AS
    FROM contradictions
    UNION ALL BY NAME
    SELECT key, size, etag, last_modified, version_id, true AS there, {news} AS asked
    FROM apart
    WHERE key IS NOT NULL AND key NOT IN (SELECT key FROM known)
    UNION ALL BY NAME
    FROM unlisted
"""

_SETTLED: Final = """
    CREATE VIEW settled AS
    SELECT key, id, size, etag, last_modified, version_id, there, NULL::VARCHAR AS how
    FROM differences
    WHERE NOT asked
    UNION ALL
    SELECT asked.key, asked.id, now.size, now.etag, now.last_modified, now.version_id,
           now.size IS NOT NULL AS there, now.how
    FROM differences AS asked
    JOIN answers AS now ON now.key = asked.key
    WHERE asked.asked
      AND (asked.id IS NOT NULL OR now.size IS NOT NULL)
      AND (now.size, now.etag, date_trunc('second', now.last_modified))
          IS DISTINCT FROM (asked.old_size, asked.old_etag, date_trunc('second', asked.old_modified))
"""
"""An answer tells the time of an object to the second."""
