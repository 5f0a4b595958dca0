"""Ask the statements that read PostgreSQL's tables of DuckDB, too, where tables of the same names are."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.engine.result import IteratorResult, SimpleResultMetaData

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_DIALECT: Final = PGDialect(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]

_FUNCTIONS: Final = """
    CREATE MACRO array_remove(list, item) AS list_filter(list, lambda each: each <> item)
"""
"""Functions of PostgreSQL that DuckDB lacks, and a statement calls."""


class DuckdbReader:
    """Answers as a connection to PostgreSQL does, statements that only read."""

    def __init__(self, session: DuckDBPyConnection) -> None:
        self._session = session
        session.execute("SET arrow_lossless_conversion = true")  # ids stay ids
        session.execute(_FUNCTIONS)

    def execute(self, statement: sa.Executable, given: Mapping[str, Any] | None = None, /) -> sa.Result[Any]:
        """Return the rows of a statement; ``given`` are its parameters."""
        compiled = statement.compile(dialect=_DIALECT, compile_kwargs={"render_postcompile": True})  # type: ignore[attr-defined]
        bound = compiled.construct_params(given)
        found = self.arrow(str(compiled), [_plain(bound[name]) for name in compiled.positiontup or ()])
        rows = zip(*(column.to_pylist() for column in found.columns), strict=True)
        return IteratorResult(SimpleResultMetaData(found.column_names), rows)

    def scalar(self, statement: sa.Executable, given: Mapping[str, Any] | None = None, /) -> Any:
        """Return the first value, ``None`` where there is no row."""
        return self.execute(statement, given).scalar()

    def scalars(self, statement: sa.Executable) -> sa.ScalarResult[Any]:
        """Return the first value of each row."""
        return self.execute(statement).scalars()

    def arrow(self, query: str, given: list[Any] | None = None) -> pa.Table:
        """Return the rows of a query as columns."""
        return self._session.sql(query, params=given or []).to_arrow_table()


Reader = Connection | DuckdbReader
"""Something that answers statements which read."""


class Place(Protocol):
    """A place whose tables can be read as of one moment: the database, or a snapshot."""

    def snapshot(self) -> AbstractContextManager[Reader]:
        """Open it for reading."""

    def at(self, moment: datetime) -> AbstractContextManager[Reader]:
        """Open it to read the observations of a moment."""


def _plain(value: Any) -> Any:
    """Return a text for one of an enumeration, which DuckDB does not take for a text."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, str) else value
