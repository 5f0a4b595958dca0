"""Write a column of the mapping as SQL for reading, in the contract's type.

Functions of schema ``audit_service`` take the types apart, so that an expression depends on the file alone. They
are plain SQL, which PostgreSQL puts in place of the call.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from toolkit.domain.evidence import MEDIA_TYPES
from toolkit.storage.service_map.model import NEEDED, Relation, ServiceMap, Source
from toolkit.storage.tables import SERVICE

THIS: Final = "this"
"""The row of the relation's own table in every expression, those of the file included."""

FUNCTIONS: Final[dict[tuple[str, str], dict[str, str]]] = {
    ("as_key", "uuid"): {
        "value uuid": "value",
        "value bytea": "CASE length(value) WHEN 16 THEN encode(value, 'hex') ELSE md5(value) END::uuid",
        "value numeric": "lpad(trunc(value)::text, 32, '0')::uuid",
        **dict.fromkeys(("value smallint", "value integer", "value bigint"), "lpad(value::text, 32, '0')::uuid"),
        # Regular expressions take no collation that is not deterministic, as a column may have it.
        "value text": "CASE WHEN value COLLATE \"C\" ~* '^[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}$' "
        "THEN value::uuid WHEN value COLLATE \"C\" ~ '^[0-9]{1,32}$' THEN lpad(value, 32, '0')::uuid "
        "ELSE md5(value)::uuid END",
    },
    ("day_first", "text"): {
        "value text": r"CASE WHEN value !~ '[1-9]' THEN NULL WHEN value !~ '^\s*\d\d?[/.-]\d\d?[/.-]\d\d' "
        r"THEN value ELSE regexp_replace(regexp_replace(regexp_replace(btrim(value), "
        r"'^(\d\d?)[/.-](\d\d?)[/.-](\d{4})', '\3-\2-\1'), "
        r"'^(\d\d?)/(\d\d?)/([0-6]\d)(?!\d)', '20\3-\2-\1'), "
        r"'^(\d\d?)/(\d\d?)/([7-9]\d)(?!\d)', '19\3-\2-\1') END",
    },
    ("as_day", "date"): {
        **dict.fromkeys(("value date", "value timestamp", "value timestamptz"), "value::date"),
        "value bigint": "CASE WHEN value <> 0 THEN to_date(value::text, 'YYYYMMDD') END",
        "value text": f"{SERVICE}.day_first(value)::date",
    },
    ("as_time", "timestamptz"): {
        "value timestamptz, zone text": "value",
        # The frequent zone without looking up its name for each row.
        "value timestamp, zone text": "CASE zone WHEN 'UTC' THEN value AT TIME ZONE INTERVAL '0' "
        "ELSE value AT TIME ZONE zone END",
        "value date, zone text": "value::timestamp AT TIME ZONE zone",
        **dict.fromkeys(
            ("value integer, zone text", "value bigint, zone text"),
            "CASE WHEN value BETWEEN 19000101 AND 99991231 "  # as 20261002; so many seconds were over in 1973
            f"THEN {SERVICE}.as_day(value)::timestamp AT TIME ZONE zone WHEN value <> 0 "
            "THEN to_timestamp(CASE WHEN abs(value) < 100000000000 THEN value ELSE value / 1000.0 END) END",
        ),
        "value numeric, zone text": f"{SERVICE}.as_time(value::bigint, zone)",
        "value text, zone text": "CASE WHEN value ~* ':[0-9.]+ *(z|[+-][0-9]{2}(:?[0-9]{2})?)$' "
        f"THEN {SERVICE}.day_first(value)::timestamptz "
        f"ELSE {SERVICE}.day_first(value)::timestamp AT TIME ZONE zone END",
    },
    ("as_hour", "time"): {
        "value time": "coalesce(value, '00:00')",
        "value anyelement": "coalesce(nullif(btrim(value::text), '')::time, '00:00')",
    },
    ("as_digits", "text"): {
        "value text, places int": "regexp_replace(value COLLATE \"C\", '[^0-9]', '', 'g')",
        **dict.fromkeys(
            ("value integer, places int", "value bigint, places int", "value numeric, places int"),
            "lpad(trunc(value)::bigint::text, places, '0')",
        ),
    },
    ("as_path", "text"): {
        "address text": "CASE WHEN address LIKE '%\\%%' THEN (SELECT convert_from(string_agg(CASE WHEN part[1] "
        "~ '^%..' THEN decode(substr(part[1], 2), 'hex') ELSE convert_to(part[1], 'UTF8') END, '' ORDER BY "
        "place), 'UTF8') FROM regexp_matches(split_part(address, '?', 1), '%[0-9A-Fa-f]{2}|[^%]+|%', 'g') "
        "WITH ORDINALITY AS found(part, place)) ELSE split_part(address, '?', 1) END",
    },
    ("as_key_of_file", "text"): {
        "folder text, name text": "CASE WHEN coalesce(folder, '') = '' THEN '' ELSE rtrim(folder, '/') || '/' END "
        "|| ltrim(name, '/')",
    },
}
"""Functions of the views: for each name and result the SQL that it stands for, by its parameters.

A number becomes the UUID whose digits are its own, so that it is read and turned round at sight; a text that is
neither becomes the UUID of its MD5, which cannot be turned round.
"""


def quoted(name: str) -> str:
    """Return the name as SQL writes it: exactly this name, whatever its case."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return the text as SQL writes it."""
    escaped = text.replace("'", "''")
    return f"E'{escaped.replace(chr(92), chr(92) * 2)}'" if "\\" in escaped else f"'{escaped}'"


def select(mapping: ServiceMap, name: str, columns: Sequence[str] | None = None) -> str:
    """Return the query that gives the contract's relation ``name``, or some of its columns."""
    relation, table = mapping.relations[name], NEEDED[name]
    wanted = [table.c[column] for column in columns or table.columns.keys()]
    if relation.absent:
        return f"{nothing_of(name, {}, wanted)} AND false"
    lookups = [source for source in _lookups(relation) if columns is None or _used(relation, columns, source)]
    shown = ",\n    ".join(
        f"{read(relation.columns[column.name], column, mapping.timezone, lookups)} AS {column.name}"
        for column in wanted
    )
    parts = [f"SELECT\n    {shown}\nFROM {relation.from_} AS {THIS}"]
    parts += [
        f"LEFT JOIN found_{number} ON found_{number}.looked_up = {THIS}.{quoted(source.by or '')}"
        for number, source in enumerate(lookups)
    ]
    if relation.where:
        parts.append(f"WHERE {relation.where}")
    found = "\n".join(parts)
    # Outer-joined as tables they would keep PostgreSQL from locking the sale itself.
    named = ",\n".join(f"found_{number} AS ({_lookup(source)})" for number, source in enumerate(lookups))
    return f"WITH {named}\n{found}" if named else found


def nothing_of(name: str, collations: Mapping[str, str], columns: Sequence[sa.Column[Any]] | None = None) -> str:
    """Return the query of a relation that reads nothing, up to conditions under which it gives a row of nulls.

    ``collations`` are those of the columns of its view, if there is one: a view keeps them.
    """
    wanted = NEEDED[name].columns if columns is None else columns
    shown = (
        f"NULL::{_TYPES[type(column.type)]}{collations.get(column.name, '')} AS {column.name}" for column in wanted
    )
    return f"SELECT {', '.join(shown)} WHERE true"


def read(source: Source, column: sa.Column[object], timezone: str, lookups: Sequence[Source] = ()) -> str:
    """Return the SQL that gives the column of the contract."""
    kind = _TYPES[type(column.type)]
    if source.absent:
        return f"NULL::{kind}"
    value = _value(source, lookups)
    if source.codes:
        value = _decoded(value, source.codes, kind)
    if kind == "uuid":
        return f"{SERVICE}.as_key({value})"
    if kind == "timestamptz" and source.value is None:
        return f"{SERVICE}.as_time({value}, {literal(source.zone or timezone)})"
    found = f"{SERVICE}.as_day({value})" if kind == "date" and source.value is None else f"({value})::{kind}"
    if column.name in _NEVER_NULL:
        return f"coalesce({found}, '')"
    return found


_NEVER_NULL: Final = ("utility_group", "evidence_type")
"""Columns that are empty instead of null, so that the audit reports an unknown value."""

_TYPES: Final[dict[type[object], str]] = {
    sa.Text: "text",
    sa.Uuid: "uuid",
    sa.Boolean: "boolean",
    sa.Date: "date",
    sa.dialects.postgresql.TIMESTAMP: "timestamptz",
}


def _value(source: Source, lookups: Sequence[Source]) -> str:
    """Return the value as the table has it."""
    if source.sql is not None:
        return f"({source.sql})"
    if source.value is not None:
        return literal(source.value) if isinstance(source.value, str) else str(source.value).lower()
    if source.date is not None and source.time is not None:
        day, hour = (f"{THIS}.{quoted(part)}" for part in (source.date, source.time))
        # A day without its hour is known all the same: a sale that was completed is not open again.
        return f"({SERVICE}.as_day({day}) + {SERVICE}.as_hour({hour}))"
    if source.folder is not None and source.name is not None:
        parts = (f"{THIS}.{quoted(part)}::text" for part in (source.folder, source.name))
        return _stripped(source, f"{SERVICE}.as_key_of_file({', '.join(parts)})")
    if source.media_type_of is not None:
        return _media_type(f"{THIS}.{quoted(source.media_type_of)}::text")
    places = (f"found_{number}.found" for number, each in enumerate(lookups) if _same(each, source))
    value = next(places, f"{THIS}.{quoted(source.column or '')}")
    if source.json_path:
        value = f"({value}::jsonb #>> {literal('{' + ','.join(map(quoted, source.json_path)) + '}')})"
    if source.mask:
        return f"{SERVICE}.as_digits({value}, {source.mask.count('#')})"
    return _stripped(source, value)


def _stripped(source: Source, value: str) -> str:
    if source.url:
        value = f"{SERVICE}.as_path({value}::text)"
    if source.strip is None:
        return value
    return f"regexp_replace({value}::text, {literal(f'^(?:{source.strip})')}, '')"


def _decoded(value: str, codes: dict[str, str | bool], kind: str) -> str:
    """Return the contract's value for each code; another code stays as it is, and for a flag is unknown."""
    cases = " ".join(
        f"WHEN {literal(code)} THEN {literal(meaning) if isinstance(meaning, str) else str(meaning).lower()}"
        for code, meaning in codes.items()
    )
    other = "NULL" if kind == "boolean" else f"({value})::text"
    return f"CASE ({value})::text {cases} ELSE {other} END"


def _media_type(name: str) -> str:
    cases = " ".join(f"WHEN {literal(ending)} THEN {literal(kind)}" for ending, kind in MEDIA_TYPES.items())
    ending = f"substring({name} FROM '[.]([A-Za-z0-9]+)(?:[?].*)?$')"  # an address may end in a query
    return f"CASE lower({ending}) {cases} ELSE 'application/octet-stream' END"


def _lookups(relation: Relation) -> list[Source]:
    found: list[Source] = []
    for source in relation.columns.values():
        if source.is_lookup and not any(_same(each, source) for each in found):
            found.append(source)
    return found


def _lookup(source: Source) -> str:
    columns = f"{quoted(source.key or '')} AS looked_up, {quoted(source.column or '')} AS found"
    alias = " AS other" if (source.table or "").endswith(")") else ""  # which PostgreSQL 15 demands of a query
    return f"SELECT {columns} FROM {source.table}{alias}"  # noqa: S608  # the mapping is the operator's own


def _used(relation: Relation, columns: Sequence[str], lookup: Source) -> bool:
    return any(_same(relation.columns[column], lookup) for column in columns)


def _same(one: Source, other: Source) -> bool:
    return (one.table, one.key, one.by, one.column) == (other.table, other.key, other.by, other.column)
