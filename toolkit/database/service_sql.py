"""Help a person to write a ``service.sql``: ``draft`` prints its beginning, ``prove`` tries a file on the data.

The beginning is for tables that a person names: it tells what is there, and guesses nothing. A column is filled in
only where its name and type are the contract's. What else the contract needs says TODO, which no database takes.
Above each SELECT stand all columns of its table and, where these hold a few codes, the codes. No other value of a
row is shown. Codes, who pays and time zones are for a person who knows the service.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any, Final, NamedTuple
from unicodedata import normalize
from urllib.parse import unquote, unquote_plus

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import DataError, DBAPIError, ProgrammingError

from toolkit.contract.service_rows import FLAWS, LEFT_OUT
from toolkit.database.connection import Database
from toolkit.database.observations import counts_of, rows_behind
from toolkit.database.service import CODED, COLUMNS, NEW, REQUIRED, WRITES, mentions, service_of
from toolkit.database.service_tables import (
    WHOLE_TYPES,
    hidden_and_copied,
    made_of,
    parts_alone,
    referring,
    resolve,
    views_that_filter,
)
from toolkit.database.statements import (
    answers_of_nothing,
    columns_in,
    defaults,
    is_null,
    tables_in,
    taken_of_several,
    tree_of,
)
from toolkit.errors import InvalidInput, SchemaMismatch, WriteRefused
from toolkit.message import Message, listed

_SHOWN: Final = (*(f"{relation}.{name}" for relation in CODED for name in CODED[relation]), "sales.partner")
_TRIED_KEYS: Final = 20
Holds = Callable[[str], bool]  # tells whether the bucket holds an object under a key

_PERSONAL: Final = re.compile(
    "nam|nom|cpf|doc|mail|phon|fon|tel|celu|birth|born|nasc|addr|ender|street|logr|bairro|city|cidad|cep|zip|note|obs|"
    "desc(?!a)|text|pass|senha|token|key|user|matr|enrol|inst|(?<![a-z])(rg|cel|rua|lat|lon)(?![a-z])",
    re.IGNORECASE,
)
"""Names of columns whose values may say something about a person; none of them is shown."""

_CODE: Final = re.compile(r"[A-Za-z]{0,3}[0-9]{0,3}|[^\W\d_]+(?:(?:[_./+\\-]|::)[^\W_]+)*")
_FEW: Final = 12
_SAMPLE: Final = 20_000
_TRIED: Final = 5
_FORMS: Final = 80


class _Column(NamedTuple):
    """A column of a table; ``described`` is all about it in words, on one line."""

    sql: str
    type: str
    category: str
    described: str
    may_exclude: bool  # whether it may say that a row does not count: a code, flag, time, range or another row


def draft(connection: Connection, tables: dict[str, str], holds: Holds | None) -> list[str]:
    """Return the lines of the skeleton, its comments as messages.

    ``tables`` are the tables of sales, records and clients, as far as a person named them.

    Raises:
        InvalidInput: one of them is not there.
    """
    lines: list[str] = [Message("-- The tables of this database, with their rows as far as PostgreSQL knows:")]
    lines += [
        Message("--   {}", row.place) if row.rows is None else Message("--   {} ({:,})", row.place, row.rows)
        for row in connection.execute(sa.text(_TABLES))
    ]
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
    yield from (Message("--   {}", each.described) for each in columns)
    if table and relation == "records" and holds:
        yield from _keys(connection, table, columns, holds)
    yield "SELECT"
    values = []
    for name, kind in COLUMNS[relation].items():
        exact = kind.replace("timestamptz", "timestamp with time zone")
        same = [
            each.sql
            for each in columns
            if re.sub('[_"]', "", each.sql).lower() == name.replace("_", "")
            and (each.type == exact or (kind == "text" and each.category == "S"))
        ]
        needed = name in REQUIRED[relation] or name == "is_client_financial_responsible"
        values.append(f"    {same[0] if len(same) == 1 else 'TODO' if needed else 'NULL'} AS {name}")
    yield ",\n".join(values)
    yield f"FROM {table or 'TODO'}"
    if kinds := [each.described for each in columns if each.may_exclude]:
        yield Message("-- WHERE: are some rows deleted, cancelled or of another kind? {}", listed(kinds))
    yield ";"


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
        described = Message("{} ({}; may be NULL)" if row.nullable else "{} ({})", name, about)
        dated = row.nullable and (row.category == "D" or row.of_own)
        may_exclude = bool(codes) or row.category in ("B", "R") or dated or _may_lack_time(connection, table, row)
        found.append(_Column(row.sql, row.type, row.category, described, may_exclude))
    return found


def _may_lack_time(connection: Connection, table: str, column: sa.Row[Any]) -> bool:
    """Tell whether a column holds times, also unix times and texts, and may hold none: NULL, 0, 9999-12-31."""
    if column.category not in ("D", "N", "S") or _PERSONAL.search(column.sql):
        return False
    name, table = (each.replace(":", r"\:") for each in (column.sql, table))
    query = f"""
        SELECT bool_or(value ~ :time) AND (:nullable OR bool_or(value ~ :none))
        FROM (SELECT CAST({name} AS text) COLLATE "C" AS value FROM {table} LIMIT {_SAMPLE}) AS first
    """  # names that the catalogue gave
    bound = {"time": _TIME, "none": _NO_TIME, "nullable": column.nullable}
    return bool(connection.scalar(sa.text(query), bound))


_TIME: Final = r"^(-?inf|\d{4}-\d{2}-|1\d{9}(\d{3})*(\.|$))"
_NO_TIME: Final = r"^(0*(\.0*)?$|-?inf|(?!19[7-9]|20[0-8])\d{4}-)"


def _codes(connection: Connection, table: str, column: sa.Row[Any]) -> list[str]:
    """Return the few codes in a column; dots where they are no codes, stand in few rows, or tell of a person."""
    is_key = column.key and not column.key.startswith(("part of", "->"))
    if is_key or column.category not in ("S", "N"):
        return []
    query = f"""
        SELECT CAST(value AS text) AS value, count(*) AS times
        FROM (SELECT {column.sql} AS value FROM {table} LIMIT {_SAMPLE}) AS first
        GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {_FEW + 1}
    """  # names that the catalogue gave
    rows = connection.execute(sa.text(query.replace(":", r"\:"))).all()
    found = {row.value: row.times for row in rows}
    if not 1 < len(found) <= _FEW or sum(found.values()) < 2 * len(found):
        return []
    found.pop(None, None)
    are_codes = all(map(_CODE.fullmatch, found))
    if are_codes and sum(found.values()) >= 2 * len(found) and not _PERSONAL.search(column.sql):
        return [code or "''" for code in found]
    return ["..."] * (are_codes or column.category == "S")


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
    SELECT format('%I.%I', nspname, relname) AS place,
           CASE WHEN reltuples > 0 OR (reltuples = 0 AND relkind IN ('r', 'm'))
                THEN CAST(reltuples AS bigint) END AS rows
    FROM pg_class JOIN pg_namespace AS space ON space.oid = relnamespace
    WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT relispartition
      AND nspname NOT IN ('pg_catalog', 'information_schema', 'audit') AND nspname NOT LIKE 'pg\\_%'
    ORDER BY 1
"""

_COLUMNS: Final = """
    SELECT quote_ident(attname) AS sql, format_type(atttypid, NULL) AS type, NOT attnotnull AS nullable,
           EXISTS (SELECT FROM pg_constraint
                   WHERE conrelid = attrelid AND confrelid = attrelid AND attnum = ANY(conkey)) AS of_own,
           CASE WHEN has_column_privilege(attrelid, attnum, 'SELECT') THEN typcategory::text END AS category,
           ARRAY(SELECT CAST(enumlabel AS text) FROM pg_enum WHERE enumtypid = atttypid ORDER BY enumsortorder)
               AS labels,
           (SELECT CASE WHEN cardinality(conkey) > 1 THEN 'part of ' ELSE '' END ||
                   CASE contype WHEN 'p' THEN 'primary key' WHEN 'u' THEN 'unique'
                   ELSE '-> ' || CAST(CAST(confrelid AS regclass) AS text) END
            FROM pg_constraint WHERE conrelid = attrelid AND attnum = ANY(conkey) AND contype IN ('p', 'u', 'f')
            ORDER BY cardinality(conkey), contype DESC LIMIT 1) AS key
    FROM pg_attribute JOIN pg_type AS kind ON kind.oid = atttypid
    WHERE attrelid = to_regclass(:table) AND attnum > 0 AND NOT attisdropped
    ORDER BY attnum
"""
"""By column: its name as SQL writes it, and ``key``: ``[part of ]primary key``, ``unique`` or ``-> table``."""


def prove(database: Database, holds: Holds | None) -> dict[str, Any]:
    """Look at all rows; ``holds`` tells whether the bucket has an object, where there is a bucket to ask.

    Returns:
        ``counts`` are those of a reading, ``values`` the rows of each code, for somebody who knows the service;
        ``flaws`` need attention; ``notes`` say what cannot be written, or is not stored, and why.

    Raises:
        SchemaMismatch: a statement does not fit the database, or a row of it.
    """
    with database.snapshot() as connection:
        resolved = resolve(connection)
        try:
            with connection.begin_nested():
                counts = counts_of(connection)
        except (DataError, ProgrammingError):
            _check_values(connection)
            raise
        flaws = [
            Message("{}: the statement yields none of the rows of its table.", name)
            for name in ("sales", "records")
            if not counts[name] and counts[f"{name}LeftOut"]
        ]
        flaws += [Message(text, counts[name]) for name, text in FLAWS.items() if counts[name]]
        flaws += [*_ids(connection), *_times(connection)]
        flaws += [] if holds is None else _keys_in_bucket(connection, holds)
        values = dict(_values(connection))
        notes = [Message(text, counts[name]) for name, text in LEFT_OUT.items() if counts[name]]
        notes += _notes(connection, resolved["tables"], counts)
    with database.transaction() as connection:
        notes += _writing(connection, resolved["columns"])
    return {"counts": counts, "values": values, "flaws": flaws, "notes": notes}


def _check_values(connection: Connection) -> None:
    """Find the column whose expression fails on a value, such as a cast: the error itself may quote the value."""
    service = service_of(connection)
    for relation, columns in COLUMNS.items():
        for column in columns:
            try:
                with connection.begin_nested():
                    connection.execute(sa.text(f"SELECT count({column}) FROM {service.text(relation)} AS read"))
            except (DataError, ProgrammingError) as error:
                raise SchemaMismatch(
                    "{}, {}: {} cannot be read from every row [{}]. Check the names of time zones, let a subquery "
                    "find one row, and yield NULL where a value does not fit: then it is told.",
                    *(service.source or "service.sql", relation, column, getattr(error.orig, "sqlstate", "")),
                ) from None


def _ids(connection: Connection) -> Iterator[Message]:
    """Yield the columns of ids that are read as NULL, as their values are no uuid and no number."""
    service = service_of(connection)
    for relation, columns in service.read.items():
        for name in (each for each, kind in COLUMNS[relation].items() if kind == "uuid"):
            query = f"""
                SELECT count({name}) FROM ({service.statements[relation]}) AS given WHERE {columns[name]} IS NULL
            """
            if count := connection.execute(sa.text(query.replace(":", r"\:"))).scalar_one():
                uuid = f"CASE WHEN {name} ~ '^[0-9a-f-]{{36}}$' THEN {name} ELSE md5({name}) END"
                yield Message(
                    "{}, {}: values that are no uuid, and are read as NULL: {:,}. Write, for instance: {} AS {}.",
                    *(relation, name, count, uuid, name),
                )


def _times(connection: Connection) -> Iterator[Message]:
    """Yield times that have no zone of their own, or let a wrong one be suspected."""
    service = service_of(connection)
    for relation, columns in COLUMNS.items():
        names = [name for name, kind in columns.items() if kind == "timestamptz"]
        seconds = ", ".join(f"sum(extract(epoch FROM {name})) FILTER (WHERE isfinite({name}))" for name in names)
        sums = []
        for zone in ("Asia/Tokyo", "UTC"):  # the latter is the session's
            connection.execute(sa.text("SELECT set_config('TimeZone', :zone, true)"), {"zone": zone})
            sums.append(
                connection.execute(sa.text(f"SELECT {seconds} FROM {service.text(relation)} AS read")).one()
            )
        for name, there, here in zip(names, *sums, strict=True):
            if there != here:
                yield Message(
                    "{}, {}: the value has no time zone, and is read in UTC. Write, for instance: {} AS {}.",
                    *(relation, name, f"{name} AT TIME ZONE 'America/Sao_Paulo'", name),
                )
    query = f"""
        SELECT count(*), count(*) FILTER (WHERE requested_at < sale.created_at),
               (SELECT count(*) FROM {service.text("sales")} AS read WHERE completed_at < created_at)
        FROM {service.text("records")} AS record JOIN {service.text("sales")} AS sale ON sale.id = sale_id
    """  # the operator's own statements, as below
    rows, early, ended = connection.execute(sa.text(query)).one()
    if early > rows / 2:
        yield Message(
            "Evidence records that were requested before their sale was created (check the zones): {:,}.", early
        )
    if ended:
        yield Message("Sales that were completed before they were created (check the zones): {:,}.", ended)


def _keys_in_bucket(connection: Connection, holds: Holds) -> Iterator[Message]:
    """Yield it where none of the newest keys lies in the bucket, and where some lie there in another form."""
    read = service_of(connection).text("records")
    keys = f"SELECT object_key FROM {read} AS read WHERE object_key <> '' ORDER BY "
    newest, unusual = (
        connection.scalars(sa.text(f"{keys}{first}requested_at DESC, id LIMIT {_TRIED_KEYS}")).all()
        for first in ("", "object_key ~ '^[a-zA-Z0-9][a-zA-Z0-9_./-]*$', ")
    )
    tried = dict.fromkeys((*newest, *unusual))
    absent = [key for key in tried if not holds(key)]
    if newest and set(absent).issuperset(newest):
        yield Message("None of the {} newest object_key lies in the bucket.", len(newest))
    others = ((form for form, made in _other_forms(key) if made and holds(made)) for key in absent)
    found = Counter(next(each, "") for each in others)
    del found[""]
    for form, count in found.items():
        yield Message("Of {} object_key tried, {} lie in the bucket in another form: {}", len(tried), count, form)


def _other_forms(key: str) -> Iterator[tuple[str, str]]:
    """Yield other ways to write a key, by a name and the key."""
    bare = re.sub(r"^(\w+://[^/]+)?/*", "", key)
    yield "s3://.../key, /key -> key", bare
    yield "%20 -> ' '", unquote(bare)
    yield "+ -> ' '", unquote_plus(bare)
    yield "normalize(key, NFC)", normalize("NFC", unquote(bare))
    yield "normalize(key, NFD)", normalize("NFD", unquote(bare))


def _values(connection: Connection) -> Iterator[tuple[str, str]]:
    service = service_of(connection)
    for shown in _SHOWN:
        relation, column = shown.split(".")
        query = f"""
            SELECT coalesce(CAST({column} AS text), 'NULL'), count(*) FROM {service.text(relation)} AS read
            GROUP BY 1 ORDER BY 2 DESC, 1
        """
        found = [f"{value} {count}" for value, count in connection.execute(sa.text(query))]
        yield shown, ", ".join(found if len(found) <= _FEW else [*found[:_FEW], "..."])
    for shown in ("sales.created_at", "sales.completed_at", "records.requested_at"):
        relation, name = shown.split(".")
        query = f"SELECT count({name}), min({name})::text, max({name})::text FROM {service.text(relation)} AS read"
        count, oldest, newest = connection.execute(sa.text(query)).one()
        yield shown, Message("{:,} from {} to {}", count, oldest, newest) if count else "0"


def _notes(connection: Connection, tables: Mapping[str, Any], counts: Mapping[str, int]) -> Iterator[Message]:
    service = service_of(connection)
    for name in (each for each, statement in service.statements.items() if tree_of(statement) is None):
        yield Message("{}: its syntax is not known here: nobody looked at its rows, codes and tables.", name)
    for relation in ("sales", "records"):
        if counts[relation] > rows_behind(connection, relation):
            yield Message(
                "{}: nobody tells when rows are left out, as it yields more than its table has.", relation
            )
        untimed = (name for name, kind in COLUMNS[relation].items() if kind != "timestamptz")
        if words := taken_of_several(service.statements[relation], untimed):
            yield Message("{}: of several values one is taken, and nobody tells ({}).", relation, listed(words))
    if unnamed := [*_unnamed(connection)]:
        yield Message("No SELECT names these columns, by which a row may not count: {}", listed(unnamed))
    if others := referring(connection):
        yield Message("Rows of tables that are not read refer to sales or records: {}", listed(others))
    for relation, column in (shown.split(".") for shown in _SHOWN):
        for place, name, select in made_of(connection, relation, column):
            for value in defaults(select, name):
                yield Message(
                    "{}, {}: nobody tells of codes that are new, or NULL: they become {}.", place, name, value
                )
            if words := answers_of_nothing(select, name):
                missing = listed(words)
                yield Message("{}, {}: what is missing is an answer, and nobody tells ({}).", place, name, missing)
    for name in (each for each, table in tables.items() if table["kind"] == "function"):
        yield Message("The tables behind the function {} are not known: nobody tells when they change.", name)
    for relation, columns in REQUIRED.items():
        if absent := ", ".join(name for name in columns if is_null(service.statements[relation], name)):
            yield Message("{}: the contract requires {}, which the tables do not hold.", relation, absent)
    for row in parts_alone(connection):
        yield Message("{} is one part of {}: the rows of its other parts are not read.", row.part, row.whole)
    for view in views_that_filter(connection):
        yield Message("The view {} may leave rows of its tables out: nobody counts those.", view)
    hidden, copied = hidden_and_copied(connection)
    for table in hidden:
        yield Message("Row level security may hide rows of {} from this role.", table)
    for table in copied:
        yield Message("{} is a materialised view or a foreign table: nobody tells what changes behind it.", table)
    encoding = connection.execute(sa.text("SELECT current_setting('server_encoding')")).scalar_one()
    if encoding != "UTF8":
        yield Message(
            "The database is encoded in {}: texts of other characters are refused or not read.", encoding
        )


def _unnamed(connection: Connection) -> Iterator[Message]:
    statements = [service_of(connection).statements[relation] for relation in COLUMNS]
    named = set[tuple[str, str]]().union(*map(columns_in, statements))
    for table in dict.fromkeys(name for each in statements[:2] for name in tables_in(each)):
        if connection.scalar(sa.text("SELECT to_regclass(:name)"), {"name": table}) is not None:
            own = table.rpartition(".")[2].strip('"')
            for each in _columns(connection, table):
                if each.may_exclude and named.isdisjoint((name, each.sql.strip('"')) for name in ("", own)):
                    yield Message("{}: {}", table, each.described)


def _writing(connection: Connection, types: Mapping[str, Mapping[str, str]]) -> Iterator[Message]:
    """Yield what cannot be written: each statement is planned, on no rows."""
    service = service_of(connection)
    for name, (relation, impossible) in WRITES.items():
        if name not in service.statements:
            yield Message("{}: there is no statement {}.", Message(impossible), name)
            continue
        stored = types.get(relation.removeprefix("new_"), {}).get("id")
        if NEW[relation]["id"] == "uuid" and stored in WHOLE_TYPES:
            yield Message("{} stores nothing: its ids are uuids, and those that are read are whole numbers.", name)
        if dropped := [each for each in NEW[relation] if not mentions(service.statements[name], each)]:
            yield Message("{} does not store {}.", name, ", ".join(dropped))
        nulls = ", ".join(f"CAST(NULL AS {kind}) AS {column}" for column, kind in NEW[relation].items())
        try:
            statement: Any = service.over(name, f"{relation} AS (SELECT {nulls} WHERE false)")
            with connection.begin_nested():
                connection.execute(sa.text(f"EXPLAIN {statement.text}"))
        except WriteRefused as error:
            yield error.message
        except DBAPIError as error:
            yield Message("{}: {}.", Message(impossible), str(error.orig).splitlines()[0])
