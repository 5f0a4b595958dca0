"""Prove a mapping on the data: what the audit could not read, would misread, or would leave out.

Rows are counted and up to three are named by their ids; no other value of a row is shown, except codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import psycopg
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from toolkit.domain.evidence import EvidenceType, UtilityGroup
from toolkit.storage.database import Database
from toolkit.storage.service_map.catalog import CatalogTable, read_catalog
from toolkit.storage.service_map.model import DEMANDED, NEEDED, ServiceMap, own_tables
from toolkit.storage.service_map.writing import every_obstacle, resolver
from toolkit.storage.tables import OWN_TABLES, SERVICE

_TRIED_KEYS: Final = 20


@dataclass(frozen=True)
class Deviation:
    """A property of the data that the audit cannot work with; ``column`` is the contract's."""

    relation: str
    column: str
    problem: str
    rows: int
    examples: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The deviation in a line."""
        named = f" ({', '.join(self.examples)}{', ...' if self.rows > len(self.examples) else ''})"
        return f"{self.relation}.{self.column}: {self.rows} rows: {self.problem}{named if self.examples else ''}"


@dataclass(frozen=True)
class Proof:
    """The outcome: the rows of each relation, the deviations, and notes for the operator."""

    rows: dict[str, int]
    deviations: tuple[Deviation, ...]
    notes: tuple[str, ...]


def prove(database: Database, mapping: ServiceMap | None, holds: Callable[[str], bool] | None = None) -> Proof:
    """Look at all the data once, as of one moment.

    Args:
        database: with the views made from ``mapping``.
        mapping: ``None`` stands for the contract's own tables.
        holds: tells whether an object lies in the bucket under a key; ``None`` where there is no bucket to ask.
    """
    described = mapping or own_tables()
    with database.snapshot() as connection:
        readable, unreadable = _read(connection, described)
        deviations = [*unreadable]
        if not unreadable:
            for look in (_nulls, _repeated, _codes, _times, _orphans):
                deviations += look(connection, described)
            if holds is not None:
                deviations += _keys(connection, holds)
        notes = (
            *_hidden(connection, OWN_TABLES if mapping is None else SERVICE),
            *_notes(connection, described),
        )
    return Proof(readable, tuple(deviations), notes)


def _read(connection: Connection, mapping: ServiceMap) -> tuple[dict[str, int], list[Deviation]]:
    """Return the rows of each relation, and the columns in which some value cannot be read."""
    counts: dict[str, int] = {}
    unreadable = []
    for name in mapping.relations:
        counts[name] = connection.execute(sa.text(f"SELECT count(*) FROM {SERVICE}.{name}")).scalar_one()  # noqa: S608
        for column in NEEDED[name].columns:
            try:
                with connection.begin_nested():
                    connection.execute(sa.text(f"SELECT count({column.name}) FROM {SERVICE}.{name}"))  # noqa: S608
            except DBAPIError as error:
                if not isinstance(error.orig, psycopg.DataError):
                    raise
                kind = f"some value is no {column.type.compile()} [{error.orig.sqlstate}]".lower()
                unreadable.append(Deviation(name, column.name, kind, counts[name]))
    return counts, unreadable


def _nulls(connection: Connection, mapping: ServiceMap) -> Iterator[Deviation]:
    """Yield rows without what the audit needs of them."""
    for name, relation in mapping.relations.items():
        for column in () if relation.absent else DEMANDED[name]:
            empty = "no value, or a code that means none" if relation.columns[column].codes else "no value"
            yield from _counted(connection, name, column, f"{column} IS NULL", empty)


def _repeated(connection: Connection, mapping: ServiceMap) -> Iterator[Deviation]:
    for name, column in (*((each, "id") for each in NEEDED), ("evidences", "object_key")):
        if mapping.relations[name].absent:
            continue
        query = f"""
            SELECT count(*), (array_agg(value ORDER BY value))[1:3]
            FROM (SELECT {column}::text AS value FROM {SERVICE}.{name} WHERE {column} IS NOT NULL
                  GROUP BY 1 HAVING count(*) > 1) AS repeated
        """  # noqa: S608  # names of our relations
        count, examples = connection.execute(sa.text(query)).one()
        if count:
            shown = tuple(examples) if column == "id" else ()
            yield Deviation(name, column, "the same value stands in more than one row", count, shown)


def _codes(connection: Connection, mapping: ServiceMap) -> Iterator[Deviation]:
    for name, column, known in (
        ("sales", "utility_group", list(UtilityGroup)),
        ("evidences", "evidence_type", list(EvidenceType)),
    ):
        if mapping.relations[name].absent:
            continue
        query = f"SELECT {column}, count(*) FROM {SERVICE}.{name} WHERE {column} <> ALL(:known) GROUP BY 1 ORDER BY 2 DESC, 1"  # noqa: S608, E501
        found = connection.execute(sa.text(query), {"known": [str(each) for each in known]}).all()
        if found:
            shown = ", ".join(repr(value) for value, _ in found[:5]) + (", ..." if len(found) > 5 else "")
            rows = sum(count for _, count in found)
            yield Deviation(name, column, f"the contract does not know {shown}; codes can say what it means", rows)


def _times(connection: Connection, mapping: ServiceMap) -> Iterator[Deviation]:
    for name, relation in mapping.relations.items():
        for column in NEEDED[name].columns:
            if not isinstance(column.type, sa.DateTime) or relation.absent or relation.columns[column.name].absent:
                continue
            yield from _counted(connection, name, column.name, f"NOT isfinite({column.name})", "an infinite time")
            if column.name == "expires_at":
                continue
            future = f"isfinite({column.name}) AND {column.name} > now() + interval '5 minutes'"
            yield from _counted(connection, name, column.name, future, "lies in the future: is its zone right?")
    if not mapping.sales.columns["completed_at"].absent:
        before = "completed_at < created_at"
        yield from _counted(
            connection, "sales", "completed_at", before, "lies before created_at: is its zone right?"
        )


def _orphans(connection: Connection, mapping: ServiceMap) -> Iterator[Deviation]:
    for name, column, other in (
        ("addresses", "client_id", "clients"),
        ("sales", "client_id", "clients"),
        ("evidences", "sale_id", "sales"),
    ):
        relation = mapping.relations[name]
        if relation.absent or mapping.relations[other].absent or relation.columns[column].absent:
            continue
        missing = f"{column} IS NOT NULL AND NOT EXISTS (SELECT FROM {SERVICE}.{other} AS there WHERE there.id = {column})"  # noqa: E501
        yield from _counted(connection, name, column, missing, f"names none of the {other} that are read")


def _counted(connection: Connection, name: str, column: str, condition: str, problem: str) -> Iterator[Deviation]:
    query = f"SELECT count(*), (array_agg(id::text ORDER BY id))[1:3] FROM {SERVICE}.{name} WHERE {condition}"  # noqa: S608
    count, examples = connection.execute(sa.text(query)).one()
    if count:
        yield Deviation(name, column, problem, count, tuple(example for example in examples if example))


def _keys(connection: Connection, holds: Callable[[str], bool]) -> Iterator[Deviation]:
    """Compare the keys of the newest records with the objects in the bucket."""
    query = f"""
        SELECT id::text, object_key FROM {SERVICE}.evidences WHERE object_key IS NOT NULL
        ORDER BY requested_at DESC, id LIMIT {_TRIED_KEYS}
    """  # noqa: S608
    rows = connection.execute(sa.text(query)).all()
    lacking = [row for row in rows if not holds(row.object_key)]
    if rows and len(lacking) == len(rows):
        problem = f"none of the {len(rows)} newest lies in the bucket"
        if any(row.object_key.startswith("/") and holds(row.object_key.lstrip("/")) for row in rows):
            problem += '; without the slash in front they do: add strip = "/+"'
        yield Deviation("evidences", "object_key", problem, len(rows), tuple(row.id for row in rows[:3]))


def _hidden(connection: Connection, schema: str) -> Iterator[str]:
    """Yield the tables whose policies hide rows from the role that reads them."""
    for table, role in connection.execute(sa.text(_POLICIES), {"schema": schema, "names": list(NEEDED)}):
        yield (
            f"{table} has row level security, which holds for role {role}: rows that its policies hide are in no "
            f"count, audit or report. The administrator can lift it: ALTER ROLE {role} BYPASSRLS"
        )


_POLICIES: Final = """
    SELECT DISTINCT hidden.oid::regclass::text, quote_ident(reader.rolname)
    FROM pg_class AS named
    JOIN pg_namespace AS space ON space.oid = named.relnamespace
    LEFT JOIN pg_rewrite ON ev_class = named.oid
    LEFT JOIN pg_depend AS used ON used.classid = 'pg_rewrite'::regclass AND used.objid = pg_rewrite.oid
         AND used.refclassid = 'pg_class'::regclass
    JOIN pg_class AS hidden ON hidden.oid = coalesce(used.refobjid, named.oid)
    JOIN pg_roles AS reader
         ON reader.rolname = CASE named.relkind WHEN 'v' THEN pg_get_userbyid(named.relowner) ELSE current_user END
    WHERE nspname = :schema AND named.relname = ANY(:names) AND hidden.relrowsecurity
      AND NOT reader.rolsuper AND NOT reader.rolbypassrls
      AND (hidden.relforcerowsecurity OR NOT pg_has_role(reader.oid, hidden.relowner, 'USAGE'))
    ORDER BY 1
"""


def _notes(connection: Connection, mapping: ServiceMap) -> Iterator[str]:
    encoding = connection.execute(sa.text("SELECT current_setting('server_encoding')")).scalar_one()
    if encoding != "UTF8":
        yield f"The database is encoded in {encoding}: what that cannot write, such as emoji, is refused."
    catalog = read_catalog(connection)
    resolve = resolver(connection, catalog)
    refused = every_obstacle(mapping, resolve)
    yield from dict.fromkeys(refused.values())
    for name, relation in mapping.relations.items():
        table = None if relation.absent or relation.is_query else resolve(relation.from_)
        if table is not None and f"{name}.insert" not in refused:
            yield from _limits(name, table, mapping)


def _limits(name: str, table: CatalogTable, mapping: ServiceMap) -> Iterator[str]:
    """Yield the columns of the table that take less than the contract allows."""
    lengths = [
        f"{column} ({found.length})"
        for column, source in mapping.relations[name].columns.items()
        if (found := table.columns.get(source.column or "")) is not None
        and found.length is not None
        and found.length < _LONGEST.get(column, _USUAL)
    ]
    if lengths:
        yield f"{name}: a value that is longer than its column is refused: {', '.join(lengths)} characters."
    unique = [
        column
        for column, source in mapping.relations[name].columns.items()
        if column not in {"id", "object_key"}
        and (found := table.columns.get(source.column or "")) is not None
        and found.unique
    ]
    if unique:
        yield f"{name}: a second row with the same {', '.join(unique)} is refused."


_LONGEST: Final = {"cpf": 11, "phone_number": 11, "installation_number": 11, "zip_code": 9, "evidence_type": 40}
_USUAL: Final = 100
"""Characters that a text may well have where the contract states no limit."""
