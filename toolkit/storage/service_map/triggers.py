"""Make the triggers that write through the views of a mapping.

What stands in the way is found when the views are made, and kept as the comment of each view.
"""

import json
from dataclasses import replace
from typing import Final

from sqlalchemy import Connection

from toolkit.storage.service_map.catalog import CatalogTable, Column, Tables, read_catalog, resolver
from toolkit.storage.service_map.expressions import literal, quoted
from toolkit.storage.service_map.inverse import assignments
from toolkit.storage.service_map.model import ServiceMap
from toolkit.storage.service_map.obstacles import COMPLETE, IN_ONE_ROW, INSERT, UPDATE, given_values, obstacles
from toolkit.storage.tables import SERVICE

WRITTEN: Final = "written"
"""The column that each one is written to, beside the obstacles in the comment of a view."""

GIVEN: Final = "given.value"
"""Stands for the contract's value in the SQL of ``WRITTEN``."""

NUMBERED: Final = "numbered"
ONE_ROW: Final = "one row"


def make_writable(connection: Connection, mapping: ServiceMap) -> None:
    """Make the triggers of all views, and keep what stands in the way of writing as their comments."""
    catalog = read_catalog(connection)
    tables = resolver(connection, catalog)
    if mapping.has_one_row_for_both:
        execute(connection, _WAITING)
    for name in mapping.relations:
        found = obstacles(mapping, name, tables)
        for work in (INSERT, UPDATE):
            body = _body(mapping, name, work, tables, found)
            execute(
                connection,
                f"CREATE OR REPLACE FUNCTION {SERVICE}.{work}_{name}() RETURNS trigger LANGUAGE plpgsql "
                f"SECURITY DEFINER SET search_path FROM CURRENT AS {literal(body)}",
            )
            execute(
                connection,
                f"CREATE OR REPLACE TRIGGER {work}_row INSTEAD OF {work.upper()} ON {SERVICE}.{name} "
                f"FOR EACH ROW EXECUTE FUNCTION {SERVICE}.{work}_{name}()",
            )
        sequence = _sequence(mapping, name, tables)
        if INSERT not in found and sequence is not None:
            found[NUMBERED] = sequence
            execute(connection, _NEXT.format(schema=SERVICE, name=name, sequence=literal(literal(sequence))[1:-1]))
        if mapping.has_one_row_for_both and name in IN_ONE_ROW:
            found[ONE_ROW] = IN_ONE_ROW[name]
        if INSERT not in found:
            found[WRITTEN] = json.dumps(_targets(mapping, name, tables))
        execute(connection, f"COMMENT ON VIEW {SERVICE}.{name} IS {literal(json.dumps(found))}")


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

_NEXT: Final = """
    CREATE OR REPLACE FUNCTION {schema}.next_{name}(count bigint) RETURNS SETOF bigint
    LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
    AS 'SELECT nextval({sequence}) FROM generate_series(1, count)'
"""


def _sequence(mapping: ServiceMap, name: str, tables: Tables) -> str | None:
    """Return the sequence that the ids of the relation come from, where they are numbers."""
    relation = mapping.relations[name]
    table = tables(relation.from_)
    key = None if table is None else table.columns.get(relation.columns["id"].column or "")
    return key.sequence if key is not None and key.family == "integer" and name != "sales" else None


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
    texts = {name: replace(each, cast="text") for name, each in table.columns.items() if each.family == "text"}
    return replace(table, columns=table.columns | texts)


def _body(mapping: ServiceMap, name: str, work: str, tables: Tables, found: dict[str, str]) -> str:
    """Return the body of the trigger's function."""
    relation = mapping.relations[name]
    allowed = work not in found or (work == UPDATE and name == "sales" and COMPLETE not in found)
    table = None if relation.is_query or relation.absent else tables(relation.from_)
    if not allowed or table is None:
        return f"BEGIN RAISE EXCEPTION USING MESSAGE = {literal(found.get(work, ''))}; END"
    given, refused = given_values(mapping, name, table, tables)
    if work == INSERT:
        if mapping.has_one_row_for_both and name == "clients":
            return f"BEGIN INSERT INTO {SERVICE}.waiting_clients SELECT NEW.*; RETURN NEW; END"
        values = {column: _or_default(value, table.columns[column]) for column, (_, value) in given.items()}
        values |= relation.insert
        before = "BEGIN"
        if mapping.has_one_row_for_both and name == "addresses":
            client = given_values(mapping, "clients", table, tables, "client")[0]
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
    found_by = given_values(mapping, name, table, tables, "OLD")[0]
    own = [f"{quoted(target)} = {value}" for target, (column, value) in found_by.items() if column == "id"]
    if not changes or not own:
        return f"BEGIN RAISE EXCEPTION USING MESSAGE = {literal(f'{name} cannot be written.')}; END"
    statement = f"UPDATE {relation.from_} SET {', '.join(changes)} WHERE {' AND '.join(own)}"  # noqa: S608
    return f"BEGIN {checks} {statement}; RETURN NEW; END"


def _or_default(value: str, column: Column) -> str:
    """Return the value, or the default of a column that must have one."""
    return f"coalesce({value}, {column.default})" if column.required and column.default else value


def execute(connection: Connection, statement: str) -> None:
    """Execute a statement as it stands, without parameters."""
    connection.exec_driver_sql(statement.replace("%", "%%"))
