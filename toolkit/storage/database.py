"""The database: one engine, transactions, and the one boundary where its errors become ours."""

from __future__ import annotations

import re
import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
import sqlalchemy as sa
from psycopg import sql
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, DisconnectionError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from toolkit.errors import DatabaseError, DatabaseUnavailable, SchemaMismatch
from toolkit.storage.tables import OWN_TABLES, SERVICE

_LINK_ERRORS: Final = (psycopg.OperationalError, psycopg.InterfaceError)
"""Without an SQLSTATE these say that the connection could not be made, or broke."""

CONNECT_TIMEOUT = 10
"""Seconds until an address that does not answer counts as unavailable."""


class Database:
    """A PostgreSQL database; cheap to keep for a whole process, safe to share between threads.

    ``embedded`` tells whether it is the one that the toolkit started itself. ``mapped`` tells that the sales
    service is read through views in schema ``audit_service``; otherwise its tables are the contract's own, and
    every statement finds them in ``public`` under that name.
    """

    def __init__(self, url: str, *, embedded: bool = False, mapped: bool = False, pool_size: int = 5) -> None:
        self.embedded = embedded
        self.mapped = mapped
        self.engine: Engine = sa.create_engine(
            url,
            hide_parameters=True,
            pool_size=pool_size,
            max_overflow=pool_size,
            pool_timeout=CONNECT_TIMEOUT,
            connect_args={
                "connect_timeout": CONNECT_TIMEOUT,
                "application_name": "toolkit",
                "cursor_factory": psycopg.Cursor if mapped else _OwnTablesCursor,
            },
        )
        sa.event.listen(self.engine, "checkout", _refuse_lost)
        self._alone = self.engine.execution_options(isolation_level="AUTOCOMMIT")

    @property
    def address(self) -> str:
        """The address of the database, without user and password."""
        if self.embedded:
            return "embedded PostgreSQL"
        url = self.engine.url
        return f"{url.host or 'local socket'}:{url.port or 5432}/{url.database or ''}"

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A connection whose work is committed at the end, or rolled back when an exception leaves.

        Raises:
            DatabaseUnavailable: nobody answers, or the connection broke.
            DatabaseError: the database refused a statement.
        """
        with self._translated(), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def statement(self) -> Iterator[Connection]:
        """A connection for a single statement, which is a transaction by itself; raises as ``transaction`` does.

        It takes one round trip to the server; beginning and committing would take two more.
        """
        with self._translated(), self._alone.connect() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A repeatable-read transaction: every statement in it sees the same moment."""
        with self._translated(), self.engine.connect() as connection:
            connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    @contextmanager
    def raw(self) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
        """The psycopg connection of a pooled session, for COPY; commit and roll back as in ``transaction``."""
        with self.transaction() as connection:
            yield raw(connection)

    def dispose(self) -> None:
        """Close all idle connections."""
        self.engine.dispose()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise self._translate(error) from None
        except psycopg.Error as error:
            raise self._translate_driver(error) from None

    def _translate(self, error: SQLAlchemyError) -> DatabaseError:
        if isinstance(error, PoolTimeout):
            return DatabaseUnavailable(f"The database at {self.address} has no free connection; try again later.")
        if isinstance(error, DBAPIError):
            if isinstance(error.orig, psycopg.Error):
                lost = error.connection_invalidated or isinstance(error, InterfaceError)
                return self._translate_driver(error.orig, lost=lost)
            if isinstance(error, (OperationalError, InterfaceError)):
                return self._unavailable()
        return DatabaseError(f"The database at {self.address} failed: {type(error).__name__}.")

    def _translate_driver(self, error: psycopg.Error, *, lost: bool = False) -> DatabaseError:
        state = error.sqlstate or _state_at_connect(error)
        if state in {"28P01", "28000"}:
            return DatabaseError(f"The database at {self.address} refused the login; check DATABASE_URL.")
        if state == "3D000":
            return DatabaseError(f"There is no such database at {self.address}; check DATABASE_URL.")
        if state == "42501":
            return DatabaseError(f"The database at {self.address} denied a permission that the toolkit needs.")
        if state in {"42P01", "3F000", "42703"}:
            return SchemaMismatch(
                f"The database at {self.address} lacks a table or column; run: toolkit db upgrade"
            )
        if state.startswith("53"):
            return self._unavailable(_first_line(error))
        if lost or state.startswith(("08", "57P")) or (not state and isinstance(error, _LINK_ERRORS)):
            return self._unavailable()
        if state.startswith("22"):  # a value that does not fit; the message quotes it
            return DatabaseError(f"The database at {self.address} refused a value that does not fit [{state}].")
        # The primary message names tables and constraints; the detail, which may quote a row, is left out.
        reason = f"{_first_line(error)} [{state}]" if state else type(error).__name__
        return DatabaseError(f"The database at {self.address} refused: {reason}")

    def _unavailable(self, detail: str = "") -> DatabaseUnavailable:
        hint = "Run: toolkit status" if self.embedded else "Check DATABASE_URL and that the server is up."
        reason = f" ({detail})" if detail else ""
        return DatabaseUnavailable(f"The database at {self.address} does not answer{reason}. {hint}")


def raw(connection: Connection) -> psycopg.Connection[tuple[object, ...]]:
    """The psycopg connection beneath an SQLAlchemy one, inside the same transaction."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    return driver


class _OwnTablesCursor(psycopg.Cursor[Any]):
    """Finds the service's tables where they are the contract's own, without state in the session."""

    def execute(self, query: Any, *args: Any, **kwargs: Any) -> _OwnTablesCursor:
        return super().execute(self._found(query), *args, **kwargs)

    def executemany(self, query: Any, *args: Any, **kwargs: Any) -> None:
        super().executemany(self._found(query), *args, **kwargs)

    def copy(self, statement: Any, *args: Any, **kwargs: Any) -> Any:
        return super().copy(self._found(statement), *args, **kwargs)

    def _found(self, query: Any) -> Any:
        text = query.as_string(self) if isinstance(query, sql.Composable) else query
        return _SERVICE_SCHEMA.sub(f"{OWN_TABLES}.", text) if isinstance(text, str) else text


_SERVICE_SCHEMA: Final = re.compile(rf"\b{SERVICE}\.|\"{SERVICE}\"\.")


def _refuse_lost(connection: psycopg.Connection[object], *_: object) -> None:
    """Replace a pooled connection whose server went away.

    An idle connection has nothing to tell, so whatever can be read from it is its end. Asking the server
    instead (``pool_pre_ping``) would cost a third of a small transaction each time.
    """
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    if waiting.poll(0):
        raise DisconnectionError


def _state_at_connect(error: psycopg.Error) -> str:
    """The SQLSTATE of a failed login: until a session exists, libpq hands on the server's words only."""
    words = str(error)
    if "authentication failed" in words or "no pg_hba.conf entry" in words or 'FATAL:  role "' in words:
        return "28000"
    return "3D000" if 'FATAL:  database "' in words and "does not exist" in words else ""


def _first_line(error: psycopg.Error) -> str:
    return (error.diag.message_primary or "").partition("\n")[0]
