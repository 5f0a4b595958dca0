"""Make views that tell which rows of a mapped relation may say something else than when they were compared last.

PostgreSQL numbers its transactions, and each version of a row carries the number of the one that wrote it
(``xmin``). A row without a version since then says what it said, if that rests on this row alone, and on rows of
other tables that it refers to by foreign keys, and not on SQL of the mapping's own, which may read anything.

The service may alter its tables at any time. So a function of the relation tells the state of all else that the
values rest on: the views and the labels of enums. It is null where versions say too little: a table is none of
PostgreSQL's own kind, has parts or row level security, computes columns as they are read, or lost its foreign key.
"""

from typing import Final

import sqlalchemy as sa
from psycopg.errors import InsufficientPrivilege, UndefinedColumn
from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql import OID
from sqlalchemy.exc import ProgrammingError

from toolkit.storage.service_map.catalog import collations_of
from toolkit.storage.service_map.expressions import THIS, literal, nothing_of, quoted, read
from toolkit.storage.service_map.model import NEEDED, Relation, ServiceMap, Source
from toolkit.storage.service_map.triggers import execute
from toolkit.storage.tables import AUDIT, OBSERVED_RELATIONS, SERVICE


def touched(name: str) -> str:
    """Return the name of the view: the ids of the relation's rows, and whether each was touched since."""
    return f"{SERVICE}.touched_{name}"


def state_of(name: str) -> str:
    """Return the call of the function that tells what else the values of the relation rest on."""
    return f"{SERVICE}.state_of_{name}()"


def make_touched(connection: Connection, mapping: ServiceMap) -> None:
    """Make the view and the function of each relation that is observed."""
    for name in OBSERVED_RELATIONS:
        lookups = _lookups(mapping.relations[name], name)
        state = "NULL"
        if lookups is not None:
            try:
                with connection.begin_nested():
                    _make_view(connection, name, _select(mapping, name, lookups))
                    execute(connection, f"SELECT FROM {touched(name)} LIMIT 0")  # asks for the rights
                state = _state(connection, mapping.relations[name], name, lookups)
            except ProgrammingError as error:
                if not isinstance(error.orig, UndefinedColumn | InsufficientPrivilege):
                    raise
                lookups = None  # rows of a view have no versions; rights on some columns leave them out
        if lookups is None:
            make_untouched(connection, name)
        execute(
            connection,
            f"CREATE OR REPLACE FUNCTION {state_of(name)} RETURNS text LANGUAGE sql STABLE AS "
            + literal(f"SELECT {state}"),
        )


def make_untouched(connection: Connection, name: str) -> None:
    """Let the view of the relation read nothing."""
    nothing = nothing_of(name, collations_of(connection, touched(name)), [NEEDED[name].c.id])
    _make_view(connection, name, f"SELECT id, NULL::boolean AS touched FROM ({nothing} AND false) AS nothing")  # noqa: S608


def _make_view(connection: Connection, name: str, query: str) -> None:
    execute(connection, f"CREATE OR REPLACE VIEW {touched(name)} AS {query}")


def _lookups(relation: Relation, name: str) -> list[Source] | None:
    """Return the other tables that observed columns come from; ``None`` where versions of rows say too little."""
    if relation.absent or relation.is_query or relation.columns["id"].is_lookup:
        return None
    kept = OBSERVED_RELATIONS[name].columns.keys()
    sources = [source for column, source in relation.columns.items() if column in kept]
    lookups = [source for source in sources if source.is_lookup]
    plain = all(source.sql is None for source in sources)
    return lookups if plain and not any((each.table or "").startswith("(") for each in lookups) else None


def _select(mapping: ServiceMap, name: str, lookups: list[Source]) -> str:
    relation = mapping.relations[name]
    tests = [_RECENT.format(row=THIS, name=name)]
    for each in lookups:
        recent = f"SELECT {quoted(each.key or '')} FROM {each.table} AS other WHERE " + _RECENT.format(  # noqa: S608
            row="other", name=name
        )
        tests.append(f"coalesce({THIS}.{quoted(each.by or '')} IN ({recent}), false)")
    key = read(relation.columns["id"], NEEDED[name].c.id, mapping.timezone)
    counted = f" WHERE {relation.where}" if relation.where else ""
    return f"SELECT {key} AS id, {' OR '.join(tests)} AS touched FROM {relation.from_} AS {THIS}{counted}"  # noqa: S608


def _state(connection: Connection, relation: Relation, name: str, lookups: list[Source]) -> str:
    def number(table: str | None) -> int:
        found: int = connection.execute(sa.select(sa.cast(sa.func.to_regclass(table), OID))).scalar_one()
        return found

    references = [
        _REFERENCE.format(
            table=number(relation.from_),
            by=literal(each.by or ""),
            other=number(each.table),
            key=literal(each.key or ""),
        )
        for each in lookups
    ]
    return _STATE.format(view=touched(name), seen=f"{SERVICE}.{name}", references=" ".join(references))


_RECENT: Final = f"""
    ({{row}}.xmin::text::bigint - (SELECT since FROM {AUDIT}.service_readings WHERE relation = '{{name}}')
     & 4294967295) >> 31 = 0
"""  # noqa: S608
"""The numbers go round after 32 bits: half of them lie before any, and half after."""

_STATE: Final = """
    (WITH source AS (
        SELECT DISTINCT class.* FROM pg_rewrite AS rule
        JOIN pg_depend AS needed ON needed.classid = 'pg_rewrite'::regclass AND needed.objid = rule.oid
        JOIN pg_class AS class ON needed.refclassid = 'pg_class'::regclass AND class.oid = needed.refobjid
        WHERE rule.ev_class = '{view}'::regclass AND class.oid <> rule.ev_class
    )
    SELECT md5(concat((SELECT string_agg(concat(oid, ' ', xmin), ',' ORDER BY oid) FROM pg_rewrite
                       WHERE ev_class IN ('{view}'::regclass, '{seen}'::regclass)),
                      (SELECT string_agg(concat(oid, ' ', enumlabel), ',' ORDER BY oid) FROM pg_enum)))
    WHERE (SELECT bool_and(relkind = 'r' AND NOT relrowsecurity AND NOT relhassubclass
                           AND relam = (SELECT oid FROM pg_am WHERE amname = 'heap')) FROM source)
      AND NOT EXISTS (SELECT FROM pg_attribute JOIN source ON source.oid = attrelid WHERE attgenerated = 'v')
      {references})
"""

_REFERENCE: Final = """
    AND EXISTS (SELECT FROM pg_constraint
            JOIN source AS one ON one.oid = conrelid
            JOIN source AS other ON other.oid = confrelid
            WHERE contype = 'f' AND convalidated
              AND conrelid = {table} AND confrelid = {other}
              AND conkey = ARRAY(SELECT attnum FROM pg_attribute WHERE attrelid = conrelid AND attname = {by})
              AND confkey = ARRAY(SELECT attnum FROM pg_attribute WHERE attrelid = confrelid AND attname = {key}))
"""
