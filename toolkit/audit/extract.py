"""Read what was observed by a moment, once, in one repeatable-read transaction, into an audit's inputs.

Every table is streamed as Arrow into DuckDB, several at once under one exported snapshot, and the objects in
ranges. The server joins records, objects and looks: DuckDB would have to spill them. The inputs are written as
Parquet, in the order of their observations, so that two readings of the same past moment give the same bytes. Keys
of objects, which may hold names of people, stay in the working tables.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

import psycopg
import pyarrow as pa
import sqlalchemy as sa
from duckdb import DuckDBPyConnection, InvalidInputException
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql

from toolkit.audit.duckdb_session import PIECE, copy_to, duckdb_session, files_alone, write_in_turn
from toolkit.audit.folder import INPUTS, Audit
from toolkit.audit.judge import OBJECTS, RECORDS, SALES
from toolkit.audit.reviews import LOOKS, REVIEWS
from toolkit.contract.contents import Coverage
from toolkit.database.connection import Database
from toolkit.database.errors import as_psycopg
from toolkit.database.observations import first_fault, withdrawal_of
from toolkit.database.tables import evidence_observations, withdrawals
from toolkit.errors import InvalidInput

STREAMS: Final = 3  # tables, or ranges of one, that are read at the same time

_ROWS_IN_GROUP: Final = 1 << 23  # bytes of a batch that the driver hands over

_Take = Callable[[pa.RecordBatchReader, DuckDBPyConnection], pa.Table | None]
"""Takes the rows of a query into DuckDB, and may return some of them."""

NO_LONGER_NEEDED: Final = ("record", "seen", "version", "earlier", "request")
"""The working tables that nobody needs after the inputs are written and findings about files are found."""


def extract(connection: Connection, moment: datetime, session: DuckDBPyConnection, folder: Path) -> None:
    """Read everything that had been observed by ``moment``, as the transaction of ``connection`` sees it.

    The inputs are written into ``folder``: ``sales.parquet``, ``records.parquet`` and ``objects.parquet``. The
    working tables are ``sale``; ``record``, with its withdrawal and its file; ``seen``, the objects with what
    findings ask of them; ``version``, the objects that lay under a key where one ended, or that a record named
    beside another one; ``earlier``, the keys that a record had before under one sale and type; ``request``, who
    asked for a record; ``episode``, of findings; ``gap``, in which a sale was gone; ``told`` and ``answered``,
    when a partner was told of a finding, and when and what it answered; ``review``, what people answered about
    files.

    Raises:
        DatabaseError: the database refused a statement, or holds a value that cannot be read.
        DatabaseUnavailable: the connection broke.
    """
    session.execute("SET preserve_insertion_order = false")  # what needs an order names it
    session.execute(_CREATE_SEEN)
    written = copy_to(_AS_WRITTEN, folder / "records.parquet")
    last = connection.scalar(sa.text("SELECT max(id) FROM audit.object_observations")) or 0
    ranges = (_OBJECTS.format(first=start, last=start + PIECE - 1) for start in range(0, last + 1, PIECE))
    with _streams(connection, session, moment) as ask:
        filled = [ask(_RECORDS, partial(_fill, "record", written))]
        filled += [ask(query, partial(_fill, name, "")) for name, query in (_OF_HISTORY | _OTHERS).items()]
        pieces = _in_turn(ask(query, _take_objects) for query in ranges)
        write_in_turn(pieces, OBJECTS.to_pyarrow(), folder / "objects.parquet")
        for each in filled:
            each.result()
    session.execute(REVIEWS)
    session.execute(copy_to(_SALES, folder / "sales.parquet"))


def extract_history(connection: Connection, moment: datetime, session: DuckDBPyConnection) -> None:
    """Read ``sale``, ``episode`` and ``gap`` alone, with what ``extract`` raises."""
    with _streams(connection, session, moment) as ask:
        for each in [ask(query, partial(_fill, name, "")) for name, query in _OF_HISTORY.items()]:
            each.result()


_KEYS: Final = {"sales": "sale_id", "records": "evidence_id", "objects": "object"}


def changed_inputs(database: Database, audit: Audit, scratch: Path, memory: str) -> list[tuple[str, str, str]]:
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
        extract(snapshot, audit.facts.as_of, session, again)
        return [each for table in INPUTS for each in _changed(session, audit, table, again)]


def _changed(session: Any, audit: Audit, table: str, again: Path) -> list[tuple[str, str, str]]:
    if not any(name.startswith(f"{audit.name}/{table}.parquet") for name in audit.store.names()):
        raise InvalidInput("The inputs of the audit {} were removed by retention.", audit.folder)
    session.register("then", audit.sql(f"FROM {table}"))
    session.execute(
        f"CREATE OR REPLACE TEMP VIEW today AS FROM read_parquet({files_alone([again / f'{table}.parquet'])})"
    )
    rows = session.execute(_DIFFERENCES.format(key=_KEYS[table])).fetchall()
    return [(table, str(key), how) for key, how in rows]


def _fill(name: str, then: str, rows: pa.RecordBatchReader, session: DuckDBPyConnection) -> None:  # noqa: ARG001
    session.execute(f"CREATE OR REPLACE TABLE {name} AS FROM rows; {then}")  # DuckDB finds it by its name


def _take_objects(rows: pa.RecordBatchReader, session: DuckDBPyConnection) -> pa.Table:
    """Return objects, and put into ``seen`` what is needed of them later."""
    objects = rows.read_all()
    session.execute(_INSERT_SEEN)
    return objects.select(OBJECTS.names)


def _in_turn(asked: Iterator[Future[Any]]) -> Iterator[Any]:
    """Yield what each query gives, in their order; no more of them are asked at once than there are streams."""
    turns = deque(islice(asked, STREAMS))
    while turns:
        yield turns.popleft().result()
        turns.extend(islice(asked, 1))


@contextmanager
def _streams(
    connection: Connection, session: DuckDBPyConnection, moment: datetime
) -> Iterator[Callable[[str, _Take], Future[Any]]]:
    """Yield what asks a query as of the moment, as soon as a stream is free, and has its rows taken.

    All see what ``connection`` does. A failure in the block breaks them off.
    """
    snapshot: str = connection.scalar(sa.text("SELECT pg_export_snapshot()"))
    idle = SimpleQueue[tuple[Any, DuckDBPyConnection]]()
    failures: list[Exception] = []

    def answer(query: str, take: _Take) -> pa.Table | None:
        cursor, own = stream = idle.get()
        try:
            cursor.execute(query.replace(":moment", f"TIMESTAMPTZ '{moment.isoformat()}'"))
            return take(cursor.fetch_record_batch(), own)
        except Exception as error:
            quoted = isinstance(error, InvalidInputException)  # by DuckDB, from the driver
            failures.append(as_psycopg(None, str(error)) if quoted else error)
            raise failures[0] from None  # the later ones may be of streams whose transaction it ended
        finally:
            idle.put(stream)

    with (
        _connected(connection) as server,
        ExitStack() as opened,
        ThreadPoolExecutor(STREAMS, thread_name_prefix="extract") as threads,
    ):
        streams = [
            (opened.enter_context(_snapshot_of(server, snapshot)), opened.enter_context(session.cursor()))
            for _ in range(STREAMS)
        ]
        for stream in streams:
            idle.put(stream)
        try:
            yield lambda query, take: threads.submit(answer, query, take)
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            for cursor, own in streams:
                own.interrupt()
                with suppress(Exception):  # its server went away
                    cursor.adbc_cancel()
            raise


@contextmanager
def _snapshot_of(server: Any, snapshot: str) -> Iterator[Any]:
    """Open a connection whose cursor sees an exported snapshot."""
    options = {"adbc.postgresql.batch_size_hint_bytes": str(_ROWS_IN_GROUP)}
    with server.adbc_clone() as connection, connection.cursor(adbc_stmt_kwargs=options) as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        cursor.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
        cursor.execute("SET LOCAL max_parallel_workers_per_gather = 0")  # several streams read already
        yield cursor


@contextmanager
def _connected(beside: Connection) -> Iterator[Any]:
    """Open a connection of the Arrow driver to the same database; clones of it open within a few milliseconds.

    Raises:
        psycopg.Error: it refused a statement, or the connection broke.
    """
    import adbc_driver_postgresql.dbapi as adbc

    _, given = beside.dialect.create_connect_args(beside.engine.url)
    parameters = {"application_name": "toolkit", "client_encoding": "UTF8", "connect_timeout": 10, **given}
    parameters.pop("context", None)  # of psycopg
    if beside.scalar(sa.text("SELECT reset_val FROM pg_settings WHERE name = 'quote_all_identifiers'")) == "on":
        # The driver knows types by the names of their functions. Not every pooler lets options pass.
        parameters["options"] = f"{parameters.get('options', '')} -cquote_all_identifiers=off"
    try:
        with adbc.connect(psycopg.conninfo.make_conninfo(**parameters)) as connection:
            yield connection
    except adbc.Error as error:  # the transaction around this translates it
        raise as_psycopg(error.sqlstate, str(error)) from None


def _valid(observed: str) -> str:
    """Return the condition of observations that held at the moment."""
    return f"{observed}.seen_at <= :moment AND ({observed}.gone_at IS NULL OR {observed}.gone_at > :moment)"


def _text(query: sa.Select[Any]) -> str:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    return str(query.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))


_MOMENT: Final[Any] = sa.literal_column(":moment")

_OF_HISTORY: Final = {
    "sale": f"""
        SELECT id AS number, {", ".join(SALES.names)} FROM audit.sale_observations AS sale WHERE {_valid("sale")}
    """,
    "episode": """
        SELECT finding_id, code, sale_id, partner, utility_group, seen_at,
               CASE WHEN gone_at <= :moment THEN gone_at END AS gone_at
        FROM audit.finding_observations WHERE seen_at <= :moment
    """,
    "gap": """
        SELECT sale_id, gone_at, (
                   SELECT min(seen_at) FROM audit.sale_observations AS came
                   WHERE came.sale_id = gone.sale_id AND came.seen_at > gone.gone_at
               ) AS back_at
        FROM audit.sale_observations AS gone
        WHERE gone_at <= :moment AND NOT EXISTS (
            SELECT FROM audit.sale_observations AS came
            WHERE came.sale_id = gone.sale_id AND came.seen_at = gone.gone_at
        )
    """,
}

_EARLIER: Final = f"""
    SELECT was.evidence_id, was.object_key AS key, was.seen_at, was.gone_at, now.object_key AS key_since
    FROM audit.evidence_observations AS was
    JOIN audit.evidence_observations AS now
        ON now.evidence_id = was.evidence_id AND now.object_key <> was.object_key AND {_valid("now")}
    WHERE was.gone_at <= :moment AND EXISTS (
        SELECT FROM audit.evidence_observations AS moved
        WHERE moved.evidence_id = was.evidence_id AND moved.sale_id = was.sale_id
          AND moved.evidence_type = was.evidence_type AND moved.object_key = now.object_key
          AND moved.seen_at <= :moment
    )
"""

_OTHERS: Final = {
    "version": f"""
        WITH earlier AS ({_EARLIER})
        SELECT id, key, size, etag, seen_at, gone_at, least(last_modified, seen_at) AS written_at, (
                   SELECT sha256 FROM audit.content_checks
                   WHERE observation_id = seen.id AND checked_at <= :moment
                     AND sha256 IS NOT NULL AND media_type IS NOT NULL
                   ORDER BY content_checks.id DESC LIMIT 1
               ) AS sha256
        FROM audit.object_observations AS seen
        WHERE seen_at <= :moment AND key IN (
            SELECT key FROM audit.object_observations WHERE gone_at <= :moment
            UNION SELECT key FROM earlier
            UNION SELECT key_since FROM earlier
        )
    """,
    "earlier": _EARLIER,
    "request": "SELECT evidence_id, partner FROM audit.evidence_requests",
    "told": """
        SELECT finding_id, partner, delivered_at
        FROM audit.told_findings JOIN audit.partner_notices AS notice ON notice.id = notice_id
        WHERE delivered_at <= :moment
    """,
    "answered": """
        SELECT finding_id, partner, answer, until, answered_at
        FROM audit.finding_answers WHERE answered_at <= :moment
    """,
    "look": LOOKS,
}

_WITHDRAWN: Final = _text(
    sa.select(evidence_observations.c.id, sa.func.min(withdrawals.c.withdrawn_at).label("withdrawn_at"))
    .where(withdrawal_of(*evidence_observations.c["evidence_id", "sale_id", "object_key"], moment=_MOMENT))
    .where(withdrawals.c.withdrawn_at <= _MOMENT)
    .group_by(evidence_observations.c.id)
)

_RECORDS: Final = f"""
    SELECT record.id AS record, evidence_id, sale_id, evidence_type, type, object_key, requested_at, expires_at,
           withdrawn_at, under.id AS object, under.id IS NULL AND EXISTS (
               SELECT FROM audit.object_observations WHERE key = object_key AND gone_at <= :moment
           ) AS vanished,
           size, least(last_modified, under.seen_at) AS written_at
    FROM audit.evidence_observations AS record
    LEFT JOIN audit.object_observations AS under ON under.key = object_key AND {_valid("under")}
    LEFT JOIN ({_WITHDRAWN}) AS withdrawn ON withdrawn.id = record.id
    WHERE {_valid("record")}
"""
"""The records, each with its withdrawal and the object under its key, which was written before it was seen."""

_LATEST: Final = sa.table("latest", sa.column("observation_id"))

_FAULTS: Final = _text(
    sa.select(sa.literal_column("latest.object, found.*"))
    .select_from(_LATEST)
    .join(first_fault(_LATEST, _MOMENT).lateral("found"), sa.true())
    .where(sa.literal_column("latest.problem").is_not(None))
)

_OBJECTS: Final = f"""
    WITH latest AS (
        SELECT DISTINCT ON (seen.id) seen.id AS object, key, size, seen_at, last_modified AS written_at, looked.*
        FROM audit.object_observations AS seen
        LEFT JOIN audit.content_checks AS looked ON observation_id = seen.id AND checked_at <= :moment
            AND observation_id BETWEEN {{first}} AND {{last}}
        WHERE {_valid("seen")} AND seen.id BETWEEN {{first}} AND {{last}}
        ORDER BY seen.id, looked.id DESC
    )
    SELECT object, key, size, seen_at, written_at, kind, media_type, fault, fault_since, checked_at, sha256,
           seconds, pages, speech_seconds, depth, normal_form, active_parts, stored_type,
           array_to_string(readers, '|') AS readers, CASE WHEN kind IS NOT NULL THEN coalesce(look, 1) END AS look,
           CASE
               -- Not EXISTS: for it PostgreSQL would collect all that were verified, to ask about a few.
               WHEN sha256 IS NOT NULL OR (
                   SELECT true FROM audit.content_checks AS other
                   WHERE other.observation_id = object AND other.sha256 IS NOT NULL AND other.checked_at <= :moment
                   LIMIT 1
               ) THEN '{Coverage.VERIFIED}'
               WHEN EXISTS (
                   SELECT FROM audit.verification_failures AS failure
                   WHERE failure.observation_id = object AND failed_at <= :moment
               ) THEN '{Coverage.UNREADABLE}'
               WHEN kind IS NOT NULL THEN '{Coverage.FIRST_BYTES}' ELSE '{Coverage.NEVER}'
           END AS coverage
    FROM latest LEFT JOIN ({_FAULTS}) AS faulty USING (object)
"""
"""The objects of a range in the bucket with their latest looks, and the first look that found their fault."""

_CREATE_SEEN: Final = """
    CREATE OR REPLACE TABLE seen (
        object BIGINT, key VARCHAR, media_type VARCHAR, sha256 VARCHAR, normal_form VARCHAR,
        active_parts VARCHAR[], stored_type VARCHAR
    )
"""
"""The columns of objects that findings about files need after the objects are written."""

_INSERT_SEEN: Final = """
    INSERT INTO seen
    SELECT object, key, media_type, sha256, normal_form, active_parts, stored_type FROM objects
"""

_SALES: Final = """
    SELECT * EXCLUDE (number) REPLACE (CAST(client_id AS VARCHAR) AS client_id) FROM sale ORDER BY number
"""

_AS_WRITTEN: Final = f"""
    SELECT {", ".join(RECORDS.names)} FROM (
        SELECT * REPLACE (CAST(evidence_id AS VARCHAR) AS evidence_id), type AS declared_type FROM record
    ) ORDER BY record
"""

_DIFFERENCES: Final = """
    WITH lost AS (FROM "then" EXCEPT FROM today), new AS (FROM today EXCEPT FROM "then")
    SELECT {key},
           CASE WHEN new.{key} IS NULL THEN 'missing' WHEN lost.{key} IS NULL THEN 'added' ELSE 'changed' END
    FROM lost FULL JOIN new USING ({key})
    ORDER BY 1
"""
