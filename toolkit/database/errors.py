"""Translate errors of PostgreSQL and its driver into those of the toolkit, at one boundary.

The texts say what the server or libpq said, as far as that cannot quote a row: an error's primary message names
tables, columns and constraints; its detail, which may quote values, is left out.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import psycopg
from sqlalchemy.exc import DBAPIError, InterfaceError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from toolkit.errors import DatabaseError, DatabaseUnavailable, LoginRefused, SchemaMismatch
from toolkit.message import Message

_OPTION_TROUBLE: Final = re.compile(
    r"certificate|sslmode|SSL|could not translate host name|invalid .* value|root cert|require_auth|sslrootcert"
    r"|authentication method"
)
"""Words of libpq about the address or its options; trying again later does not help."""

_UNPROTECTED: Final = re.compile(r"certificate|SSL|root cert|authentication method")

_TIMEOUTS: Final = {
    "57014": "statement_timeout",
    "25P03": "idle_in_transaction_session_timeout",
    "25P04": "transaction_timeout",
    "57P05": "idle_session_timeout",
}
"""The settings that end a statement or a session, by what the server says then."""

_CASES: Final = {
    **dict.fromkeys(("28P01", "28000"), "login"),
    "3D000": "database",
    **dict.fromkeys(("42P01", "3F000", "42703"), "lacks"),
    **dict.fromkeys(("40001", "40P01", "55P03"), "locked"),
    **dict.fromkeys(_TIMEOUTS, "ended"),
    "25006": "readonly",
}

SENTENCES: Final = {
    "login": "The database at {} refused the login; check {}.",
    "database": "There is no such database at {}; check {}.",
    "lacks": "The database at {} lacks a table or column ({}). Run: toolkit db upgrade; for a table of the "
    "service: toolkit db check",
    "locked": "Somebody else keeps a row locked in the database at {}. Nothing was changed; try again later.",
    "ended": "The database at {0} broke off: {1}. Either its administrator cancelled it, or it took longer than a "
    "time-out allows. Audits, reports and exports take long: ALTER ROLE ... SET {2} allows them, or "
    "?options=-c{2}%3D10min in DATABASE_READ_URL or DATABASE_URL, for these sessions.",
    "readonly": "The database at {} refused: {}. DATABASE_URL names a replica, or its role or database has "
    "default_transaction_read_only: name the primary, and a role that may write.",
    "recovery": "The replica at {} broke off: {}. Its primary changed what the statement still reads: try again, "
    "let its administrator allow more time by max_standby_streaming_delay or hot_standby_feedback, or ask the "
    "primary, without DATABASE_READ_URL.",
    "value": "The database at {} refused a value that does not fit{} [{}]. See: toolkit db check",
    "protection": "Another machine is reached by TLS with a verified certificate and without a readable password. "
    "Name the file of its authority by ?sslrootcert=FILE in {}, or allow less there, such as ?sslmode=require.",
}
"""The sentences of the cases, with the address and what the server said."""

_KINDS: Final[dict[str, type[DatabaseError]]] = {
    "lacks": SchemaMismatch,
    **dict.fromkeys(("login", "database"), LoginRefused),
    **dict.fromkeys(("locked", "ended", "readonly"), DatabaseUnavailable),
}

_COPIED: Final = re.compile(r"COPY (\S+), line (\d+)(?:, column (\w+))?")
_VERB: Final = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|CREATE|TRUNCATE|ALTER)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ErrorTranslation:
    """The translation for one database: its ``address`` without user and password, which a ``variable`` names.

    ``secret`` is left out of what libpq said.
    """

    address: str
    embedded: bool
    secret: str | None = field(repr=False)
    variable: str = "DATABASE_URL"

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Raise the toolkit's errors instead of those of SQLAlchemy and psycopg.

        Raises:
            DatabaseUnavailable: nobody answers, or the connection broke; trying again later may help.
            SchemaMismatch: a table or column is missing.
            DatabaseError: the database refused a statement.
        """
        try:
            yield
        except psycopg.Error as error:
            raise self._translated(error) from None
        except PoolTimeout:
            raise DatabaseUnavailable(
                "The database at {} has no free connection; try again later.", self.address
            ) from None
        except SQLAlchemyError as error:
            if isinstance(error, DBAPIError) and isinstance(error.orig, psycopg.Error):
                lost = error.connection_invalidated or isinstance(error, InterfaceError)
                first = error.orig.__context__  # what broke the connection, which cannot be rolled back either
                cause = first if isinstance(first, psycopg.Error) and first.sqlstate else error.orig
                raise self._translated(cause, lost=lost, statement=error.statement or "") from None
            raise DatabaseError("The database at {} failed: {}.", self.address, type(error).__name__) from None

    def _translated(self, error: psycopg.Error, *, lost: bool = False, statement: str = "") -> DatabaseError:
        state, at = error.sqlstate or _state_at_connect(error), self.address
        said = _first_line(error) if state else self._words(error)
        case = "recovery" if "conflict with recovery" in said else _CASES.get(state)
        if case is not None:
            more = self.variable if case in {"login", "database"} else said
            return _KINDS.get(case, DatabaseError)(SENTENCES[case], at, more, _TIMEOUTS.get(state, ""))
        if state == "42501" and "row-level security" not in said:
            # A row that is locked FOR UPDATE needs that right, too.
            verbs = ", ".join(dict.fromkeys(verb[1].upper() for verb in _VERB.finditer(statement)))
            right = (
                Message(" (the statement needs {})", verbs) if verbs and "permission denied for" in said else ""
            )
            return DatabaseError(
                "The database at {} refused: {}{}. Its owner grants what is missing: toolkit db grants --help",
                *(at, said, right),
            )
        is_option = isinstance(error, psycopg.ProgrammingError)
        is_link = isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
        if not state and (is_option or (is_link and _OPTION_TROUBLE.search(said))):
            unprotected = _UNPROTECTED.search(said)
            advice = Message(SENTENCES["protection"] if unprotected else "Check {}.", self.variable)
            return DatabaseError("The database at {} cannot be reached: {} {}", at, said, advice)
        if lost or state.startswith(("08", "53", "57P")) or (not state and is_link):
            hint = Message("Check {} and that the server is up.", self.variable)
            reason = f" ({said.removesuffix('.')})"
            return DatabaseUnavailable(
                "The database at {} does not answer{}. {}",
                *(at, reason, Message("Run: toolkit status") if self.embedded else hint),
            )
        if state.startswith("22"):  # a value that does not fit; the message quotes it
            return DatabaseError(SENTENCES["value"], at, _place(error), state)
        reason = f"{said} [{state}]" if state else type(error).__name__
        check = ". See: toolkit db check" if state.startswith(("21", "23")) and not self.embedded else ""
        return DatabaseError("The database at {} refused: {}{}", at, reason, check)

    def _words(self, error: psycopg.Error) -> str:
        """Return libpq's first line, without the password that a server might repeat."""
        words = str(error).partition("\n")[0].strip()
        words = words.replace(self.secret, "***") if self.secret else words
        return words if words.endswith(".") else f"{words}."


def _place(error: psycopg.Error) -> str:
    """Return the table and column of a value that did not fit, as far as PostgreSQL names them."""
    why = f": {_first_line(error)}" if error.sqlstate in ("22001", "22P05") else ""  # the others quote the value
    copied = _COPIED.search(error.diag.context or "")
    if copied is None:
        return why
    column = f".{copied[3]}" if copied[3] else ""
    return f"{why}, in row {copied[2]} of what was copied into {copied[1]}{column}"


def _state_at_connect(error: psycopg.Error) -> str:
    """Return the SQLSTATE of a failed login: until a session exists, libpq hands on the server's words only."""
    words = str(error)
    if "authentication failed" in words or "no pg_hba.conf entry" in words or 'FATAL:  role "' in words:
        return "28000"
    return "3D000" if 'FATAL:  database "' in words and "does not exist" in words else ""


def as_psycopg(state: str | None, said: str) -> psycopg.Error:
    """Return what another driver of PostgreSQL was told as the error that psycopg would raise."""
    words = re.search(r"(\w+):  (.+)", said)  # the severity and the text, in the server's language
    if words and words[1] != "FATAL":  # the driver forgets the state of what ends a statement half-way
        state = state or "57014"
    try:
        kind = psycopg.errors.lookup(state or "")
    except KeyError:
        kind = psycopg.OperationalError
    return kind(words[2] if words else "" if state else said)  # without a state: libpq, which could not connect


def _first_line(error: psycopg.Error) -> str:
    return (error.diag.message_primary or str(error)).partition("\n")[0]
