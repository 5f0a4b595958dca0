"""Read what was observed by a moment, once, in one repeatable-read transaction, into an audit's inputs.

Every table is streamed as Arrow into DuckDB's working file, several at once under one exported snapshot, and the
largest in ranges. From there the inputs are written as Parquet, in an order, so that two readings of the same past
moment give the same bytes. Keys of objects, which may hold names of people, stay in the working file.
"""

# statements are made of constants and of our own names

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql

from toolkit.audit.duckdb_session import copy_to
from toolkit.audit.judge import OBJECTS, RECORDS, SALES
from toolkit.contract.contents import Coverage
from toolkit.database.connection import Database
from toolkit.database.tables import (
    content_checks,
    evidence_observations,
    evidence_requests,
    finding_observations,
    object_observations,
    sale_observations,
    verification_failures,
    withdrawals,
)
from toolkit.database.validity import held, until
from toolkit.errors import DatabaseError, DatabaseUnavailable

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_POSTGRESQL: Final[sa.Dialect] = postgresql.dialect()  # type: ignore[no-untyped-call]

STREAMS: Final = 3
"""Tables, or ranges of one, that are read at the same time."""

RANGE: Final = 5_000_000
"""Rows of a table, by PostgreSQL's estimate, above which it is read in several ranges of its numbers."""

_ROWS_IN_GROUP: Final = 1 << 23
"""Bytes of a batch that the driver hands over."""


@dataclass(frozen=True)
class Observed:
    """The working tables of an audit: what had been observed by its moment.

    ``sale``, ``record``, ``object``, ``ended`` (objects that are gone), ``look``, ``failure``, ``withdrawal``,
    ``request`` (who asked for a record), ``episode`` (of findings), ``gap`` (in which a sale was gone), and
    ``seen``: objects with what was found in them.
    """

    session: DuckDBPyConnection
    moment: datetime


def extract(database: Database, connection: Connection, moment: datetime, session: DuckDBPyConnection) -> Observed:
    """Read everything that had been observed by ``moment``, as the transaction of ``connection`` sees it.

    Raises:
        DatabaseError: the database refused a statement, or holds a value that cannot be read.
        DatabaseUnavailable: the connection broke.
    """
    snapshot: str = connection.scalar(sa.text("SELECT pg_export_snapshot()"))
    reads = [
        (name, part) for name, query, numbered in _queries(moment) for part in _ranges(connection, query, numbered)
    ]
    for name, query, _ in _queries(moment):
        session.execute(_empty_table(name, query))
    with ThreadPoolExecutor(STREAMS, thread_name_prefix="extract") as threads:
        read = [threads.submit(_stream, database, snapshot, session.cursor(), *each) for each in reads]
        for each in read:
            each.result()
    session.execute(_SEEN)
    return Observed(session, moment)


def write_inputs(observed: Observed, folder: Path) -> None:
    """Write the inputs of the folder: ``sales.parquet``, ``records.parquet`` and ``objects.parquet``."""
    for name, query in (("sales", _SALES), ("records", _RECORDS), ("objects", _OBJECTS)):
        observed.session.execute(copy_to(query, folder / f"{name}.parquet"))


def _queries(moment: datetime) -> Iterator[tuple[str, sa.Select[Any], sa.Column[Any] | None]]:
    """Yield the name of each working table, what is read into it, and the number that ranges are made of."""
    sale, record, seen, look = sale_observations, evidence_observations, object_observations, content_checks
    found = ("media_type", "sha256", "seconds", "pages", "normal_form", "active_parts", "stored_type")
    how = ("speech_seconds", "depth", "readers", "look")
    of_looks = ("id", "observation_id", "kind", "problem", "checked_at", *found, *how)
    of_objects = seen.c["id", "key", "size", "etag", "last_modified", "seen_at"]
    yield "sale", sa.select(*(sale.c[name] for name in SALES.names)).where(held(sale, moment)), sale.c.id
    of_records = record.c["evidence_id", "sale_id", "evidence_type", "type", "requested_at", "expires_at"]
    query = sa.select(*of_records, record.c.object_key).where(held(record, moment))
    yield "record", query, record.c.id
    yield "object", sa.select(*of_objects).where(held(seen, moment)), seen.c.id
    yield "ended", sa.select(*of_objects).where(until(seen.c.gone_at, moment)), None
    yield "look", sa.select(*look.c[of_looks]).where(until(look.c.checked_at, moment)), look.c.id
    failed = verification_failures.c
    failures: sa.Select[Any] = sa.select(failed["observation_id"]).where(until(failed.failed_at, moment))
    yield "failure", failures, None
    yield "withdrawal", sa.select(withdrawals).where(until(withdrawals.c.withdrawn_at, moment)), None
    asked = evidence_requests.c
    yield "request", sa.select(asked.evidence_id, asked.partner), None
    finding = finding_observations
    of_findings = finding.c["finding_id", "code", "sale_id", "partner", "utility_group", "seen_at", "gone_at"]
    yield "episode", sa.select(*of_findings).where(until(finding.c.seen_at, moment)), finding.c.id
    came, gone = sale.alias("came"), sale.alias("gone")
    again = sa.select(came.c.id).where(came.c.sale_id == gone.c.sale_id, came.c.seen_at == gone.c.gone_at)
    back_at = sa.select(sa.func.min(came.c.seen_at)).where(
        came.c.sale_id == gone.c.sale_id, came.c.seen_at > gone.c.gone_at
    )
    gap = gone.c["sale_id", "gone_at"]
    gaps: sa.Select[Any] = sa.select(*gap, back_at.scalar_subquery().label("back_at"))
    yield "gap", gaps.where(until(gone.c.gone_at, moment), ~again.exists()), None


def _ranges(
    connection: Connection, query: sa.Select[Any], number: sa.Column[Any] | None
) -> Iterator[sa.Select[Any]]:
    """Yield the query, in ranges of ``number`` where its table is large."""
    if number is None:
        yield query
        return
    table = f"{number.table.schema}.{number.table.name}"
    rows = connection.scalar(sa.text(_ROWS), {"relation": table}) or 0
    parts = min(int(rows) // RANGE + 1, 64)
    first, last = connection.execute(sa.select(sa.func.min(number), sa.func.max(number))).one()
    if parts == 1 or first is None:
        yield query
        return
    step = (last - first) // parts + 1
    for place in range(parts):
        start = first + place * step
        yield query.where(number >= start, number < start + step)


_ROWS: Final = """
    SELECT sum(greatest(reltuples, 0)) FROM pg_class
    WHERE oid = CAST(:relation AS regclass)
       OR oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = CAST(:relation AS regclass))
"""


def _stream(
    database: Database, snapshot: str, session: DuckDBPyConnection, name: str, query: sa.Select[Any]
) -> None:
    """Read a query into a working table, by a connection of its own that sees the exported snapshot."""
    with _connected(database) as cursor, session:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        cursor.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
        cursor.execute("SET LOCAL enable_indexscan = off")
        cursor.execute(literal(query))
        rows = cursor.fetch_record_batch()  # noqa: F841  # DuckDB finds it by its name
        session.execute(f"INSERT INTO {name} SELECT * FROM rows")


@contextmanager
def _connected(database: Database) -> Iterator[Any]:
    """Open a connection of the Arrow driver to the database.

    Raises:
        DatabaseError: it refused a statement.
        DatabaseUnavailable: the connection broke.
    """
    import adbc_driver_postgresql.dbapi as adbc

    _, given = database.engine.dialect.create_connect_args(database.engine.url)
    told = {"application_name": "toolkit", "client_encoding": "UTF8", "connect_timeout": 10, **given}
    told.pop("context", None)  # of psycopg
    options = {"adbc.postgresql.batch_size_hint_bytes": str(_ROWS_IN_GROUP)}
    try:
        with (
            adbc.connect(psycopg.conninfo.make_conninfo(**told)) as connection,
            connection.cursor(adbc_stmt_kwargs=options) as cursor,
        ):
            yield cursor
    except adbc.OperationalError as error:
        raise DatabaseUnavailable("The database at {} stopped answering.", database.address) from error
    except adbc.Error as error:
        state = getattr(error, "sqlstate", None) or "no code"
        raise DatabaseError("The database at {} refused to be read ({}).", database.address, state) from None


def literal(query: sa.Select[Any]) -> str:
    """Return a query with its values written out, which are moments and numbers of our own."""
    return str(query.compile(dialect=_POSTGRESQL, compile_kwargs={"literal_binds": True}))


def _empty_table(name: str, query: sa.Select[Any]) -> str:
    columns = (f"{column.name} {_type(column.type)}" for column in query.selected_columns)
    return f"CREATE OR REPLACE TABLE {name} ({', '.join(columns)})"


def _type(kind: sa.types.TypeEngine[Any]) -> str:
    """Return the type of DuckDB for one of PostgreSQL."""
    return next(name for base, name in _TYPES.items() if isinstance(kind, base))


_TYPES: Final[dict[type[Any], str]] = {
    sa.ARRAY: "VARCHAR[]",
    sa.Text: "VARCHAR",
    sa.Uuid: "UUID",
    sa.Boolean: "BOOLEAN",
    sa.BigInteger: "BIGINT",
    sa.Integer: "INTEGER",
    sa.Double: "DOUBLE",
    sa.DateTime: "TIMESTAMPTZ",
}

_SEEN: Final = f"""
    CREATE OR REPLACE TABLE seen AS
    WITH known AS (
        SELECT observation_id, max(id) AS latest, bool_or(sha256 IS NOT NULL) AS verified,
               min(id) FILTER (problem IS NOT NULL AND id > sound) AS first_fault
        FROM (
            SELECT *, coalesce(max(id) FILTER (problem IS NULL) OVER (PARTITION BY observation_id), 0) AS sound
            FROM look
        )
        GROUP BY observation_id
    )
    SELECT object.id AS object, object.key, object.size, object.etag, object.seen_at, object.last_modified,
           latest.kind, latest.media_type, fault.problem AS fault, fault.checked_at AS fault_since,
           CASE WHEN verified THEN '{Coverage.VERIFIED}'
                WHEN failure.observation_id IS NOT NULL THEN '{Coverage.UNREADABLE}'
                WHEN latest.id IS NOT NULL THEN '{Coverage.FIRST_BYTES}'
                ELSE '{Coverage.NEVER}' END AS coverage,
           latest.checked_at, latest.sha256, latest.seconds, latest.pages, latest.normal_form,
           latest.active_parts, latest.stored_type, latest.speech_seconds, latest.depth,
           array_to_string(latest.readers, '|') AS readers,
           CASE WHEN latest.id IS NOT NULL THEN coalesce(latest.look, 1) END AS look
    FROM object
    LEFT JOIN known ON known.observation_id = object.id
    LEFT JOIN look AS latest ON latest.id = known.latest
    LEFT JOIN look AS fault ON fault.id = known.first_fault
    LEFT JOIN failure ON failure.observation_id = object.id
"""
"""The objects with what was found in them: the latest look decides, and the first of its faults has the time."""


def _columns(names: tuple[str, ...], **written: str) -> str:
    return ", ".join(f"{written[name]} AS {name}" if name in written else name for name in names)


_SALES: Final = f"""
    SELECT {_columns(SALES.names, client_id="CAST(client_id AS VARCHAR)")} FROM sale ORDER BY sale_id
"""

_RECORDS: Final = f"""
    SELECT {
    _columns(
        RECORDS.names,
        evidence_id="CAST(record.evidence_id AS VARCHAR)",
        sale_id="record.sale_id",
        evidence_type="record.evidence_type",
        declared_type="record.type",
        vanished="seen.object IS NULL AND vanished.key IS NOT NULL",
        object="seen.object",
    )
}
    FROM record
    LEFT JOIN seen ON seen.key = record.object_key
    LEFT JOIN (SELECT DISTINCT key FROM ended) AS vanished ON vanished.key = record.object_key
    LEFT JOIN (SELECT evidence_id, withdrawn_at FROM withdrawal) AS taken USING (evidence_id)
    ORDER BY sale_id, requested_at, evidence_id
"""

_OBJECTS: Final = f"""
    SELECT {_columns(OBJECTS.names, written_at="last_modified")} FROM seen ORDER BY object
"""
