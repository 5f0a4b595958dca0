"""Print the beginning of a ``service.sql`` for tables that a person names: what is there, and nothing guessed.

A column is filled in only where its name and type are the contract's. What else the contract needs says TODO,
which no database takes. Above each SELECT stand all columns of its table and, where these hold a few codes, the
codes. No other value of a row is shown. Codes, who pays and time zones are for a person who knows the service.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.database.service import COLUMNS, REQUIRED
from toolkit.errors import InvalidInput
from toolkit.message import Message, listed

Holds = Callable[[str], bool]  # tells whether the bucket holds an object under a key

_PERSONAL: Final = re.compile(
    "nam|nom|cpf|doc|rg|mail|phon|fon|tel|cel|birth|born|nasc|addr|ender|rua|street|logr|bairro|city|cidad|cep|zip|lat|"
    "lon|note|obs|desc|text|pass|senha|token|key|user|matr|enrol|inst",
    re.IGNORECASE,
)
"""Names of columns whose values may say something about a person; none of them is shown."""

_CODE: Final = re.compile(r"[A-Za-z]{0,3}[0-9]{0,3}|[A-Za-z]+(?:[_./+-][A-Za-z0-9]+)*")
_FEW: Final = 12
_SAMPLE: Final = 20_000
_TRIED: Final = 5
_FORMS: Final = 80


class _Column(NamedTuple):
    """A column of a table; ``told`` is all about it in words, on one line."""

    sql: str
    type: str
    category: str
    told: str
    may_exclude: bool
    """Whether it may say that a row does not count: by a code, a time that is set, or yes and no."""


def draft(connection: Connection, tables: dict[str, str], holds: Holds | None) -> list[str]:
    """Return the lines of the skeleton, its comments as messages.

    ``tables`` are the tables of sales, records and clients, as far as a person named them.

    Raises:
        InvalidInput: one of them is not there.
    """
    there = connection.execute(sa.text(_TABLES)).all()
    lines: list[str] = [Message("-- The tables of this database, with their rows as far as PostgreSQL knows:")]
    lines += [Message("--   {} ({:,})", row.place, max(row.rows, 0)) for row in there]
    lines += [
        Message("-- Replace each TODO, and each NULL that one of the columns above it holds under another name."),
        Message("-- Times need a zone: created AT TIME ZONE 'America/Sao_Paulo'."),
        Message("-- Codes: CASE kind WHEN 'ACT' THEN 'POV' ... END AS evidence_type. See toolkit db map --help."),
    ]
    for relation in COLUMNS:
        lines += ["", f"-- name: {relation}", *_select(connection, relation, tables.get(relation), holds)]
    return [
        *lines,
        "",
        Message("-- add_clients, add_records, add_sales, complete_sale: only where the toolkit may write;"),
        Message("-- the packaged service.sql shows how they look for the contract's own tables."),
    ]


def _select(connection: Connection, relation: str, table: str | None, holds: Holds | None) -> Iterator[str]:
    columns = [] if table is None else _columns(connection, table)
    yield from (Message("--   {}", each.told) for each in columns)
    if table and relation == "records" and holds:
        yield from _keys(connection, table, columns, holds)
    yield "SELECT"
    values = []
    for name, kind in COLUMNS[relation].items():
        exact = kind.replace("timestamptz", "timestamp with time zone")
        same = [
            each.sql
            for each in columns
            if _plain(each.sql) == _plain(name)
            and (each.type == exact or (kind == "text" and each.category == "S"))
        ]
        needed = name in REQUIRED[relation] or name == "is_client_financial_responsible"
        values.append(f"    {same[0] if len(same) == 1 else 'TODO' if needed else 'NULL'} AS {name}")
    yield ",\n".join(values)
    yield f"FROM {table or 'TODO'}"
    if kinds := [each.told for each in columns if each.may_exclude]:
        yield Message("-- WHERE: are some rows deleted, cancelled or of another kind? {}", listed(kinds))
    yield ";"


def _plain(name: str) -> str:
    return re.sub('[_"]', "", name).lower()


def _columns(connection: Connection, table: str) -> list[_Column]:
    rows = connection.execute(sa.text(_COLUMNS), {"table": table}).all()
    if not rows:
        raise InvalidInput(
            "There is no table {}; name it as SQL does, with its schema, such as crm.sales_sale.", table
        )
    found = []
    for row in rows:
        codes = row.labels or _codes(connection, table, row)
        about = "; ".join(filter(None, (row.type, row.key, ", ".join(codes))))
        name, about = (" ".join(text.split()) for text in (row.sql, about))
        told = Message("{} ({}; may be NULL)" if row.nullable else "{} ({})", name, about)
        may_exclude = bool(codes) or row.category == "B" or (row.nullable and row.category == "D")
        found.append(_Column(row.sql, row.type, row.category, told, may_exclude))
    return found


def _codes(connection: Connection, table: str, column: sa.Row[Any]) -> list[str]:
    """Return the codes in a column: a few short values in many rows, of a column about no person."""
    if column.key or column.category not in ("S", "N") or _PERSONAL.search(column.sql):
        return []
    query = f"""
        SELECT CAST(value AS text) AS value, count(*) AS times
        FROM (SELECT {column.sql} AS value FROM {table} LIMIT {_SAMPLE}) AS first
        WHERE value IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {_FEW + 1}
    """  # names that the catalogue gave
    rows = connection.execute(sa.text(query.replace(":", r"\:"))).all()
    are_few = 1 < len(rows) <= _FEW and sum(row.times for row in rows) >= 2 * len(rows)
    return [row.value for row in rows] if are_few and all(_CODE.fullmatch(row.value) for row in rows) else []


def _keys(connection: Connection, table: str, columns: Sequence[_Column], holds: Holds) -> Iterator[str]:
    """Yield the expressions whose values are keys, of one column or two: the bucket is asked for a few."""
    texts = [each.sql for each in columns if each.category == "S"]
    alone = [form.format(each) for each in texts for form in ("{}", "ltrim({}, '/')")]
    joined = [f"rtrim(ltrim({one}, '/'), '/') || '/' || {two}" for one, two in permutations(texts, 2)]
    forms = [*alone, *joined][:_FORMS]
    if not forms:
        return
    query = f"SELECT {', '.join(forms)} FROM {table} ORDER BY 1 DESC LIMIT {_TRIED}"  # names of the catalogue
    rows = connection.execute(sa.text(query.replace(":", r"\:"))).all()
    for place, form in enumerate(forms):
        tried = [row[place] for row in rows if row[place]]
        there = sum(map(holds, tried))
        if there:
            yield Message("-- object_key: in the bucket lie {} of {} tried: {}", there, len(tried), form)
            if there == len(tried):
                return


_TABLES: Final = """
    SELECT format('%I.%I', nspname, relname) AS place, CAST(reltuples AS bigint) AS rows
    FROM pg_class JOIN pg_namespace AS space ON space.oid = relnamespace
    WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT relispartition
      AND nspname NOT IN ('pg_catalog', 'information_schema', 'audit') AND nspname NOT LIKE 'pg\\_%'
    ORDER BY 1
"""

_COLUMNS: Final = """
    SELECT quote_ident(attname) AS sql, format_type(atttypid, NULL) AS type, NOT attnotnull AS nullable,
           CAST(typcategory AS text) AS category, ARRAY(
                SELECT CAST(enumlabel AS text) FROM pg_enum WHERE enumtypid = atttypid ORDER BY enumsortorder
           ) AS labels,
           (SELECT CASE contype WHEN 'p' THEN 'primary key' WHEN 'u' THEN 'unique'
                   ELSE '-> ' || CAST(CAST(confrelid AS regclass) AS text) END
            FROM pg_constraint WHERE conrelid = attrelid AND conkey = ARRAY[attnum] AND contype IN ('p', 'u', 'f')
            ORDER BY contype DESC LIMIT 1) AS key
    FROM pg_attribute JOIN pg_type AS kind ON kind.oid = atttypid
    WHERE attrelid = to_regclass(:table) AND attnum > 0 AND NOT attisdropped
    ORDER BY attnum
"""
"""By column: its name as SQL writes it, and ``key``: ``primary key``, ``unique`` or ``-> another table``."""
