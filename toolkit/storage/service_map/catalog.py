"""The tables and columns of a database, as PostgreSQL's catalog describes them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.storage.service_map.expressions import quoted
from toolkit.storage.tables import AUDIT, SERVICE

QUERY: Final = "q"
"""The kind of a table that is a query."""


@dataclass(frozen=True)
class Column:
    """A column; ``family`` sums its type up, and ``type`` is what PostgreSQL calls it, with its length."""

    name: str
    type: str = "text"
    cast: str = "text"
    family: str = "text"
    length: int | None = None
    """Characters that it takes, where its type limits them."""
    required: bool = False
    filled: bool = False
    """True if a row that does not name it gets a value: a default, an identity or a generated column."""
    generated: bool = False
    default: str = ""
    comment: str = ""
    labels: tuple[str, ...] = ()
    key: bool = False
    """True if it is the whole primary key."""
    unique: bool = False
    loose: bool = False
    """True if texts that differ may be equal: in case, accents or blanks."""
    sequence: str | None = None
    rules: tuple[str, ...] = ()
    """The SQL of constraints that look at this column alone, over its own name."""
    spoken: str = ""
    """Its name by its comment, where its own name says nothing."""

    @property
    def says(self) -> str:
        """The words that tell what it holds."""
        return self.spoken or self.name


@dataclass(frozen=True)
class Reference:
    """A foreign key of one column."""

    column: str
    table: str
    key: str


@dataclass(frozen=True)
class WideReference:
    """A foreign key of several columns, each with the column that it names."""

    table: str
    keys: dict[str, str]
    """The columns of this table by those of the other one."""


@dataclass(frozen=True, eq=False)
class CatalogTable:
    """A table or view; ``name`` is how SQL names it, schema included."""

    name: str
    plain_name: str
    schema: str = ""
    kind: str = QUERY
    comment: str = ""
    readable: bool = True
    columns: dict[str, Column] = field(default_factory=dict)
    references: list[Reference] = field(default_factory=list)
    wide_references: list[WideReference] = field(default_factory=list)
    whole_key: tuple[str, ...] = ()
    """The columns of its primary key."""
    made: str = ""
    """The query that gives its rows, where it is not a table."""
    question: str = ""
    """The question that has to be answered before the query can be used."""
    parts: tuple[str, ...] = ()
    """The tables that the query puts one after the other, or the one that it reads some rows of."""

    spoken: str = ""
    """Its name by its comment, where its own name says nothing."""

    @property
    def says(self) -> str:
        """The words that tell what its rows are."""
        return self.spoken or self.plain_name

    def reference(self, column: str) -> Reference | None:
        """Return the foreign key that starts at this column."""
        return next((each for each in self.references if each.column == column), None)


Tables = Callable[[str], CatalogTable | None]
"""Finds a table by the name that the mapping gives it."""


def collations_of(connection: Connection, relation: str) -> dict[str, str]:
    """Return the collation of each column with texts, as SQL behind a value, where there is such a relation."""
    found = connection.execute(sa.text(_COLLATIONS), {"relation": relation})
    return {row.column: row.words for row in found}


def read_catalog(connection: Connection) -> dict[str, CatalogTable]:
    """Return every table and view that is neither PostgreSQL's nor the toolkit's, by its name in SQL."""
    found: dict[int, CatalogTable] = {}
    bound = {"own": [AUDIT, SERVICE]}
    for row in connection.execute(sa.text(_TABLES), bound):
        name = f"{_named(row.schema)}.{_named(row.name)}"
        found[row.oid] = CatalogTable(
            name, row.name, row.schema, row.kind, row.comment, row.readable, whole_key=tuple(row.whole_key)
        )
    for row in connection.execute(sa.text(_COLUMNS), {"tables": list(found)}):
        said = row._asdict()
        table, base = said.pop("table"), said.pop("base")
        said |= {"labels": tuple(row.labels), "rules": tuple(row.rules)}
        family = _FAMILIES.get(base, "enum" if row.labels else "other")
        found[table].columns[row.name] = Column(family=family, **said)
    for row in connection.execute(sa.text(_REFERENCES), {"tables": list(found)}):
        if row.referenced in found and len(row.columns) == 1:
            found[row.table].references.append(Reference(row.columns[0], found[row.referenced].name, row.keys[0]))
        elif row.referenced in found:
            keys = dict(zip(row.keys, row.columns, strict=True))
            found[row.table].wide_references.append(WideReference(found[row.referenced].name, keys))
    return {table.name: table for table in found.values()}


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


def _named(name: str) -> str:
    plain = name.isascii() and name.replace("_", "a").isalnum() and name == name.lower() and not name[0].isdigit()
    return name if plain else quoted(name)


_FAMILIES: Final = {
    **dict.fromkeys(("text", "varchar", "bpchar", "citext", "name"), "text"),
    **dict.fromkeys(("int2", "int4", "int8"), "integer"),
    **dict.fromkeys(("json", "jsonb"), "json"),
    **dict.fromkeys(("tstzrange", "tsrange", "daterange"), "period"),
    **{kind: kind for kind in ("bit", "uuid", "date", "time", "timestamp", "timestamptz")},
    "numeric": "number",
    "bool": "boolean",
}

_TABLES: Final = """
    SELECT class.oid, nspname AS schema, relname AS name, relkind::text AS kind,
           coalesce(obj_description(class.oid, 'pg_class'), '') AS comment,
           has_schema_privilege(space.oid, 'USAGE') AND has_table_privilege(class.oid, 'SELECT') AS readable,
           ARRAY(SELECT attname::text FROM pg_index
                 JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY(indkey)
                 WHERE indrelid = class.oid AND indisprimary ORDER BY attnum) AS whole_key
    FROM pg_class AS class
    JOIN pg_namespace AS space ON space.oid = relnamespace
    WHERE relkind IN ('r', 'p', 'v', 'm', 'f')
      AND NOT relispartition
      AND nspname NOT LIKE 'pg\\_%'
      AND nspname <> 'information_schema'
      AND nspname <> ALL(:own)
    ORDER BY nspname, relname
"""

_COLLATIONS: Final = """
    SELECT attname AS column, format(' COLLATE %I.%I', nspname, collname) AS words
    FROM pg_attribute
    JOIN pg_collation ON pg_collation.oid = attcollation
    JOIN pg_namespace ON pg_namespace.oid = collnamespace
    WHERE attrelid = to_regclass(:relation)
"""

_COLUMNS: Final = """
    WITH RECURSIVE domain AS (
        SELECT oid AS type, typbasetype AS base, typtypmod AS modifier FROM pg_type WHERE typtype = 'd'
        UNION ALL
        SELECT domain.type, typbasetype, typtypmod FROM domain JOIN pg_type ON oid = base WHERE typtype = 'd'
    )
    SELECT attrelid AS table, attname AS name, format_type(atttypid, atttypmod) AS type,
           format_type(atttypid, NULL) AS cast,
           coalesce(base.typname, type.typname) AS base,
           CASE WHEN coalesce(base.typname, type.typname) IN ('varchar', 'bpchar')
                THEN nullif(greatest(coalesce(modifier, atttypmod), 4), 4) - 4 END AS length,
           attnotnull AS required,
           atthasdef OR attidentity <> '' AS filled,
           attgenerated <> '' OR attidentity = 'a' AS generated,
           coalesce(pg_get_expr(adbin, adrelid), '') AS default,
           coalesce(col_description(attrelid, attnum), '') AS comment,
           ARRAY(SELECT enumlabel::text FROM pg_enum
                 WHERE enumtypid = coalesce(domain.base, atttypid) ORDER BY enumsortorder) AS labels,
           ARRAY(SELECT pg_get_expr(conbin, conrelid) FROM pg_constraint
                 WHERE conrelid = attrelid AND contype = 'c' AND conkey = ARRAY[attnum]
                 UNION ALL
                 SELECT regexp_replace(pg_get_expr(conbin, 0), '\\yVALUE\\y', quote_ident(attname), 'g')
                 FROM pg_constraint WHERE contypid IN (SELECT atttypid
                                                       UNION SELECT each.base FROM domain AS each
                                                       WHERE each.type = atttypid) AND contype = 'c') AS rules,
           EXISTS (SELECT FROM pg_index WHERE indrelid = attrelid AND indisprimary AND indkey::text = attnum::text)
               AS key,
           EXISTS (SELECT FROM pg_index WHERE indrelid = attrelid AND indisunique AND indpred IS NULL
                   AND indkey::text = attnum::text) AS unique,
           coalesce(base.typname, type.typname) = 'citext' OR EXISTS (
               SELECT FROM pg_collation
               WHERE pg_collation.oid = attcollation AND NOT collisdeterministic) AS loose,
           (SELECT format('%I.%I', place.nspname, numbers.relname)
            FROM pg_depend JOIN pg_class AS numbers ON numbers.oid = objid AND numbers.relkind = 'S'
            JOIN pg_namespace AS place ON place.oid = numbers.relnamespace
            WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass AND deptype IN ('a', 'i')
              AND refobjid = attrelid AND refobjsubid = attnum LIMIT 1) AS sequence
    FROM pg_attribute
    JOIN pg_class AS class ON class.oid = attrelid
    JOIN pg_namespace AS space ON space.oid = relnamespace
    JOIN pg_type AS type ON type.oid = atttypid
    LEFT JOIN domain ON domain.type = type.oid
    LEFT JOIN pg_type AS base ON base.oid = domain.base
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE attrelid = ANY(:tables) AND attnum > 0 AND NOT attisdropped AND base.typtype IS DISTINCT FROM 'd'
    ORDER BY attrelid, attnum
"""

_REFERENCES: Final = """
    SELECT conrelid AS table, confrelid AS referenced,
           ARRAY(SELECT attname::text FROM unnest(conkey) WITH ORDINALITY AS part(number, place)
                 JOIN pg_attribute ON attrelid = conrelid AND attnum = number ORDER BY place) AS columns,
           ARRAY(SELECT attname::text FROM unnest(confkey) WITH ORDINALITY AS part(number, place)
                 JOIN pg_attribute ON attrelid = confrelid AND attnum = number ORDER BY place) AS keys
    FROM pg_constraint
    WHERE contype = 'f' AND conrelid = ANY(:tables)
    ORDER BY conrelid, conname
"""
