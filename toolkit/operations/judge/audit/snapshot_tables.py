"""The tables of a snapshot: as an engine sees them, and as DuckDB answers the statements that read PostgreSQL's.

A snapshot holds no words of people or about them, and no keys of objects. Those that a report shows are asked of
the database by ids; where it cannot be asked, they are null.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import ibis
import pyarrow as pa
import sqlalchemy as sa
from ibis import Table

from toolkit.operations.judge.audit.engines import DuckdbEngine, Engine, duckdb_engine
from toolkit.operations.private_folder import PrivateFolder
from toolkit.operations.snapshot import Snapshot
from toolkit.operations.snapshot.contents import CLOSINGS, CONTENTS, PARTS, Content
from toolkit.operations.snapshot.manifest import File
from toolkit.storage.database import Database
from toolkit.storage.duckdb_session import DEFAULT_MEMORY
from toolkit.storage.frames import stream_arrow
from toolkit.storage.reader import DuckdbReader
from toolkit.storage.tables import evidence_observations, evidence_requests

PathOf = Callable[[File], str]
"""Tells where a file of a snapshot is."""


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

    @contextmanager
    def snapshot(self) -> Iterator[DuckdbReader]:
        """Open the tables for reading."""
        with PrivateFolder(self.scratch) as scratch, duckdb_engine(scratch, self.memory) as engine:
            found = {content.table: self._told(engine, content) for content in CONTENTS}
            records = found[evidence_observations]
            asked = records.filter(records.requested_for.notnull()).distinct(on="evidence_id")
            found[evidence_requests] = asked.select("evidence_id", partner=asked.requested_for.nullif(""))
            yield engine.reader(found)

    def _told(self, engine: DuckdbEngine, content: Content) -> Table:
        """Return the rows in the types of the database, with the columns that stayed there."""
        rows = table_of(engine, self.exported, content, self.path_of)
        if content.personal:
            key, *_ = content.schema.names
            rows = rows.left_join(self._asked(engine, content, key), key).select(*rows.columns, *content.personal)
        if "active_parts" in rows.columns:
            rows = rows.mutate(active_parts=rows.active_parts.nullif("").split(PARTS))
        ids = [column.name for column in content.table.columns if isinstance(column.type, sa.Uuid)]
        return rows.mutate(**{name: rows[name].cast("uuid") for name in ids if name in rows.columns})

    def _asked(self, engine: DuckdbEngine, content: Content, key: str) -> Table:
        """Return the columns of a table that stayed in the database, with their key."""
        schema = pa.schema(dict.fromkeys((key, *content.personal), pa.string()))
        if self.people is None:
            return ibis.memtable(schema.empty_table())
        query = f"SELECT {', '.join(schema.names)} FROM {content.table.fullname}"  # noqa: S608  # our own names
        with self.people.snapshot() as connection:
            return engine.taken(stream_arrow(connection, query, schema), ibis.schema(schema))


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


_CPFS: Final = """
    SELECT CAST(id AS text) AS id, cpf FROM audit_service.clients WHERE id = ANY(CAST(:ids AS uuid[]))
"""

_SEEN_UNDER: Final = """
    SELECT 'objects' AS kind, min(id) AS id, key AS pseudonym
    FROM audit.object_observations WHERE key IN (SELECT unnest(:pseudonyms)) GROUP BY key
    UNION ALL
    SELECT 'records', min(id), object_key
    FROM audit.evidence_observations WHERE object_key IN (SELECT unnest(:pseudonyms)) GROUP BY object_key
"""

_KEYS: Final = """
    SELECT 'objects' AS kind, id, key FROM audit.object_observations WHERE id = ANY(:objects)
    UNION ALL
    SELECT 'records', id, object_key FROM audit.evidence_observations WHERE id = ANY(:records)
    ORDER BY key
"""
