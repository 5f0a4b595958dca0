"""Tell which relations can be written, and make the triggers that write through their views.

What stands in the way is found when the views are made, and kept as the comment of each view: a command that
writes asks for it before it reads or writes anything.
"""

import json
import math
import time
from dataclasses import replace
from typing import Final
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.errors import WriteRefused
from toolkit.storage.database import Database
from toolkit.storage.service_map.catalog import CatalogTable, Column, read_catalog
from toolkit.storage.service_map.expressions import literal, quoted
from toolkit.storage.service_map.inverse import NotInvertible, Tables, assignments
from toolkit.storage.service_map.model import NEEDED, ServiceMap, own_tables
from toolkit.storage.tables import OWN_TABLES, SERVICE

INSERT: Final = "insert"
UPDATE: Final = "update"
COMPLETE: Final = "complete"
"""Setting ``completed_at`` alone."""

WRITTEN: Final = "written"
"""The column that each one is written to, beside the obstacles in the comment of a view."""

GIVEN: Final = "given.value"
"""Stands for the contract's value in the SQL of ``WRITTEN``."""

_NUMBERED: Final = "numbered"
_ONE_ROW: Final = "one row"
_BOTH: Final = {"clients": "addresses", "addresses": "clients"}
"""The relations that may stand in one row, each with the other."""

_UUID_LENGTH: Final = 36

FRESH: Final = 5.0
"""Seconds for which a long-running process relies on what it read of the service's tables."""

_known: WeakKeyDictionary[Database, tuple[float, dict[str, str]]] = WeakKeyDictionary()


def require_writable(database: Database, *works: str) -> None:
    """Make sure that the service's relations can be written; each work is as ``clients.insert``.

    Raises:
        WriteRefused: naming the column that stands in the way.
    """
    known = _obstacles(database, FRESH)
    for work in works:
        if reason := known.get(work):
            raise WriteRefused(reason)


def can_write(database: Database, work: str) -> bool:
    """Tell whether ``require_writable`` would let this work pass."""
    return work not in _obstacles(database)


def _obstacles(database: Database, age: float = math.inf) -> dict[str, str]:
    if database.embedded and not database.mapped:
        return {}
    if database not in _known or time.monotonic() - _known[database][0] > age:
        with database.transaction() as connection:
            found = kept(connection) if database.mapped else _found(connection)
        _known[database] = (time.monotonic(), found)
    return _known[database][1]


_NEXT: Final = """
    CREATE OR REPLACE FUNCTION {schema}.next_{name}(count bigint) RETURNS SETOF bigint
    LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
    AS 'SELECT nextval({sequence}) FROM generate_series(1, count)'
"""


def numbered(database: Database) -> set[str]:
    """Return the relations whose ids are numbers of a sequence."""
    if not database.mapped:
        return set()
    known = _obstacles(database)
    return {name for name in NEEDED if f"{name}.{_NUMBERED}" in known}


def have_one_row(database: Database) -> bool:
    """Tell whether a client and its address are one row, with one id."""
    return database.mapped and f"addresses.{_ONE_ROW}" in _obstacles(database)


def make_writable(connection: Connection, mapping: ServiceMap) -> None:
    """Make the triggers of all views, and keep what stands in the way of writing as their comments."""
    catalog = read_catalog(connection)
    tables = resolver(connection, catalog)
    if mapping.has_one_row_for_both:
        _execute(connection, _WAITING)
    for name in mapping.relations:
        found = obstacles(mapping, name, tables)
        for work in (INSERT, UPDATE):
            body = _body(mapping, name, work, tables, found)
            _execute(
                connection,
                f"CREATE OR REPLACE FUNCTION {SERVICE}.{work}_{name}() RETURNS trigger LANGUAGE plpgsql "
                f"SECURITY DEFINER SET search_path FROM CURRENT AS {literal(body)}",
            )
            _execute(
                connection,
                f"CREATE OR REPLACE TRIGGER {work}_row INSTEAD OF {work.upper()} ON {SERVICE}.{name} "
                f"FOR EACH ROW EXECUTE FUNCTION {SERVICE}.{work}_{name}()",
            )
        sequence = _sequence(mapping, name, tables)
        if INSERT not in found and sequence is not None:
            found[_NUMBERED] = sequence
            _execute(
                connection, _NEXT.format(schema=SERVICE, name=name, sequence=literal(literal(sequence))[1:-1])
            )
        if mapping.has_one_row_for_both and name in _BOTH:
            found[_ONE_ROW] = _BOTH[name]
        if INSERT not in found:
            found[WRITTEN] = json.dumps(_targets(mapping, name, tables))
        _execute(connection, f"COMMENT ON VIEW {SERVICE}.{name} IS {literal(json.dumps(found))}")


_WAITING: Final = f"""
    DROP TABLE IF EXISTS {SERVICE}.waiting_clients;
    CREATE TABLE {SERVICE}.waiting_clients (LIKE {SERVICE}.clients, PRIMARY KEY (id));
    CREATE OR REPLACE FUNCTION {SERVICE}.waits() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
        IF EXISTS (SELECT FROM {SERVICE}.waiting_clients WHERE id = NEW.id) THEN
            RAISE EXCEPTION 'clients cannot be written: the row also holds the address, and none was given.';
        END IF; RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER waits AFTER INSERT ON {SERVICE}.waiting_clients
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {SERVICE}.waits()
"""  # the name of our schema
"""A client waits here until its address comes, in the same transaction, where one row holds both."""


def obstacles(mapping: ServiceMap, name: str, tables: Tables) -> dict[str, str]:
    """Return the obstacles to each kind of writing, as sentences; none where it can be done."""
    relation, works = mapping.relations[name], (INSERT, UPDATE, COMPLETE)
    if mapping.read_only:
        return dict.fromkeys(
            works, f"The service's data are read only: so says read_only in the mapping ({name})."
        )
    table = None if relation.is_query or relation.absent else tables(relation.from_)
    if table is None or table.kind not in "rpf":
        read = f"it is read from {'a query' if relation.is_query else relation.from_}, which is no table"
        why = "the service has no such table" if relation.absent else read
        return dict.fromkeys(works, f"{name} cannot be written: {why}.")
    sharing = [
        other for other, each in mapping.relations.items() if other != name and each.from_ == relation.from_
    ]
    given, refused = _given(mapping, name, table, tables)
    inserted = {**given, **relation.insert}
    if mapping.has_one_row_for_both and name in _BOTH:
        theirs, also = _given(mapping, _BOTH[name], table, tables)
        inserted |= {**theirs, **mapping.relations[_BOTH[name]].insert}
        refused, sharing = {**also, **refused}, []
    found = {}
    lacking = [
        column.name
        for column in table.columns.values()
        if column.required and not column.filled and column.name not in inserted
    ]
    key = table.columns.get(relation.columns["id"].column or "")
    if key is not None and key.family in {"integer", "number"} and key.sequence is None and name != "sales":
        refused = {**refused, "id": f"is {key.name}, a number that no sequence gives"}
    if (
        key is not None
        and key.family == "text"
        and name != "sales"
        and (key.length or _UUID_LENGTH) < _UUID_LENGTH
    ):
        refused = {**refused, "id": f"is {key.name}, which takes {key.length} characters and no UUID"}
    if refused:
        column, why = next(iter(refused.items()))
        found[INSERT] = found[UPDATE] = f"{name} cannot be written: {column} {why}, which cannot be turned round."
        if "completed_at" in refused:
            found[COMPLETE] = f"{name} cannot be written: completed_at {refused['completed_at']}."
    if sharing and INSERT not in found:
        theirs, _ = _given(mapping, sharing[0], table, tables)
        other = next((column for column in theirs if column not in given), table.name)
        found[INSERT] = (
            f"{name} cannot be written: a row of {table.name} also holds {' and '.join(sharing)}, such as "
            f"{other}, and they are written one after the other."
        )
    elif lacking and INSERT not in found:
        found[INSERT] = (
            f"{name} cannot be written: {table.name}.{lacking[0]} must have a value, and the mapping gives none; "
            f"add it to insert of [{name}]."
        )
    if name == "sales" and relation.columns["completed_at"].absent:
        found[COMPLETE] = "sales cannot be completed: completed_at is absent from the service."
    return found


def _sequence(mapping: ServiceMap, name: str, tables: Tables) -> str | None:
    """Return the sequence that the ids of the relation come from, where they are numbers."""
    relation = mapping.relations[name]
    table = tables(relation.from_)
    key = None if table is None else table.columns.get(relation.columns["id"].column or "")
    return key.sequence if key is not None and key.family == "integer" and name != "sales" else None


def _given(
    mapping: ServiceMap, name: str, table: CatalogTable, tables: Tables, row: str = "NEW"
) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """Return each table column's value with the contract's column behind it, and those that cannot be inverted.

    The values are taken of ``row``, a record of the relation.
    """
    given: dict[str, tuple[str, str]] = {}
    refused: dict[str, str] = {}
    for column, source in mapping.relations[name].columns.items():
        try:
            for target, value in assignments(source, f"{row}.{column}", table, mapping.timezone, tables).items():
                if target not in given or column == "type":
                    given[target] = (column, value)
        except NotInvertible as reason:
            refused[column] = str(reason)
    return given, refused


def _targets(mapping: ServiceMap, name: str, tables: Tables) -> dict[str, list[object]]:
    """Return for each column that is written into one of the table: both, the SQL between them, mask and codes."""
    relation = mapping.relations[name]
    table = tables(relation.from_)
    found: dict[str, list[object]] = {}
    for column, source in relation.columns.items():
        if table is None or source.column is None or source.is_lookup or source.column in relation.insert:
            continue
        written = assignments(source, GIVEN, _of_texts(table), mapping.timezone, tables).get(source.column)
        if written is not None:
            found[column] = [table.name, source.column, written, source.mask or "", source.codes]
    return found


def _of_texts(table: CatalogTable) -> CatalogTable:
    """Return the table without the domains of its texts, whose rules would raise instead of answering."""
    columns = {
        column.name: replace(column, cast="text") if column.family == "text" else column
        for column in table.columns.values()
    }
    return replace(table, columns=columns)


def _body(mapping: ServiceMap, name: str, work: str, tables: Tables, found: dict[str, str]) -> str:
    """Return the body of the trigger's function."""
    relation = mapping.relations[name]
    allowed = work not in found or (work == UPDATE and name == "sales" and COMPLETE not in found)
    table = None if relation.is_query or relation.absent else tables(relation.from_)
    if not allowed or table is None:
        return f"BEGIN RAISE EXCEPTION USING MESSAGE = {literal(found.get(work, ''))}; END"
    given, refused = _given(mapping, name, table, tables)
    if work == INSERT:
        if mapping.has_one_row_for_both and name == "clients":
            return f"BEGIN INSERT INTO {SERVICE}.waiting_clients SELECT NEW.*; RETURN NEW; END"
        values = {column: _or_default(value, table.columns[column]) for column, (_, value) in given.items()}
        values |= relation.insert
        before = "BEGIN"
        if mapping.has_one_row_for_both and name == "addresses":
            client = _given(mapping, "clients", table, tables, "client")[0]
            theirs = {column: _or_default(value, table.columns[column]) for column, (_, value) in client.items()}
            values |= theirs
            # The mapping calls the row that is written NEW, which is the address here.
            values |= {column: sql.replace("NEW.", "client.") for column, sql in mapping.clients.insert.items()}
            waiting = f"DELETE FROM {SERVICE}.waiting_clients WHERE id = NEW.client_id RETURNING * INTO client"  # noqa: S608
            before = f"DECLARE client {SERVICE}.waiting_clients; BEGIN {waiting};"
        columns, items = ", ".join(map(quoted, values)), ", ".join(values.values())
        statement = f"INSERT INTO {relation.from_} ({columns}) OVERRIDING SYSTEM VALUE VALUES ({items})"  # noqa: S608
        return f"{before} {statement}; RETURN NEW; END"
    fixed = [column for column in refused if column != "id"]
    checks = " ".join(
        f"IF NEW.{column} IS DISTINCT FROM OLD.{column} THEN RAISE EXCEPTION USING MESSAGE = "
        f"{literal(f'{name} cannot be written: {column} {refused[column]}.')}; END IF;"
        for column in fixed
    )
    changes = [
        f"{quoted(target)} = CASE WHEN NEW.{column} IS DISTINCT FROM OLD.{column} THEN {value} "
        f"ELSE {quoted(target)} END"
        for target, (column, value) in given.items()
        if column != "id"
    ]
    changes += [f"{quoted(column)} = {value}" for column, value in relation.update.items()]
    found_by = _given(mapping, name, table, tables, "OLD")[0]
    own = [f"{quoted(target)} = {value}" for target, (column, value) in found_by.items() if column == "id"]
    if not changes or not own:
        return f"BEGIN RAISE EXCEPTION USING MESSAGE = {literal(f'{name} cannot be written.')}; END"
    statement = f"UPDATE {relation.from_} SET {', '.join(changes)} WHERE {' AND '.join(own)}"  # noqa: S608
    return f"BEGIN {checks} {statement}; RETURN NEW; END"


def _or_default(value: str, column: Column) -> str:
    """Return the value, or the default of a column that must have one."""
    return f"coalesce({value}, {column.default})" if column.required and column.default else value


def kept(connection: Connection) -> dict[str, str]:
    """Return what the comments of the views say."""
    found = {}
    for name in NEEDED:
        comment = connection.scalar(
            sa.text("SELECT obj_description(to_regclass(:view), 'pg_class')"), {"view": f"{SERVICE}.{name}"}
        )
        for work, reason in json.loads(comment or "{}").items():
            found[f"{name}.{work}"] = reason
    return found


def _found(connection: Connection) -> dict[str, str]:
    """Return the obstacles to writing the contract's own tables: views, and columns that it does not know."""
    catalog = read_catalog(connection)
    found = {}
    for name in NEEDED:
        table = catalog.get(f"{OWN_TABLES}.{name}")
        if table is not None and table.kind == "v" and _is_writable_view(connection, name):
            continue
        for work, reason in obstacles(own_tables(), name, catalog.get).items():
            found[f"{name}.{work}"] = reason
    return found


def _is_writable_view(connection: Connection, name: str) -> bool:
    found: bool = connection.execute(
        sa.text("SELECT pg_relation_is_updatable(to_regclass(:name), true) & 12 = 12"),
        {"name": f"{OWN_TABLES}.{name}"},
    ).scalar_one()
    return found


def every_obstacle(mapping: ServiceMap, tables: Tables) -> dict[str, str]:
    """Return the obstacles of all relations, by work as ``require_writable`` names it."""
    return {
        f"{name}.{work}": reason
        for name in mapping.relations
        for work, reason in obstacles(mapping, name, tables).items()
    }


def resolver(connection: Connection, catalog: dict[str, CatalogTable]) -> Tables:
    """Find a table of the catalog by any name that SQL has for it."""
    by_place = {(table.schema, table.plain_name): table for table in catalog.values()}

    def resolve(name: str) -> CatalogTable | None:
        if not name or name.startswith("("):
            return None
        if name in catalog:
            return catalog[name]  # PostgreSQL looks no name up in a schema that the role may not use
        place = connection.execute(
            sa.text(
                "SELECT nspname, relname FROM pg_class JOIN pg_namespace AS space ON space.oid = relnamespace "
                "WHERE pg_class.oid = to_regclass(:name)"
            ),
            {"name": name},
        ).one_or_none()
        return None if place is None else by_place.get((place.nspname, place.relname))

    return resolve


def _execute(connection: Connection, statement: str) -> None:
    connection.exec_driver_sql(statement.replace("%", "%%"))
