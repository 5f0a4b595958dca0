"""The tables of a snapshot: as an engine sees them, and as DuckDB answers the statements that read PostgreSQL's.

A snapshot holds no words of people or about them, and no keys of objects. Those that a report shows are asked of
the database by ids; where it cannot be asked, they are null.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import ibis
import pyarrow as pa
import sqlalchemy as sa
from ibis import Table

from toolkit.operations.judge.audit.engines import Engine
from toolkit.operations.private_folder import PrivateFolder
from toolkit.operations.snapshot.contents import CLOSINGS, CONTENTS, PARTS, Content
from toolkit.operations.snapshot.reading import Snapshot
from toolkit.operations.snapshot.rows import PathOf, history_of, table_of_rows
from toolkit.storage.database import Database
from toolkit.storage.duckdb_session import DEFAULT_MEMORY, duckdb_session
from toolkit.storage.frames import read_arrow
from toolkit.storage.reader import DuckdbReader
from toolkit.storage.tables import AUDIT

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class SnapshotTables:
    """A snapshot whose tables are read, on this machine, by the statements that read those of the database."""

    exported: Snapshot
    path_of: PathOf
    scratch: Path
    """The folder under which DuckDB spills."""
    memory: str = DEFAULT_MEMORY
    people: Database | None = None
    """The database that the snapshot is of; ``None`` where it cannot be asked."""

    def at(self, moment: datetime) -> AbstractContextManager[DuckdbReader]:  # noqa: ARG002  # it holds every moment
        """Open the tables likewise."""
        return self.snapshot()

    @contextmanager
    def snapshot(self) -> Iterator[DuckdbReader]:
        """Open the tables for reading."""
        with PrivateFolder(self.scratch) as scratch, duckdb_session(scratch, self.memory) as session:
            session.execute(f"CREATE SCHEMA {AUDIT}")
            for content in CONTENTS:
                session.execute(self._view(session, content))
            session.execute(_REQUESTS)
            yield DuckdbReader(session)

    def _view(self, session: DuckDBPyConnection, content: Content) -> str:
        """Return a view of the rows in the types of the database, with the columns that stayed there."""
        told = {name: f"seen.{name}" for name in content.schema.names}
        rows = f"({history_of(session, self.exported, content, self.path_of)}) AS seen"
        for column in content.table.columns:
            if isinstance(column.type, sa.Uuid) and column.name in told:
                told[column.name] = f"CAST(seen.{column.name} AS uuid)"
        if "active_parts" in told:
            told["active_parts"] = f"string_split(nullif(seen.active_parts, ''), '{PARTS}')"
        if content.personal:
            key, *_ = content.schema.names
            told |= {name: f"asked.{name}" for name in content.personal}
            rows += f" LEFT JOIN {self._asked(session, content, key)} AS asked ON asked.{key} = seen.{key}"
        columns = ", ".join(f"{expression} AS {name}" for name, expression in told.items())
        return f"CREATE VIEW {content.table.fullname} AS SELECT {columns} FROM {rows}"  # noqa: S608  # our own names

    def _asked(self, session: DuckDBPyConnection, content: Content, key: str) -> str:
        """Return the name of a table with the columns that stayed in the database, and their key."""
        schema = pa.schema(dict.fromkeys((key, *content.personal), pa.string()))
        found = schema.empty_table()
        if self.people is not None:
            query = f"SELECT {', '.join(schema.names)} FROM {content.table.fullname}"  # noqa: S608  # our own names
            with self.people.snapshot() as connection:
                found = read_arrow(connection, query, schema)
        return table_of_rows(session, f"asked_{content.name}", found)


def table_of(engine: Engine, snapshot: Snapshot, content: Content, path_of: PathOf) -> Table:
    """Return the rows of all exports, ended where a later export says so."""
    rows = engine.parquet([path_of(file) for file in snapshot.files(content.name, "rows")], content.schema)
    rows = rows.select(*content.schema.names)
    if not content.closes:
        return rows
    closings = engine.parquet([path_of(file) for file in snapshot.files(content.name, "closings")], CLOSINGS)
    ended = closings.select(closed="id", ended_at="gone_at")
    found = rows.left_join(ended, rows.id == ended.closed)
    return found.mutate(gone_at=ibis.coalesce(found.gone_at, found.ended_at)).select(*content.schema.names)


def cpfs_of(people: Database, clients: Collection[str]) -> dict[str, str]:
    """Return the CPFs of these clients by their ids."""
    with people.snapshot() as connection:
        found = connection.execute(sa.text(_CPFS), {"ids": list(clients)})
        return {row.id: row.cpf for row in found}


def keys_of(people: Database, reader: DuckdbReader, pseudonyms: Collection[str]) -> dict[str, str]:
    """Return the keys of objects by their pseudonyms, sorted by the keys as the database sorts them."""
    seen = reader.execute(sa.text(_SEEN_UNDER), {"pseudonyms": list(pseudonyms)}).all()
    named = {(row.kind, row.id): row.pseudonym for row in seen}
    ids = {kind: [row.id for row in seen if row.kind == kind] for kind in ("objects", "records")}
    with people.snapshot() as connection:
        return {named[row.kind, row.id]: row.key for row in connection.execute(sa.text(_KEYS), ids)}


_REQUESTS: Final = """
    CREATE VIEW audit.evidence_requests AS
    SELECT DISTINCT evidence_id, nullif(requested_for, '') AS partner
    FROM audit.evidence_observations WHERE requested_for IS NOT NULL
"""

_CPFS: Final = """
    SELECT CAST(id AS text) AS id, cpf FROM audit_service.clients WHERE id = ANY(CAST(:ids AS uuid[]))
"""

_SEEN_UNDER: Final = """
    SELECT 'objects' AS kind, min(id) AS id, key AS pseudonym
    FROM audit.object_observations WHERE key IN (SELECT unnest(:pseudonyms)) GROUP BY key
    UNION ALL
    SELECT 'records', id, object_key
    FROM audit.evidence_observations WHERE object_key IN (SELECT unnest(:pseudonyms))
"""
"""Observations of records may have been moved; one at least of each key is still in the database."""

_KEYS: Final = """
    SELECT 'objects' AS kind, id, key FROM audit.object_observations WHERE id = ANY(:objects)
    UNION ALL
    SELECT 'records', id, object_key FROM audit.evidence_observations WHERE id = ANY(:records)
    ORDER BY key
"""
