"""Read what was observed by a moment, once, in one repeatable-read transaction, into an audit's inputs.

Every table is streamed as Arrow into DuckDB, several at once under one exported snapshot, and the largest in
ranges. From there the inputs are written as Parquet, in the order of their observations, so that two readings of
the same past moment give the same bytes. Keys of objects, which may hold names of people, stay in the working
tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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

from toolkit.audit.duckdb_session import DEFAULT_MEMORY, copy_to, duckdb_session, files_alone
from toolkit.audit.folder import INPUTS, Audit
from toolkit.audit.judge import OBJECTS, RECORDS, SALES
from toolkit.audit.reviews import REVIEWS, answers_until, turns_until
from toolkit.contract.contents import Coverage
from toolkit.database.connection import Database
from toolkit.database.errors import as_psycopg
from toolkit.database.observations import stamped_by, valid_at
from toolkit.database.tables import (
    content_checks,
    evidence_observations,
    evidence_requests,
    finding_answers,
    finding_observations,
    object_observations,
    partner_notices,
    sale_observations,
    told_findings,
    verification_failures,
    withdrawals,
)
from toolkit.errors import InvalidInput

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_POSTGRESQL: Final[sa.Dialect] = postgresql.dialect()  # type: ignore[no-untyped-call]

STREAMS: Final = 3  # tables, or ranges of one, that are read at the same time

RANGE: Final = 5_000_000
"""Rows of a table, by PostgreSQL's estimate, above which it is read in several ranges of its numbers."""

_ROWS_IN_GROUP: Final = 1 << 23  # bytes of a batch that the driver hands over


@dataclass(frozen=True)
class Observed:
    """The working tables of an audit: what had been observed by its moment.

    ``sale``; ``record``, with its withdrawal and its file; ``seen``, the objects with what was found in them;
    ``version``, the objects that lay under a key where one ended; ``request``, who asked for a record;
    ``episode``, of findings; ``gap``, in which a sale was gone; ``told`` and ``answered``, when a partner was told
    of a finding, and when and what it answered; ``review``, what people answered about files.
    """

    session: DuckDBPyConnection
    moment: datetime

    def shrink(self) -> None:
        """Drop what nobody needs after the inputs are written and findings about files are found."""
        for name in ("record", "seen", "version", "request"):
            self.session.execute(f"DROP TABLE {name}")


@dataclass(frozen=True)
class _WorkingTable:
    """A query of PostgreSQL whose rows become a working table, in ranges of ``number`` where there are many."""

    name: str
    query: sa.Select[Any] | sa.TextualSelect
    number: sa.Column[Any] | None = None


def extract(database: Database, connection: Connection, moment: datetime, session: DuckDBPyConnection) -> Observed:
    """Read everything that had been observed by ``moment``, as the transaction of ``connection`` sees it.

    Raises:
        DatabaseError: the database refused a statement, or holds a value that cannot be read.
        DatabaseUnavailable: the connection broke.
    """
    session.execute("SET preserve_insertion_order = false")  # what needs an order names it
    _read(database, connection, session, _readings(moment))
    for statement, used in _JOINED.items():
        session.execute(statement)
        for name in used:
            session.execute(f"DROP TABLE {name}")
    return Observed(session, moment)


def extract_history(
    database: Database, connection: Connection, moment: datetime, session: DuckDBPyConnection
) -> Observed:
    """Read ``sale``, ``episode`` and ``gap`` alone, with what ``extract`` raises."""
    _read(database, connection, session, [each for each in _readings(moment) if each.name in _OF_HISTORY])
    return Observed(session, moment)


_OF_HISTORY: Final = ("sale", "episode", "gap")


def write_inputs(observed: Observed, folder: Path) -> None:
    """Write the inputs of the folder: ``sales.parquet``, ``records.parquet`` and ``objects.parquet``."""
    for name, query in (("sales", _SALES), ("records", _RECORDS), ("objects", _OBJECTS)):
        observed.session.execute(copy_to(query, folder / f"{name}.parquet"))


_KEYS: Final = {"sales": "sale_id", "records": "evidence_id", "objects": "object"}


def changed_inputs(
    database: Database, audit: Audit, scratch: Path, memory: str = DEFAULT_MEMORY
) -> list[tuple[str, str, str]]:
    """Extract the inputs of an audit again, into the empty folder ``scratch``, and compare.

    Returns:
        The table and the key of each sale, record and object that differs, and whether it is ``changed``,
        ``added`` or ``missing`` in the database of today.

    Raises:
        InvalidInput: retention removed the inputs of the audit.
        UnreadableFile: a file of the audit is not what was written.
        DatabaseError: the database could not be asked.
    """
    audit.verify()
    again = scratch / "again"
    again.mkdir()
    with database.snapshot() as snapshot, duckdb_session(scratch, memory) as session:
        write_inputs(extract(database, snapshot, audit.facts.as_of, session), again)
        return [each for table in INPUTS for each in _changed(session, audit, table, again)]


def _changed(session: Any, audit: Audit, table: str, again: Path) -> list[tuple[str, str, str]]:
    if not any(name.startswith(f"{audit.name}/{table}.parquet") for name in audit.store.names()):
        raise InvalidInput("The inputs of the audit {} were removed by retention.", audit.folder)
    session.register("then", audit.table(table))
    session.execute(
        f"CREATE OR REPLACE TEMP VIEW today AS FROM read_parquet({files_alone([again / f'{table}.parquet'])})"
    )
    rows = session.execute(_DIFFERENCES.format(key=_KEYS[table])).fetchall()
    return [(table, str(key), how) for key, how in rows]


def _read(
    database: Database, connection: Connection, session: DuckDBPyConnection, readings: Sequence[_WorkingTable]
) -> None:
    """Make these working tables, by several connections that see what ``connection`` does."""
    snapshot: str = connection.scalar(sa.text("SELECT pg_export_snapshot()"))
    for each in readings:
        session.execute(_empty_table(each))
    reads = [(each.name, part) for each in readings for part in _ranges(connection, each)]
    with (
        _connected(database, connection) as server,
        ThreadPoolExecutor(STREAMS, thread_name_prefix="extract") as threads,
    ):
        streams = [threads.submit(_stream, server, snapshot, session.cursor(), reads) for _ in range(STREAMS)]
        for stream in streams:
            stream.result()


def _readings(moment: datetime) -> list[_WorkingTable]:
    """Return what is read, the largest first."""
    sale, record, seen, look = sale_observations, evidence_observations, object_observations, content_checks
    found = ("media_type", "sha256", "seconds", "pages", "normal_form", "active_parts", "stored_type")
    how = ("speech_seconds", "depth", "readers", "look")
    of_looks = look.c["id", "observation_id", "kind", "problem", "checked_at", *found, *how]
    of_objects = seen.c["id", "key", "size", "etag", "last_modified", "seen_at"]
    of_records = record.c[
        "evidence_id", "sale_id", "evidence_type", "type", "object_key", "requested_at", "expires_at"
    ]
    records = sa.select(record.c.id.label("record"), *of_records).where(valid_at(record, moment))
    sales = sa.select(sale.c.id.label("number"), *sale.c[tuple(SALES.names)]).where(valid_at(sale, moment))
    failed, asked, finding = verification_failures.c, evidence_requests.c, finding_observations
    of_findings = finding.c["finding_id", "code", "sale_id", "partner", "utility_group", "seen_at", "gone_at"]
    came, gone = sale.alias("came"), sale.alias("gone")
    again = sa.select(came.c.id).where(came.c.sale_id == gone.c.sale_id, came.c.seen_at == gone.c.gone_at)
    back_at = sa.select(sa.func.min(came.c.seen_at)).where(
        came.c.sale_id == gone.c.sale_id, came.c.seen_at > gone.c.gone_at
    )
    gaps: sa.Select[Any] = sa.select(*gone.c["sale_id", "gone_at"], back_at.scalar_subquery().label("back_at"))
    notice, told, answer = partner_notices.c, told_findings, finding_answers.c
    of_notices = sa.select(told.c.finding_id, notice.delivered_at).join(
        partner_notices, notice.id == told.c.notice_id
    )
    return [
        _WorkingTable("look", sa.select(*of_looks).where(stamped_by(look.c.checked_at, moment)), look.c.id),
        _WorkingTable("object", sa.select(*of_objects).where(valid_at(seen, moment)), seen.c.id),
        _WorkingTable("given", records, record.c.id),
        _WorkingTable("sale", sales, sale.c.id),
        _WorkingTable(
            "episode", sa.select(*of_findings).where(stamped_by(finding.c.seen_at, moment)), finding.c.id
        ),
        _WorkingTable("ended", sa.select(*of_objects).where(stamped_by(seen.c.gone_at, moment))),
        _WorkingTable("failure", sa.select(failed["observation_id"]).where(stamped_by(failed.failed_at, moment))),
        _WorkingTable("withdrawal", sa.select(withdrawals).where(stamped_by(withdrawals.c.withdrawn_at, moment))),
        _WorkingTable("request", sa.select(asked.evidence_id, asked.partner)),
        _WorkingTable("told", of_notices.where(stamped_by(notice.delivered_at, moment))),
        _WorkingTable(
            "answered",
            sa.select(answer.finding_id, answer.answer, answer.until, answer.answered_at).where(
                stamped_by(answer.answered_at, moment)
            ),
        ),
        _WorkingTable("turned", turns_until(moment)),
        _WorkingTable("given_answer", answers_until(moment)),
        _WorkingTable("gap", gaps.where(stamped_by(gone.c.gone_at, moment), ~again.exists())),
    ]


def _ranges(connection: Connection, reading: _WorkingTable) -> Iterator[sa.Select[Any] | sa.TextualSelect]:
    """Yield the query, in ranges of its number where its table is large."""
    query, number = reading.query, reading.number
    if number is None or not isinstance(query, sa.Select):
        yield query
        return
    table = f"{number.table.schema}.{number.table.name}"
    rows = connection.scalar(sa.text(_ROWS), {"relation": table}) or 0
    parts = min(int(rows) // RANGE + 1, 64)
    if parts == 1:
        yield query
        return
    first, last = connection.execute(sa.select(sa.func.min(number), sa.func.max(number))).one()
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
    server: Any,
    snapshot: str,
    session: DuckDBPyConnection,
    reads: list[tuple[str, sa.Select[Any] | sa.TextualSelect]],
) -> None:
    """Take one read after another off the list, by a connection of its own that sees the exported snapshot."""
    options = {"adbc.postgresql.batch_size_hint_bytes": str(_ROWS_IN_GROUP)}
    with server.adbc_clone() as connection, connection.cursor(adbc_stmt_kwargs=options) as cursor, session:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        cursor.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
        cursor.execute("SET LOCAL enable_indexscan = off")
        while reads:
            try:
                name, query = reads.pop(0)
            except IndexError:  # another stream took the last one
                return
            cursor.execute(literal(query))
            rows = cursor.fetch_record_batch()  # noqa: F841  # DuckDB finds it by its name
            session.execute(f"INSERT INTO {name} SELECT * FROM rows")


@contextmanager
def _connected(database: Database, beside: Connection) -> Iterator[Any]:
    """Open a connection of the Arrow driver to the database; clones of it open within a few milliseconds.

    Raises:
        psycopg.Error: it refused a statement, or the connection broke.
    """
    import adbc_driver_postgresql.dbapi as adbc

    _, given = database.engine.dialect.create_connect_args(database.engine.url)
    told = {"application_name": "toolkit", "client_encoding": "UTF8", "connect_timeout": 10, **given}
    told.pop("context", None)  # of psycopg
    if beside.scalar(sa.text("SELECT reset_val FROM pg_settings WHERE name = 'quote_all_identifiers'")) == "on":
        # The driver knows types by the names of their functions. Not every pooler lets options pass.
        told["options"] = f"{told.get('options', '')} -cquote_all_identifiers=off"
    try:
        with adbc.connect(psycopg.conninfo.make_conninfo(**told)) as connection:
            yield connection
    except adbc.Error as error:  # the transaction around this translates it
        raise as_psycopg(error.sqlstate, str(error)) from None


def literal(query: sa.Select[Any] | sa.TextualSelect) -> str:
    """Return a query with its values written out, which are moments and numbers of our own."""
    return str(query.compile(dialect=_POSTGRESQL, compile_kwargs={"literal_binds": True}))


def _empty_table(reading: _WorkingTable) -> str:
    columns = (
        f"{column.name} {next(name for base, name in _TYPES.items() if isinstance(column.type, base))}"
        for column in reading.query.selected_columns
    )
    return f"CREATE OR REPLACE TABLE {reading.name} ({', '.join(columns)})"


_TYPES: Final[dict[type[Any], str]] = {
    sa.ARRAY: "VARCHAR[]",
    sa.Text: "VARCHAR",
    sa.Uuid: "UUID",
    sa.Boolean: "BOOLEAN",
    sa.BigInteger: "BIGINT",
    sa.Integer: "INTEGER",
    sa.Double: "DOUBLE",
    sa.DateTime: "TIMESTAMPTZ",
    sa.Date: "DATE",
}
"""The type of DuckDB for each of PostgreSQL."""

_SEEN: Final = f"""
    CREATE OR REPLACE TABLE seen AS
    WITH several AS (SELECT observation_id FROM look GROUP BY ALL HAVING count(*) > 1),
    known AS (
        SELECT observation_id, max(id) AS latest, bool_or(sha256 IS NOT NULL) AS verified,
               min(id) FILTER (problem IS NOT NULL AND id > sound) AS first_fault
        FROM (
            SELECT *, coalesce(max(id) FILTER (problem IS NULL) OVER (PARTITION BY observation_id), 0) AS sound
            FROM look SEMI JOIN several USING (observation_id)
        )
        GROUP BY observation_id
    ),
    looked AS (
        SELECT look.* EXCLUDE (problem, id), problem AS fault,
               CASE WHEN problem IS NOT NULL THEN checked_at END AS fault_since, sha256 IS NOT NULL AS verified
        FROM look ANTI JOIN several USING (observation_id)
        UNION ALL
        SELECT look.* EXCLUDE (problem, id), fault.problem, fault.checked_at, verified
        FROM known JOIN look ON look.id = latest LEFT JOIN look AS fault ON fault.id = first_fault
    )
    SELECT object.id AS object, key, size, seen_at, last_modified, kind, media_type, fault, fault_since,
           CASE WHEN verified THEN '{Coverage.VERIFIED}'
                WHEN failure.observation_id IS NOT NULL THEN '{Coverage.UNREADABLE}'
                WHEN looked.observation_id IS NOT NULL THEN '{Coverage.FIRST_BYTES}'
                ELSE '{Coverage.NEVER}' END AS coverage,
           checked_at, sha256, seconds, pages, normal_form, active_parts, stored_type, speech_seconds, depth,
           array_to_string(readers, '|') AS readers,
           CASE WHEN looked.observation_id IS NOT NULL THEN coalesce(look, 1) END AS look
    FROM object
    LEFT JOIN looked ON looked.observation_id = object.id
    LEFT JOIN failure ON failure.observation_id = object.id
"""
"""The latest look at each object decides, and the first of its faults has the time; most have but one look."""

_RECORD: Final = """
    CREATE OR REPLACE TABLE record AS
    SELECT given.*, withdrawn_at, object, object IS NULL AND vanished.key IS NOT NULL AS vanished, size,
           least(last_modified, seen_at) AS written_at
    FROM given
    LEFT JOIN seen ON seen.key = given.object_key
    LEFT JOIN (SELECT DISTINCT key FROM ended) AS vanished ON vanished.key = given.object_key
    LEFT JOIN (SELECT evidence_id, withdrawn_at FROM withdrawal) AS taken USING (evidence_id)
"""

_VERSIONS: Final = """
    CREATE OR REPLACE TABLE version AS
    WITH every AS (FROM ended UNION ALL FROM object SEMI JOIN ended USING (key)),
    hashed AS (
        SELECT observation_id, arg_max(sha256, id) AS sha256
        FROM look
        WHERE media_type IS NOT NULL AND observation_id IN (SELECT id FROM every)
        GROUP BY observation_id
    )
    SELECT every.*, hashed.sha256 FROM every LEFT JOIN hashed ON observation_id = every.id
"""


_JOINED: Final = {
    _VERSIONS: (),
    _SEEN: ("look", "object", "failure"),
    _RECORD: ("given", "ended", "withdrawal"),
    REVIEWS: ("turned", "given_answer"),
}
"""Statements that make working tables of others, each with the tables that nobody needs after it."""


def _columns(names: tuple[str, ...], **written: str) -> str:
    return ", ".join(f"{written[name]} AS {name}" if name in written else name for name in names)


_SALES: Final = f"""
    SELECT {_columns(SALES.names, client_id="CAST(client_id AS VARCHAR)")} FROM sale ORDER BY number
"""

_RECORDS: Final = f"""
    SELECT {_columns(RECORDS.names, evidence_id="CAST(evidence_id AS VARCHAR)", declared_type="type")}
    FROM record ORDER BY record
"""

_OBJECTS: Final = f"""
    SELECT {_columns(OBJECTS.names, written_at="last_modified")} FROM seen ORDER BY object
"""

_DIFFERENCES: Final = """
    WITH lost AS (FROM "then" EXCEPT FROM today), new AS (FROM today EXCEPT FROM "then")
    SELECT {key},
           CASE WHEN new.{key} IS NULL THEN 'missing' WHEN lost.{key} IS NULL THEN 'added' ELSE 'changed' END
    FROM lost FULL JOIN new USING ({key})
    ORDER BY 1
"""
