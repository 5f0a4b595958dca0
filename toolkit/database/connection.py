"""Connect to the database: one engine, its transactions and their locks.

No state is kept in a session (no SET, no session lock, no prepared statement where a pooler stands in between),
so that PgBouncer may give every transaction to another server connection.
"""

import os
import select
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from datetime import UTC, date, datetime
from enum import Enum, unique
from ipaddress import ip_address
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeVar

import psycopg
import sqlalchemy as sa
from psycopg import sql
from psycopg.abc import Buffer
from psycopg.types.datetime import DateLoader, TimestamptzLoader
from sqlalchemy import Connection, Engine, ExceptionContext
from sqlalchemy.exc import DisconnectionError

from toolkit.contract.deadlines import Clock, wall_clock
from toolkit.database.errors import ErrorTranslation
from toolkit.database.service import SERVICES, Service, packaged_service
from toolkit.database.service_tables import describe
from toolkit.message import Message

if TYPE_CHECKING:
    import pyarrow as pa

P = ParamSpec("P")
R = TypeVar("R")

CONNECT_TIMEOUT = 10  # seconds until an address that does not answer counts as unavailable

_EMBEDDED: Final = {
    **dict.fromkeys(("hostaddr", "options", "require_auth", "requirepeer"), ""),
    **dict.fromkeys(("channel_binding", "gssencmode", "sslcertmode", "sslmode"), "disable"),
    "port": "5432",
    "sslnegotiation": "postgres",
    "target_session_attrs": "any",
}
"""Parameters of the embedded database, which ``PG*`` variables for another one may not change."""


class Database(AbstractContextManager["Database"]):
    """A PostgreSQL database; cheap to keep for a whole process, safe to share between threads.

    ``embedded`` tells whether it is the one that the toolkit started itself. ``service`` holds the statements that
    read the sales service; without it they are those for the contract's own tables. A database on another machine
    is reached by TLS with a verified certificate, unless ``url`` says otherwise. ``variable`` named the ``url``.
    ``clock`` tells now, and ``account`` is who is signed in: it is kept beside the names of people who decide.
    """

    def __init__(
        self,
        url: str,
        clock: Clock = wall_clock,
        account: str | None = None,
        *,
        embedded: bool = False,
        service: Service | None = None,
        pool_size: int = 5,
        variable: str = "DATABASE_URL",
    ) -> None:
        self.embedded, self.clock, self.account = embedded, clock, account
        self.service = service or packaged_service()
        given = sa.make_url(url)
        address = given.update_query_dict(_EMBEDDED) if embedded else protected(given)
        self.engine: Engine = sa.create_engine(
            address,
            isolation_level="READ COMMITTED",  # by each BEGIN: after a wait for a lock one sees what it guarded
            hide_parameters=True,
            pool_size=pool_size,
            max_overflow=pool_size,
            pool_timeout=CONNECT_TIMEOUT,
            # Of another encoding, texts could not be written, and those of SQL_ASCII would arrive as bytes.
            connect_args={
                "connect_timeout": CONNECT_TIMEOUT,
                "application_name": "toolkit",
                "client_encoding": "UTF8",
            },
        )
        SERVICES[self.engine.dialect] = self.service
        sa.event.listen(self.engine, "connect", _prepare_session)
        sa.event.listen(self.engine, "checkout", _refuse_lost)
        sa.event.listen(self.engine, "handle_error", _replace_outdated)
        self._errors = ErrorTranslation(
            self.address, embedded=embedded, secret=address.password, variable=variable
        )
        self._alone = self.engine.execution_options(isolation_level="AUTOCOMMIT")

    def at(self, clock: Clock) -> Self:
        """Return the same database with another clock."""
        other = copy(self)
        other.clock = clock
        return other

    @property
    def address(self) -> str:
        """The address of the database, without user and password."""
        if self.embedded:
            return Message("embedded PostgreSQL")
        options = _options(self.engine.url)
        hosts = options.get("host", "").split(",")
        ports = [each or "5432" for each in options.get("port", "5432").split(",")]
        named = [
            f"{host}:{port}" for host, port in zip(hosts, cycle(ports), strict=False) if host[:1] not in ("", "/")
        ]
        return f"{','.join(named) or f'local socket:{ports[0]}'}/{options.get('dbname', '')}"

    def transaction(self) -> AbstractContextManager[Connection]:
        """Open a connection whose work is committed at the end, or rolled back when an exception leaves.

        Raises:
            DatabaseUnavailable: nobody answers, or the connection broke.
            DatabaseError: the database refused a statement.
        """
        return self._opened(self.engine)

    def run(self, work: Callable[Concatenate[Connection, P], R], *args: P.args, **given: P.kwargs) -> R:
        """Do ``work`` in a transaction of its own, which it gets first; raises as ``transaction`` does."""
        with self.transaction() as connection:
            return work(connection, *args, **given)

    def statement(self) -> AbstractContextManager[Connection]:
        """Open a connection for a single statement, a transaction by itself; raises as ``transaction`` does.

        It takes one round trip to the server; beginning and committing would take two more.
        """
        return self._opened(self._alone)

    def snapshot(self) -> AbstractContextManager[Connection]:
        """Open a repeatable-read transaction: every statement in it sees the same moment."""
        return self._opened(self.engine.execution_options(isolation_level="REPEATABLE READ"))

    @contextmanager
    def _opened(self, engine: Engine) -> Iterator[Connection]:
        with self._errors.translated(), engine.begin() as connection:
            connection.execution_options(database=self)
            if not self.service.is_own and not self.service.read:
                describe(connection, self.service)  # how values of others' tables are converted, found out once
            yield connection

    def dispose(self) -> None:
        """Close all idle connections."""
        self.engine.dispose()

    def __exit__(self, *_: object) -> None:
        self.dispose()


def database_of(connection: Connection) -> Database:
    """Return the database that opened the connection."""
    found: Database = connection.get_execution_options()["database"]
    return found


def raw(connection: Connection) -> psycopg.Connection[tuple[object, ...]]:
    """Return the psycopg connection beneath an SQLAlchemy one, inside the same transaction."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    return driver


def copy_rows(connection: Connection, table: str, rows: "pa.Table") -> None:
    """Copy Arrow rows, as CSV, into the columns of ``table`` that are named as theirs.

    Null and an empty text stay apart.
    """
    from pyarrow import BufferOutputStream, csv  # most commands copy nothing, and need not wait for it

    written = BufferOutputStream()
    csv.write_csv(rows, written, csv.WriteOptions(include_header=False))
    names = sql.SQL(", ").join(map(sql.Identifier, rows.column_names))
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(sql.Identifier(table), names)
    with raw(connection).cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(memoryview(written.getvalue()))


def _prepare_session(connection: psycopg.Connection[Any], _: object) -> None:
    """Set what a role or a database may have set otherwise, and find out whether a pooler stands between.

    Dates and times arrive in one form, whatever ``ALTER ROLE`` says. A pooler tells its clients another number
    than its server process has; it may run a prepared statement on a server that never saw it: none is prepared.
    """
    connection.autocommit = True
    row = connection.execute(_SESSION).fetchone()
    connection.autocommit = False
    connection.adapters.register_loader("timestamptz", _MomentLoader)
    connection.adapters.register_loader("date", _DayLoader)
    if row is None or row[0] != connection.info.backend_pid:
        connection.prepare_threshold = None


_SESSION: Final = """
    SELECT pg_backend_pid(), set_config('DateStyle', 'ISO, YMD', false), set_config('TimeZone', 'UTC', false),
           set_config('IntervalStyle', 'postgres', false), set_config('bytea_output', 'hex', false),
           set_config('standard_conforming_strings', 'on', false),
           set_config('quote_all_identifiers', 'off', false),
           set_config('default_transaction_isolation', 'read committed', false)
"""

FIRST_DAY: Final = datetime(1, 1, 2, tzinfo=UTC)
LAST_DAY: Final = datetime(9999, 12, 30, tzinfo=UTC)
"""The days that stand for all that PostgreSQL knows before and after them, infinity too: Python knows fewer."""


class _MomentLoader(TimestamptzLoader):
    def load(self, data: Buffer) -> datetime:
        try:
            return min(max(super().load(data), FIRST_DAY), LAST_DAY)  # so that no zone leads beyond
        except psycopg.DataError:
            return FIRST_DAY if _is_early(data) else LAST_DAY


class _DayLoader(DateLoader):
    def load(self, data: Buffer) -> date:
        try:
            return super().load(data)
        except psycopg.DataError:
            return (FIRST_DAY if _is_early(data) else LAST_DAY).date()


def _is_early(data: Buffer) -> bool:
    return bytes(data).startswith(b"-") or bytes(data).endswith(b"BC")


def _refuse_lost(connection: psycopg.Connection[object], *_: object) -> None:
    """Replace a pooled connection whose server went away.

    An idle connection has nothing to tell, so whatever can be read from it is its end. Asking the server
    instead (``pool_pre_ping``) would cost a third of a small transaction each time.
    """
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    if waiting.poll(0):
        raise DisconnectionError


def _replace_outdated(context: ExceptionContext) -> None:
    """Replace the pooled connections whose prepared statements yield other types than their tables have now."""
    error = context.original_exception
    if isinstance(error, psycopg.Error) and error.diag.source_function == "RevalidateCachedQuery":
        context.is_disconnect = True


def protected(url: sa.URL) -> sa.URL:
    """Return the address, set to protect a login on another machine: TLS, a verified server, no readable password.

    Weaker ways are taken where the address names them itself (``sslmode``, ``require_auth``). The certificates of
    authorities are those of ``sslrootcert``, else the user's own for PostgreSQL, else the system's.
    """
    if _is_local(url):
        return url
    added: dict[str, str] = {}
    if "sslmode" not in url.query:
        added["sslmode"] = "verify-full"
        own = Path(os.path.expanduser("~/.postgresql/root.crt"))  # noqa: PTH111  # where libpq looks; it never fails
        if "sslrootcert" not in url.query and "PGSSLROOTCERT" not in os.environ and not own.exists():
            added["sslrootcert"] = "system"
    if "require_auth" not in url.query:
        # Without a password a certificate of the client may do, for which the server asks nothing more.
        added["require_auth"] = "scram-sha-256" if url.password else "!password,!md5"
    return url.update_query_dict(added)


def _is_local(url: sa.URL) -> bool:
    options = _options(url)
    hosts = options.get("host") or os.environ.get("PGHOST", "")
    addresses = options.get("hostaddr") or os.environ.get("PGHOSTADDR", "")
    named = f"{hosts},{addresses}".split(",")
    return all(map(_is_this_machine, named)) and "service" not in options and "PGSERVICE" not in os.environ


def _options(url: sa.URL) -> dict[str, str]:
    """Return what libpq is given: several hosts, and their ports, have commas between them."""
    _, options = url.get_dialect()().create_connect_args(url)
    return {name: str(value) for name, value in options.items()}


def _is_this_machine(host: str) -> bool:
    if not host or host.startswith(("/", "@")) or host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def among(column: sa.ColumnElement[Any], values: Iterable[Any]) -> sa.ColumnElement[bool]:
    """Return the condition that a column has one of the values, as one parameter however many there are."""
    return column == sa.any_(sa.literal(list(values), sa.ARRAY(column.type)))


@unique
class Lock(Enum):
    """The advisory locks, each for work that must not run twice at a time; the value is its number in PostgreSQL.

    A transaction takes them in this order, and the clock of observations after them, so that no two wait for each
    other; PostgreSQL gives them back at its end. Completion and erasure alone ask the bucket under one, ``SALE``.
    """

    SCHEMA = 0x65766964  # schemas change: two upgrades at once become one after the other
    CLIENT_LOAD = 0x6C6F6164  # a load of clients stores its rows: the next one finds those that are registered
    CREDENTIALS = 0x63726564  # a manifest is issued: two at once could each make a record for the same file
    OPEN_FORMS = 0x666F726D  # open forms of a sale are counted: two at once could each take the last place
    SALE = 0x73616C65  # a sale is completed, held or erased, or a record of it withdrawn: one after the other
    SALES_LOAD = 0x6D657267  # sales are merged from a file: two with the same new sale would fail each other
    OBJECT_HISTORY = 0x73796E63  # the bucket is read: no reading puts back an older listing
    FINDING_HISTORY = 0x66696E64  # the lives of findings are noted: two audits become one after the other
    CUSTODY_SEAL = 0x7365616C  # the chain of the custody log grows


def take(connection: Connection, lock: Lock, *name: str) -> None:
    """Wait for the lock, or for that of one thing by its name, and hold it until the transaction ends."""
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(lock.value, *map(sa.func.hashtext, name))))
