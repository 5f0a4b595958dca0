"""Read what was observed by a moment, once, in one repeatable-read transaction, into an audit's inputs.

Every table is streamed as Arrow into DuckDB, several at once under one exported snapshot, and the largest in
ranges. The server joins records, objects and looks: DuckDB would have to spill them. The inputs are written as
Parquet, in the order of their observations, so that two readings of the same past moment give the same bytes. Keys
of objects, which may hold names of people, stay in the working tables.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, TypeVar

import psycopg
import pyarrow as pa
import sqlalchemy as sa
from duckdb import DuckDBPyConnection, InvalidInputException
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql

from toolkit.audit.duckdb_session import PIECE, copy_to, duckdb_session, files_alone, write_in_turn
from toolkit.audit.folder import INPUTS, Audit
from toolkit.audit.judge import OBJECTS, RECORDS, SALES
from toolkit.audit.reviews import REVIEWS, looks_until
from toolkit.contract.contents import Coverage
from toolkit.database import tables
from toolkit.database.connection import Database
from toolkit.database.errors import as_psycopg
from toolkit.database.observations import first_fault, stamped_by, valid_at, withdrawal_of
from toolkit.errors import InvalidInput

R = TypeVar("R")

_Read = Callable[[Any, DuckDBPyConnection], R]
"""Reads by a cursor of the Arrow driver into DuckDB."""

_Submit = Callable[[_Read[Any]], Future[Any]]
"""Has the next stream that is free do a read."""

_POSTGRESQL: Final[sa.Dialect] = postgresql.dialect()  # type: ignore[no-untyped-call]

STREAMS: Final = 3  # tables, or ranges of one, that are read at the same time

RANGE: Final = 5_000_000  # numbers of a table that are read at once

_SEEN: Final = ("object", "key", "media_type", "sha256", "normal_form", "active_parts", "stored_type")
"""The columns of objects that findings about files need after the objects are written."""

_ROWS_IN_GROUP: Final = 1 << 23  # bytes of a batch that the driver hands over

NO_LONGER_NEEDED: Final = ("record", "seen", "version", "earlier", "request")
"""The working tables that nobody needs after the inputs are written and findings about files are found."""


@dataclass(frozen=True)
class _WorkingTable:
    """A query of PostgreSQL whose rows become a working table, in ranges of ``number`` if it has them.

    DuckDB does the statement ``then`` when the rows of a query without ranges are there.
    """

    name: str
    query: sa.Select[Any] | sa.TextualSelect
    number: sa.Column[Any] | None = None
    then: str | None = None


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
    session.execute(_empty_table("seen", (_objects(moment).selected_columns[name] for name in _SEEN)))
    objects = list(_ranges(connection, _objects(moment), tables.object_observations.c.id, PIECE))
    records = _WorkingTable("record", _records(moment), then=copy_to(_RECORDS, folder / "records.parquet"))
    with _streams(connection, session) as submit:
        filled = _fill(connection, session, submit, [records, *_readings(moment)])
        pieces = _in_turn(submit, (partial(_take_objects, query) for query in objects))
        write_in_turn(pieces, OBJECTS.to_pyarrow(), folder / "objects.parquet")
        for each in filled:
            each.result()
    session.execute(REVIEWS)
    session.execute(copy_to(_SALES, folder / "sales.parquet"))


def extract_history(connection: Connection, moment: datetime, session: DuckDBPyConnection) -> None:
    """Read ``sale``, ``episode`` and ``gap`` alone, with what ``extract`` raises."""
    readings = [each for each in _readings(moment) if each.name in _OF_HISTORY]
    with _streams(connection, session) as submit:
        for each in _fill(connection, session, submit, readings):
            each.result()


_OF_HISTORY: Final = ("sale", "episode", "gap")

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


@contextmanager
def _streams(connection: Connection, session: DuckDBPyConnection) -> Iterator[_Submit]:
    """Open several connections that see what ``connection`` does, each with a cursor of DuckDB."""
    snapshot: str = connection.scalar(sa.text("SELECT pg_export_snapshot()"))
    streams, idle, failures = list[tuple[Any, Any]](), SimpleQueue[tuple[Any, Any]](), list[BaseException]()

    def by_the_next(read: _Read[Any]) -> Any:
        stream = idle.get()
        try:
            if not failures:
                return read(*stream)
        except Exception as error:  # the first one is raised for all: it breaks the others off
            end_all(error)
        finally:
            idle.put(stream)
        raise failures[0]

    def end_all(error: BaseException) -> None:
        failures.append(error)
        for cursor, table in streams:
            table.interrupt()
            with suppress(Exception):  # its server went away
                cursor.adbc_cancel()

    with _connected(connection) as server, ExitStack() as opened:
        for _ in range(STREAMS):
            cursor = opened.enter_context(_snapshot_of(server, snapshot))
            streams.append((cursor, opened.enter_context(session.cursor())))
            idle.put(streams[-1])
        threads = ThreadPoolExecutor(STREAMS, thread_name_prefix="extract")
        try:
            yield lambda read: threads.submit(by_the_next, read)
        except BaseException as error:
            end_all(error)
            raise
        finally:
            threads.shutdown(cancel_futures=True)


def _in_turn(submit: _Submit, reads: Iterable[_Read[R]]) -> Iterator[R]:
    """Yield what each read gives, in their order; no more of them are under way than there are streams."""
    turns = deque[Future[R]]()
    for read in reads:
        turns.append(submit(read))
        if len(turns) == STREAMS:
            yield turns.popleft().result()
    while turns:
        yield turns.popleft().result()


def _fill(
    connection: Connection, session: DuckDBPyConnection, submit: _Submit, readings: Iterable[_WorkingTable]
) -> list[Future[None]]:
    filled = []
    for each in readings:
        session.execute(_empty_table(each.name, each.query.selected_columns))
        queries = _ranges(connection, each.query, each.number, RANGE)
        filled += [submit(partial(_insert, each.name, query, each.then)) for query in queries]
    return filled


def _readings(moment: datetime) -> list[_WorkingTable]:
    """Return what is read beside records and objects, the largest first."""
    sale, finding = tables.sale_observations, tables.finding_observations
    sales = sa.select(sale.c.id.label("number"), *sale.c[tuple(SALES.names)]).where(
        valid_at(sale, moment), _in_range(sale.c.id)
    )
    gone_by_then = sa.case((stamped_by(finding.c.gone_at, moment), finding.c.gone_at)).label("gone_at")
    of_findings = finding.c["finding_id", "code", "sale_id", "partner", "utility_group", "seen_at"]
    findings = sa.select(*of_findings, gone_by_then).where(
        stamped_by(finding.c.seen_at, moment), _in_range(finding.c.id)
    )
    asked = tables.evidence_requests.c
    came, gone = sale.alias("came"), sale.alias("gone")
    again = sa.select(came.c.id).where(came.c.sale_id == gone.c.sale_id, came.c.seen_at == gone.c.gone_at)
    back_at = sa.select(sa.func.min(came.c.seen_at)).where(
        came.c.sale_id == gone.c.sale_id, came.c.seen_at > gone.c.gone_at
    )
    gaps: sa.Select[Any] = sa.select(*gone.c["sale_id", "gone_at"], back_at.scalar_subquery().label("back_at"))
    notice, told, answer = tables.partner_notices.c, tables.told_findings, tables.finding_answers.c
    of_notices = sa.select(told.c.finding_id, notice.partner, notice.delivered_at).join(
        tables.partner_notices, notice.id == told.c.notice_id
    )
    return [
        _WorkingTable("sale", sales, sale.c.id),
        _WorkingTable("episode", findings, finding.c.id),
        _WorkingTable("version", _versions(moment)),
        _WorkingTable("earlier", _earlier(moment)),
        _WorkingTable("request", sa.select(asked.evidence_id, asked.partner)),
        _WorkingTable("told", of_notices.where(stamped_by(notice.delivered_at, moment))),
        _WorkingTable(
            "answered",
            sa.select(answer.finding_id, answer.partner, answer.answer, answer.until, answer.answered_at).where(
                stamped_by(answer.answered_at, moment)
            ),
        ),
        _WorkingTable("look", looks_until(moment)),
        _WorkingTable("gap", gaps.where(stamped_by(gone.c.gone_at, moment), ~again.exists())),
    ]


def _records(moment: datetime) -> sa.Select[Any]:
    """Return the records, each with its withdrawal and with the object under its key."""
    record, seen, taken = tables.evidence_observations, tables.object_observations, tables.withdrawals
    under = sa.select(seen).where(valid_at(seen, moment)).subquery("under")
    ended = sa.exists().where(seen.c.key == record.c.object_key, stamped_by(seen.c.gone_at, moment))
    of_record = withdrawal_of(*record.c["evidence_id", "sale_id", "object_key"], moment=moment)
    first = sa.select(record.c.id, sa.func.min(taken.c.withdrawn_at).label("withdrawn_at")).group_by(record.c.id)
    withdrawn = first.where(of_record, stamped_by(taken.c.withdrawn_at, moment)).subquery("withdrawn")
    query: sa.Select[Any] = sa.select(
        record.c.id.label("record"),
        *record.c["evidence_id", "sale_id", "evidence_type", "type", "object_key", "requested_at", "expires_at"],
        withdrawn.c.withdrawn_at,
        under.c.id.label("object"),
        sa.and_(under.c.id.is_(None), ended).label("vanished"),
        under.c.size,
        _written(under.c),
    )
    found = query.outerjoin(under, under.c.key == record.c.object_key)
    return found.outerjoin(withdrawn, withdrawn.c.id == record.c.id).where(valid_at(record, moment))


def _written(of: Any) -> sa.Label[datetime]:
    """Return when an object was written, as far as one can tell: it lay there when it was seen."""
    return sa.func.least(of.last_modified, of.seen_at, type_=of.seen_at.type).label("written_at")


def _objects(moment: datetime) -> sa.Select[Any]:
    """Return the objects in the bucket with their latest looks, by indexes in their order."""
    seen, looked, failure = tables.object_observations, tables.content_checks, tables.verification_failures.c
    at_it = looked.c.observation_id == seen.c.id, _in_range(looked.c.observation_id)
    latest = (
        sa.select(seen.c.id.label("object"), *seen.c["key", "size", "seen_at"])
        .add_columns(seen.c.last_modified.label("written_at"), *(each for each in looked.c if each.name != "id"))
        .outerjoin(looked, sa.and_(*at_it, stamped_by(looked.c.checked_at, moment)))
        .where(valid_at(seen, moment), _in_range(seen.c.id))
        .ext(postgresql.distinct_on(seen.c.id))
        .order_by(seen.c.id, looked.c.id.desc())
        .subquery("latest")
    )
    of, first, other = latest.c, first_fault(latest, moment), looked.alias("other").c
    # Not EXISTS: for it PostgreSQL would collect all that were verified, to ask about the few without a hash here.
    verified = sa.select(sa.true()).where(other.observation_id == of.object, other.sha256.is_not(None))
    verified = verified.where(stamped_by(other.checked_at, moment)).limit(1)
    failed = sa.exists().where(failure.observation_id == of.object, stamped_by(failure.failed_at, moment))
    coverage = sa.case(
        (of.sha256.is_not(None) | verified.scalar_subquery(), str(Coverage.VERIFIED)),
        (failed, str(Coverage.UNREADABLE)),
        (of.kind.is_not(None), str(Coverage.FIRST_BYTES)),
        else_=str(Coverage.NEVER),
    )
    faults = {each.name: first.with_only_columns(each) for each in first.selected_columns}
    return sa.select(
        *of["object", "key", "size", "seen_at", "written_at", "kind", "media_type", "checked_at", "sha256"],
        *of["seconds", "pages", "speech_seconds", "depth", "normal_form", "active_parts", "stored_type"],
        *(sa.case((of.problem.is_not(None), one.scalar_subquery())).label(name) for name, one in faults.items()),
        coverage.label("coverage"),
        sa.func.array_to_string(of.readers, "|", type_=sa.Text).label("readers"),
        sa.case((of.kind.is_not(None), sa.func.coalesce(of.look, 1))).label("look"),
    )


def _earlier(moment: datetime) -> sa.Select[Any]:
    """Return the keys that records had before, each with the time in which it held and the record's key since."""
    now = tables.evidence_observations
    was, then = now.alias("was"), now.alias("then")
    alike = (then.c[name] == was.c[name] for name in ("evidence_id", "sale_id", "evidence_type"))
    moved = sa.exists().where(*alike, then.c.object_key == now.c.object_key, stamped_by(then.c.seen_at, moment))
    return (
        sa.select(was.c.evidence_id, was.c.object_key.label("key"), *was.c["seen_at", "gone_at"])
        .add_columns(now.c.object_key.label("key_since"))
        .select_from(was)
        .join(now, sa.and_(was.c.evidence_id == now.c.evidence_id, was.c.object_key != now.c.object_key, moved))
        .where(stamped_by(was.c.gone_at, moment), valid_at(now, moment))
    )


def _versions(moment: datetime) -> sa.Select[Any]:
    """Return the objects under keys with more than one of them, or of records with another key before.

    Each has the SHA-256 of its bytes.
    """
    seen, looked = tables.object_observations, tables.content_checks.c
    ended = seen.alias("ended").c
    other = _earlier(moment).subquery().c
    keys = sa.union(
        sa.select(ended.key).where(stamped_by(ended.gone_at, moment)),
        sa.select(other.key),
        sa.select(other.key_since),
    )
    hashed = (
        sa.select(looked.sha256)
        .where(looked.observation_id == seen.c.id, looked.sha256.is_not(None), looked.media_type.is_not(None))
        .where(stamped_by(looked.checked_at, moment))
        .order_by(looked.id.desc())
        .limit(1)
    )
    query: sa.Select[Any] = sa.select(
        *seen.c["id", "key", "size", "etag", "seen_at", "gone_at"],
        _written(seen.c),
        hashed.scalar_subquery().label("sha256"),
    )
    return query.where(stamped_by(seen.c.seen_at, moment), seen.c.key.in_(keys))


def _in_range(number: sa.Column[Any]) -> sa.ColumnElement[bool]:
    return number.between(sa.bindparam("first", type_=sa.BigInteger), sa.bindparam("last", type_=sa.BigInteger))


def _ranges(
    connection: Connection, query: sa.Select[Any] | sa.TextualSelect, number: sa.Column[Any] | None, size: int
) -> Iterator[sa.Select[Any] | sa.TextualSelect]:
    """Yield the query, in ranges of so many of its numbers if it has them."""
    if number is None:
        yield query
        return
    first, last = connection.execute(sa.select(sa.func.min(number), sa.func.max(number))).one()
    for start in range(0 if first is None else first // size * size, (last or -1) + 1, size):
        yield query.params(first=start, last=start + size - 1)


def _insert(
    name: str,
    query: sa.Select[Any] | sa.TextualSelect,
    then: str | None,
    cursor: Any,
    session: DuckDBPyConnection,
) -> None:
    cursor.execute(literal(query))
    rows = cursor.fetch_record_batch()  # noqa: F841  # DuckDB finds it by its name
    try:
        session.execute(f"INSERT INTO {name} SELECT * FROM rows")
    except InvalidInputException as error:  # it quotes the driver
        raise as_psycopg(None, str(error)) from None
    if then is not None:
        session.execute(then)


def _take_objects(query: sa.Select[Any] | sa.TextualSelect, cursor: Any, session: DuckDBPyConnection) -> pa.Table:
    """Return objects, and put into ``seen`` what is needed of them later."""
    cursor.execute(literal(query))
    rows = cursor.fetch_arrow_table()
    session.execute(f"INSERT INTO seen SELECT {', '.join(_SEEN)} FROM rows")
    return rows.select(OBJECTS.names)


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


def literal(query: sa.Select[Any] | sa.TextualSelect) -> str:
    """Return a query with its values written out, which are moments and numbers of our own."""
    return str(query.compile(dialect=_POSTGRESQL, compile_kwargs={"literal_binds": True}))


def _empty_table(name: str, columns: Iterable[sa.ColumnElement[Any]]) -> str:
    """Return the statement of DuckDB that makes a table, by the types of PostgreSQL, which it knows too."""
    typed = (f"{column.name} {column.type.compile(dialect=_POSTGRESQL)}" for column in columns)
    return f"CREATE OR REPLACE TABLE {name} ({', '.join(typed)})"


def _columns(names: tuple[str, ...], **written: str) -> str:
    return ", ".join(f"{written[name]} AS {name}" if name in written else name for name in names)


_SALES: Final = f"""
    SELECT {_columns(SALES.names, client_id="CAST(client_id AS VARCHAR)")} FROM sale ORDER BY number
"""

_RECORDS: Final = f"""
    SELECT {_columns(RECORDS.names, evidence_id="CAST(evidence_id AS VARCHAR)", declared_type="type")}
    FROM record ORDER BY record
"""

_DIFFERENCES: Final = """
    WITH lost AS (FROM "then" EXCEPT FROM today), new AS (FROM today EXCEPT FROM "then")
    SELECT {key},
           CASE WHEN new.{key} IS NULL THEN 'missing' WHEN lost.{key} IS NULL THEN 'added' ELSE 'changed' END
    FROM lost FULL JOIN new USING ({key})
    ORDER BY 1
"""
