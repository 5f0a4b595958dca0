"""Recognise the values of a column by samples. They stay in memory: only codes reach a mapping file."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.storage.service_map.catalog import CatalogTable, Column, read_catalog
from toolkit.storage.service_map.draft.vocabulary import spoken, words
from toolkit.storage.service_map.expressions import THIS, literal, quoted

_ROWS: Final = 5000
_DISTINCT: Final = 60


@dataclass(frozen=True)
class Field:
    """A column, or a member of a JSON column, as a mapping can name it."""

    table: CatalogTable
    column: Column
    path: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The last part of its name."""
        return self.path[-1] if self.path else self.column.name

    @property
    def says(self) -> str:
        """The words that tell what it holds."""
        return self.path[-1] if self.path else self.column.says

    @property
    def family(self) -> str:
        """The family of its type; what stands in JSON is text."""
        return "text" if self.path else self.column.family

    @property
    def members(self) -> dict[str, Any]:
        """The field as a table of the file."""
        return {"column": self.column.name} | ({"json_path": list(self.path)} if self.path else {})

    @property
    def source(self) -> str | dict[str, Any]:
        """The field as the file names it, as short as it can."""
        return self.members if self.path else self.column.name

    @property
    def expression(self) -> str:
        """The field of a relation's row as SQL, as text."""
        return self.of(THIS)

    def of(self, row: str) -> str:
        """Return the field of a row with this name as SQL, as text."""
        column = f"{row}.{quoted(self.column.name)}"
        return f"({column}::jsonb #>> {json_path(self.path)})" if self.path else f"{column}::text"


def json_path(path: tuple[str, ...]) -> str:
    """Return the path of a member of a JSON column as SQL writes it."""
    return literal("{" + ",".join(map(quoted, path)) + "}")


class Samples:
    """Reads some values of a field once, as texts; ``catalog`` holds the tables that there are."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.catalog = {name: _with_words(table) for name, table in read_catalog(connection).items()}
        self._known: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
        self._narrowed: dict[str, str] = {}
        self._filled: dict[str, int] = {}

    def narrow(self, table: CatalogTable, condition: str) -> None:
        """Read only those rows of a table from now on, of those that are read so far."""
        read = self._narrowed.get(table.name)
        self._narrowed[table.name] = f"{read} AND {condition}" if read else condition
        self._known = {key: values for key, values in self._known.items() if key[0] != table.name}

    def rows_of_key(self, key: Field) -> str:
        """Return the table of a key, or a query for the rows of it that are read where it is their key alone."""
        table = key.table
        where = self._narrowed.pop(table.name, None)
        if where is None:
            return table.name
        repeats = self.repeats(key)
        self._narrowed[table.name] = where
        return f"(SELECT * FROM {table.name} AS {THIS} WHERE {where})" if repeats else table.name  # noqa: S608

    def values(self, field: Field) -> list[str]:
        """Return some distinct values among the first rows; empty where nobody may read them or there are none."""
        if field.column.labels and not field.path:
            return list(field.column.labels)
        key = (field.table.name, field.column.name, field.path)
        if key not in self._known:
            self._known[key] = [text for text in self.texts(field.table, field.expression) if text is not None]
        return self._known[key]

    def holds(self, field: Field, values: Sequence[str]) -> bool:
        """Tell whether a column holds one of these values."""
        held = f"SELECT FROM {field.table.name} AS {THIS} WHERE {field.expression}"
        listed = ", ".join(map(literal, values))
        return bool(values and field.table.readable and self.rows(f"SELECT EXISTS ({held} IN ({listed}))")[0][0])

    def texts(self, table: CatalogTable, sql: str) -> list[str | None]:
        """Return some distinct results of SQL over the first rows; ``None`` too, where a row has no value."""
        if not table.readable:
            return []
        query = f"SELECT DISTINCT value FROM ({self._first(table, sql)}) AS seen ORDER BY value LIMIT {_DISTINCT}"  # noqa: S608
        return [value for (value,) in self.rows(query)]

    def _first(self, table: CatalogTable, sql: str, condition: str = "true") -> str:
        where = f"{self._narrowed.get(table.name, 'true')} AND {condition}"
        return f"SELECT {sql} AS value FROM {table.name} AS {THIS} WHERE {where} LIMIT {_ROWS}"  # noqa: S608

    def members(self, table: CatalogTable, column: Column) -> list[tuple[str, ...]]:
        """Return the paths of the scalars in a JSON column, two levels deep."""
        if not table.readable:
            return []
        name = quoted(column.name)
        query = f"""
            WITH seen AS (
                SELECT {name}::jsonb AS value FROM {table.name} AS {THIS}
                WHERE jsonb_typeof({name}::jsonb) = 'object' LIMIT 500
            ),
            outside AS (SELECT member.* FROM seen, jsonb_each(value) AS member),
            inside AS (
                SELECT ARRAY[outside.key, member.key] AS path, member.value
                FROM outside,
                     jsonb_each(CASE jsonb_typeof(outside.value) WHEN 'object' THEN outside.value END) AS member
            )
            SELECT ARRAY[key] FROM outside WHERE jsonb_typeof(value) NOT IN ('object', 'array')
            UNION
            SELECT path FROM inside WHERE jsonb_typeof(value) NOT IN ('object', 'array')
            ORDER BY 1
        """  # noqa: S608  # names of the catalog, quoted
        return [tuple(path) for path in self._connection.execute(sa.text(query)).scalars()]

    def collections(self, table: CatalogTable, column: Column) -> list[tuple[tuple[str, ...], bool]]:
        """Return the paths of lists and of objects in a JSON column, up to three levels deep; true for a list."""
        name = quoted(column.name)
        query = f"""
            WITH RECURSIVE found AS (
                (SELECT ARRAY[]::text[] AS path, {name}::jsonb AS value FROM {table.name} AS {THIS} LIMIT 500)
                UNION ALL
                SELECT path || member.key, member.value
                FROM found, jsonb_each(CASE jsonb_typeof(value) WHEN 'object' THEN value END) AS member
                WHERE cardinality(path) < 3
            )
            SELECT DISTINCT path, jsonb_typeof(value) = 'array' AS is_list FROM found
            WHERE jsonb_typeof(value) IN ('array', 'object') ORDER BY 1, 2
        """  # noqa: S608  # names of the catalog, quoted
        return [(tuple(row.path), row.is_list) for row in self._connection.execute(sa.text(query))]

    def texts_deeper(self, table: CatalogTable, column: Column) -> dict[str, list[str]]:
        """Return some texts of a JSON column that stand in lists inside of lists, by their paths."""
        inside = "CASE jsonb_typeof(found.value) WHEN '{}' THEN found.value END"
        query = f"""
            WITH RECURSIVE found AS (
                (SELECT '' AS path, {quoted(column.name)}::jsonb AS value FROM {table.name} AS {THIS} LIMIT 500)
                UNION ALL
                SELECT found.path || inside.step, inside.value
                FROM found CROSS JOIN LATERAL (
                    SELECT '.' || key AS step, member.value FROM jsonb_each({inside.format("object")}) AS member
                    UNION ALL
                    SELECT '[]', item FROM jsonb_array_elements({inside.format("array")}) AS item
                ) AS inside
            )
            SELECT ltrim(path, '.') AS path, array_agg(value #>> '{{}}') AS texts FROM found
            WHERE jsonb_typeof(value) = 'string' AND path LIKE '%[]%[]%' GROUP BY 1 ORDER BY 1
        """  # noqa: S608  # names of the catalog, quoted
        return {row.path: row.texts for row in self._connection.execute(sa.text(query))}

    def kinds_by_owner(self, table: CatalogTable, kind: Column, owner: Column) -> list[set[str]]:
        """Return the sets of kinds that rows of one owner have, among the first rows."""
        if not table.readable:
            return []
        query = f"""
            SELECT DISTINCT array_agg(DISTINCT kind) FROM (
                SELECT {quoted(kind.name)}::text AS kind, {quoted(owner.name)} AS owner
                FROM {table.name} LIMIT {_ROWS}
            ) AS seen WHERE kind IS NOT NULL GROUP BY owner
        """  # noqa: S608  # names of the catalog, quoted
        return [set(kinds) for kinds in self._connection.execute(sa.text(query)).scalars()]

    def labelled(self, key: Field, labels: list[Field]) -> dict[str, str]:
        """Return the values of a key with those of the columns beside it, among the first rows."""
        if not key.table.readable or not labels:
            return {}
        label = f"concat_ws(' ', {', '.join(each.expression for each in labels)})"
        query = f"SELECT {key.expression}, {label} FROM {key.table.name} AS {THIS} LIMIT {_DISTINCT}"  # noqa: S608
        return {value: name for value, name in self.rows(query) if value is not None and name is not None}

    def rows(self, query: str) -> list[tuple[str | None, ...]]:
        """Return the rows of a query of texts."""
        return [tuple(row) for row in self._connection.exec_driver_sql(query.replace("%", "%%"))]

    def alike(self, table: CatalogTable) -> list[CatalogTable]:
        """Return the tables with the same columns and a word of its name: another tenant's, an archive, a copy."""
        return [
            other
            for other in self.catalog.values()
            if other.name != table.name
            and other.columns.keys() == table.columns.keys()
            and set(words(other.plain_name)) & set(words(table.plain_name))
        ]

    def kept_apart(self, table: CatalogTable) -> list[CatalogTable]:
        """Return the tables with the columns of this one, and perhaps others, and no key of it: its older rows."""
        key = next((column for column in table.columns.values() if column.key), None)
        required = {column.name for column in table.columns.values() if column.required}
        query = """
            SELECT count(*) > 0 AND count(*) FILTER (WHERE {key}::text IN (SELECT {key}::text FROM {table})) = 0
            FROM (SELECT * FROM {other} LIMIT {rows}) AS there
        """
        return [
            other
            for other in self.catalog.values()
            if key is not None
            and {key.name} < required <= other.columns.keys() != table.columns.keys()
            and set(words(other.plain_name)) & set(words(table.plain_name))
            and table.readable
            and other.readable
            and self.rows(query.format(key=quoted(key.name), table=table.name, other=other.name, rows=_ROWS))[0][0]
        ]

    def weight(self, table: CatalogTable) -> tuple[int, int, str]:
        """Return how much says that a table is the one in use of its name: foreign keys and rows of its schema."""
        keys = sum(other.schema == table.schema and len(other.references) for other in self.catalog.values())
        if table.schema not in self._filled:
            tables = [each for each in self.catalog.values() if each.schema == table.schema and each.readable]
            seen = (f"SELECT true FROM (SELECT FROM {each.name} LIMIT {_ROWS}) AS seen" for each in tables)  # noqa: S608
            counted = f"SELECT count(*)::text FROM ({' UNION ALL '.join(seen)}) AS rows"  # noqa: S608
            self._filled[table.schema] = int(self.rows(counted)[0][0] or 0) if tables else 0
        return keys, self._filled[table.schema], table.schema

    def counted(self, table: CatalogTable) -> str:
        """Return the name of a table with the number of its rows."""
        if not table.readable:
            return table.name
        query = f"SELECT count(*)::text FROM (SELECT FROM {table.name} LIMIT {_ROWS}) AS seen"  # noqa: S608
        count = int(self.rows(query)[0][0] or 0)
        return f"{table.name} ({'at least ' * (count == _ROWS)}{count} rows)"

    def rows_of_their_own(self, table: CatalogTable, others: list[CatalogTable]) -> list[CatalogTable]:
        """Return the tables built alike that hold rows which this one does not hold in the same form."""
        query = """
            SELECT EXISTS (SELECT FROM (SELECT * FROM {other} LIMIT {rows}) AS there
                           WHERE NOT EXISTS (SELECT FROM {table} AS here WHERE here::text = there::text))::text
        """
        return [
            other
            for other in others
            if table.readable
            and other.readable
            and self.rows(query.format(table=table.name, other=other.name, rows=_ROWS)) == [("true",)]
        ]

    def several(self, field: Field) -> bool:
        """Tell whether a column holds more than one value, in rows that are not read, too."""
        rows = f"SELECT {field.expression} AS value FROM {field.table.name} AS {THIS} LIMIT {_ROWS}"  # noqa: S608
        return bool(self.rows(f"SELECT count(DISTINCT value) > 1 FROM ({rows}) AS seen")[0][0])  # noqa: S608

    def lacks(self, field: Field) -> bool:
        """Tell whether one of the first rows has no value."""
        return None in self.texts(field.table, field.expression)

    def repeats(self, field: Field, condition: str = "true") -> bool:
        """Tell whether a value stands in more than one of the first rows, or none in one of them."""
        return self._repeats(field.table, field.expression, condition)

    def repeats_together(self, fields: Sequence[Field]) -> bool:
        """Tell whether more than one of the first rows has the same values in all of these fields."""
        values = ", ".join(field.expression for field in fields)
        return self._repeats(fields[0].table, f"ROW({values})::text")

    def _repeats(self, table: CatalogTable, sql: str, condition: str = "true") -> bool:
        rows = self._first(table, sql, condition)
        query = f"SELECT count(*) > count(DISTINCT value) FROM ({rows}) AS seen"  # noqa: S608
        return table.readable and bool(self.rows(query)[0][0])


def _with_words(table: CatalogTable) -> CatalogTable:
    """Return the table with what comments call it and its columns, where their names say nothing."""
    for column in list(table.columns.values()):
        table.columns[column.name] = replace(column, spoken=spoken(column.name, column.comment))
    return replace(table, spoken=spoken(table.plain_name, table.comment))


def fields_of(table: CatalogTable, samples: Samples) -> Iterable[Field]:
    """Yield the columns of a table, and the scalars in its JSON columns."""
    for column in table.columns.values():
        if column.family == "json":
            yield from (Field(table, column, path) for path in samples.members(table, column))
        else:
            yield Field(table, column)


def share(values: Sequence[str], pattern: re.Pattern[str]) -> float:
    """Return the share of the values that match the pattern, from 0 to 1."""
    return sum(bool(pattern.fullmatch(value.strip())) for value in values) / len(values) if values else 0.0


CPF: Final = re.compile(r"[0-9]{11}|[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}")
EPOCH: Final = re.compile(r"1[0-9]{9}(?:[0-9]{3})?")
DAY: Final = re.compile(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")
MEDIA: Final = re.compile(r"(?:application|audio|video|image)/[\w.+-]+", re.IGNORECASE)
ENDING: Final = re.compile(r"\.?(?:pdf|mp3|wav|ogg|opus|m4a|aac|flac|amr|wma)", re.IGNORECASE)
FILE: Final = re.compile(r"[^/\\]+\.[A-Za-z0-9]{2,4}")
PLACE: Final = re.compile(r"(?:.*/)?[^/\\]+\.[A-Za-z0-9]{2,4}|.*/.+", re.DOTALL)
KEY: Final = re.compile(r".*[^/]/[^/]+\.[A-Za-z0-9]{2,4}", re.DOTALL)
OPAQUE: Final = re.compile(r"[A-Za-z0-9_-]{20,}")
