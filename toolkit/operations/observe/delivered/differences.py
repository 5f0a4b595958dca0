"""Find out on DuckDB where a delivery differs from what is known, and ask the bucket where they contradict.

What is known of a key stays where it was observed, or came into being, after the moment of which the delivery
tells. S3 itself says that an inventory may lack objects and that one should ask before acting on it. So every
object that an inventory says to be gone or overwritten is asked for; an event of a journal stands by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlalchemy import Connection

from toolkit.domain.contents import GoneHow
from toolkit.operations.observe.bucket_sync.listing import ASKERS
from toolkit.operations.progress import Progress
from toolkit.storage.bucket import Area, Bucket
from toolkit.storage.frames import streamed

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MOMENT: Final = pa.timestamp("us", "UTC")
_OBJECT: Final = {"key": pa.string(), "size": pa.int64(), "etag": pa.string(), "last_modified": _MOMENT}

_KNOWN: Final = pa.schema({"id": pa.int64(), **_OBJECT, "seen_at": _MOMENT, "gone_at": _MOMENT})

_ANSWERS: Final = pa.schema({**_OBJECT, "version_id": pa.string(), "how": pa.string()})

_ASKED_AT_ONCE: Final = 1000


def take_known(connection: Connection, work: DuckDBPyConnection, area: Area, since: datetime) -> int:
    """Copy what is known of the area to the table ``known``, and what ended after ``since``; how many are open."""
    query = f"SELECT {', '.join(_KNOWN.names)} FROM audit.object_observations "  # noqa: S608
    query += f"WHERE gone_at IS NULL OR gone_at > '{since.isoformat()}'"
    shown, bound = _shows(area)
    with streamed(connection, query, _KNOWN) as reader:
        work.register("reader", reader)
        work.execute(f"CREATE TABLE known AS SELECT * FROM reader WHERE {shown}", bound)  # noqa: S608
        work.unregister("reader")
    return _count(work, "known WHERE gone_at IS NULL")


def differ_from_inventory(work: DuckDBPyConnection, area: Area, moment: datetime, looked: datetime | None) -> None:
    """Make the table ``differences`` of the view ``shown``, which shows every object that there was at ``moment``.

    ``looked`` is when the bucket was last looked at: an object that is news may have been seen to be gone since.
    """
    shown, bound = _shows(area)
    news = looked is not None and looked > moment
    work.execute(_OF_INVENTORY.format(shown=shown), [news, *bound, moment, moment, moment])


def differ_from_journal(work: DuckDBPyConnection, area: Area, looked: datetime | None) -> None:
    """Make the table ``differences`` of the table ``states``, which tells of some keys; ``looked`` as above."""
    shown, bound = _shows(area)
    work.execute(_OF_JOURNAL.format(shown=shown), [looked, *bound])


def gone(work: DuckDBPyConnection, found: str) -> int:
    """Return the known objects that are gone by what was ``found``: ``differences`` or ``settled``."""
    return _count(work, f"{found} WHERE id IS NOT NULL AND NOT there")


def ask(work: DuckDBPyConnection, bucket: Bucket, progress: Progress) -> int:
    """Make the view ``settled``, with the bucket's answers for the keys that need one; how many were asked for."""
    asked = _count(work, "differences WHERE asked")
    work.register("no_answers", _ANSWERS.empty_table())
    work.execute("CREATE TABLE answers AS SELECT * FROM no_answers")
    work.unregister("no_answers")
    if asked:
        progress.begin("Asking for what differs", asked, "objects")
        for told in _answers(work, bucket):
            work.register("told", told)
            work.execute("INSERT INTO answers SELECT * FROM told")
            work.unregister("told")
            progress.advance(told.num_rows)
        progress.end()
    work.execute(_SETTLED)
    return asked


def stream(work: DuckDBPyConnection, query: str, rows: int = 100_000) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a query, some at a time, while the connection stays free."""
    yield from work.cursor().sql(query).to_arrow_reader(rows)


def listed(work: DuckDBPyConnection, now: datetime) -> Iterator[pa.RecordBatch]:
    """Yield the objects to take over as observations of ``now``, each key once, in an order that indexes like."""
    query = (
        f"SELECT DISTINCT ON (key) key, size, etag, last_modified, version_id, TIMESTAMPTZ '{now.isoformat()}' "  # noqa: S608
        f"FROM settled WHERE there AND {_HOLDABLE} ORDER BY key"
    )
    yield from stream(work, query)


def ended(work: DuckDBPyConnection) -> Iterator[pa.RecordBatch]:
    """Yield the ids of known objects that ended, and how each did."""
    how = f"CASE WHEN there THEN '{GoneHow.OVERWRITTEN}' ELSE coalesce(how, '{GoneHow.DELETED}') END"
    yield from stream(work, f"SELECT id, {how} FROM settled WHERE id IS NOT NULL")  # noqa: S608


def unholdable(work: DuckDBPyConnection) -> tuple[str, ...]:
    """Return the keys that no text of PostgreSQL can hold, written with their escapes."""
    rows = work.execute(f"SELECT key FROM settled WHERE there AND NOT {_HOLDABLE} ORDER BY key").fetchall()  # noqa: S608
    return tuple(key.encode("unicode_escape").decode() for (key,) in rows)


def _answers(work: DuckDBPyConnection, bucket: Bucket) -> Iterator[pa.Table]:
    keys = stream(work, "SELECT key FROM differences WHERE asked", _ASKED_AT_ONCE)
    keeps_versions = bucket.keeps_versions()

    def answer(key: str) -> tuple[object, ...]:
        found = bucket.head(key)
        if found is not None:
            return key, found.size, found.etag, found.last_modified, found.version_id, None
        how = bucket.how_gone(key) if keeps_versions else None
        return key, None, None, None, None, None if how is None else str(how)

    with ThreadPoolExecutor(ASKERS, thread_name_prefix="asking") as threads:
        for batch in keys:
            columns = zip(*threads.map(answer, batch.column(0).to_pylist()), strict=True)
            yield pa.table(
                [pa.array(column, field.type) for column, field in zip(columns, _ANSWERS, strict=True)], _ANSWERS
            )


def _shows(area: Area) -> tuple[str, list[str]]:
    """Return the condition in DuckDB that a listing of the area shows a key, and what it binds."""
    wanted = " OR ".join("starts_with(key, ?)" for _ in area.prefixes) or "true"
    ignored = " OR ".join("starts_with(key, ?)" for _ in area.ignored) or "false"
    return f"(({wanted}) AND NOT ({ignored}))", [*area.prefixes, *area.ignored]


def _count(work: DuckDBPyConnection, rows: str) -> int:
    ((count,),) = work.execute(f"SELECT count(*) FROM {rows}").fetchall()  # noqa: S608  # made of constants
    return int(count)


_HOLDABLE: Final = "NOT contains(key, chr(0))"

_OTHER: Final = (
    "(shown.size, shown.etag, shown.last_modified) IS DISTINCT FROM (open.size, open.etag, open.last_modified)"
)

_OF_INVENTORY: Final = f"""
    CREATE TABLE differences AS
    SELECT coalesce(shown.key, open.key) AS key, open.id, open.size AS old_size, open.etag AS old_etag,
           open.last_modified AS old_modified, shown.size, shown.etag, shown.last_modified, shown.version_id,
           shown.key IS NOT NULL AS there, open.id IS NOT NULL OR ? AS asked
    FROM (SELECT * FROM known WHERE gone_at IS NULL) AS open
    FULL JOIN (SELECT * FROM shown WHERE {{shown}}) AS shown ON shown.key = open.key
    WHERE {_OTHER}
      AND (open.id IS NULL OR (open.seen_at <= ? AND open.last_modified <= ?))
      AND coalesce(shown.key, open.key) NOT IN (SELECT key FROM known WHERE gone_at > ?)
"""  # noqa: S608

_OF_JOURNAL: Final = f"""
    CREATE TABLE differences AS
    SELECT shown.key, open.id, open.size AS old_size, open.etag AS old_etag, open.last_modified AS old_modified,
           shown.size, shown.etag, shown.last_modified, shown.version_id, shown.there,
           shown.there IS NULL OR (open.id IS NULL AND coalesce(shown.at <= ?, false)) AS asked
    FROM (SELECT * FROM states WHERE {{shown}}) AS shown
    LEFT JOIN (SELECT * FROM known WHERE gone_at IS NULL) AS open ON open.key = shown.key
    WHERE (shown.there IS NULL OR (shown.there AND {_OTHER}) OR (NOT shown.there AND open.id IS NOT NULL))
      AND (open.id IS NULL OR (open.seen_at <= shown.at AND open.last_modified <= shown.at))
      AND NOT EXISTS (SELECT 1 FROM known AS closed WHERE closed.key = shown.key AND closed.gone_at > shown.at)
"""  # noqa: S608

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
