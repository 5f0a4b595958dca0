"""Find out what the statements of a ``service.sql`` mean in one database: types, tables, columns, policies."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import psycopg
import sqlalchemy as sa
from psycopg import sql
from sqlalchemy import Connection

from toolkit.contract.service_rows import ServiceChange
from toolkit.database.service import (
    COLUMNS,
    IDS,
    NEW,
    WRITES,
    Service,
    functions_in,
    is_null,
    service_of,
    tables_in,
)
from toolkit.errors import SchemaMismatch
from toolkit.message import Message


@dataclass(frozen=True)
class TableBehind:
    """A table, view, partition or function that a statement uses.

    ``definition`` is a hash: of a view's SQL, of a function's body, of a table's policies.
    """

    oid: int
    kind: str
    columns: Mapping[str, str]
    """By name: the number of the column in the table, its type, labels of an enum, rule of a generated one."""
    definition: str | None = None


@dataclass(frozen=True)
class Resolved:
    """The tables and columns behind the statements of a file when they were tried."""

    sha256: str
    columns: Mapping[str, Mapping[str, str]]
    """By relation and column: the type that the statement yields."""
    tables: Mapping[str, TableBehind] = field(default_factory=dict)
    """By name, with the schema: what is read, through views and from partitions, too."""

    def document(self) -> dict[str, Any]:
        """Return it for a JSON document."""
        return asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Resolved":
        """Return what a document says."""
        tables = {name: TableBehind(**each) for name, each in document["tables"].items()}
        return cls(document["sha256"], document["columns"], tables)

    def changes_since(self, before: "Resolved") -> Iterator[str]:
        """Yield a sentence for each thing that is read otherwise than before."""
        if before.sha256 != self.sha256:
            yield ServiceChange.STATEMENTS.value
        for name in sorted({*self.tables, *before.tables}):
            now, was = self.tables.get(name), before.tables.get(name)
            if now is None and was is not None:
                yield ServiceChange[f"{_noun(was)}_UNREAD"].format(name)
            elif now is not None and was is None:
                if now.kind != "partition":  # a new month is no news
                    yield ServiceChange[f"{_noun(now)}_NEW"].format(name)
            elif now is not None and was is not None:
                yield from _changes(name, was, now)


def _changes(name: str, before: TableBehind, now: TableBehind) -> Iterator[str]:
    if before.definition != now.definition and now.kind in ("v", "m", "function"):
        yield ServiceChange[f"{_noun(now)}_REPLACED"].format(name)
    elif before.definition != now.definition:
        yield ServiceChange.POLICY_REPLACED.format(name)
    elif before.oid != now.oid:
        yield ServiceChange.TABLE_REPLACED.format(name)
        return
    for column in sorted({*before.columns, *now.columns}):
        was, is_ = before.columns.get(column), now.columns.get(column)
        if was == is_:
            continue
        if was is None:
            yield ServiceChange.COLUMN_NEW.format(name, column)
        elif is_ is None:
            yield ServiceChange.COLUMN_LOST.format(name, column)
        elif was.split(" ", 1)[0] != is_.split(" ", 1)[0]:
            yield ServiceChange.COLUMN_REPLACED.format(column, name)
        else:
            kinds = [each.split(" ", 1)[1] for each in (is_, was)]
            yield ServiceChange.COLUMN_CHANGED.format(column, name, *kinds)


def _noun(found: TableBehind) -> str:
    return {"v": "VIEW", "m": "VIEW", "function": "FUNCTION"}.get(found.kind, "TABLE")


def describe(connection: Connection, service: Service) -> dict[str, dict[str, str]]:
    """Try the SELECTs of a service and return the types that they yield, by relation and column.

    From then on the service converts what is read to the contract's types.

    Raises:
        SchemaMismatch: one does not fit the database, or yields a column of a wrong type or none.
    """
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    found: dict[str, dict[str, str]] = {}
    read: dict[str, dict[str, str]] = {}
    stored: dict[str, dict[str, str]] = {}
    for relation, columns in COLUMNS.items():
        place, statement = f"{service.source or 'service.sql'}, {relation}", service.statements[relation]
        try:
            query = sql.SQL("SELECT * FROM ({}) AS given LIMIT 0").format(sql.SQL(statement))
            answer = driver.execute(query)
            described = answer.description or []
        except psycopg.Error as error:
            denied = error.sqlstate == "42501"
            if denied or error.sqlstate is None or error.sqlstate[:2] not in ("42", "22", "0A", "3F"):
                raise
            raise SchemaMismatch("{}: {}. {}", place, error.diag.message_primary, _hint(service, error)) from None
        names = [column.name for column in described]
        repeated = sorted({name for name in names if names.count(name) > 1})
        missing = [name for name in columns if name not in names]
        if repeated or missing:
            problem = f"yields {repeated[0]} twice" if repeated else f"does not yield {', '.join(missing)}"
            raise SchemaMismatch("{}: {}. What the tables do not hold is written as NULL AS name.", place, problem)
        oids = [column.type_code for column in described]
        kinds = {row.oid: row for row in connection.execute(_TYPES_BY_OID, {"oids": oids})}
        assert answer.pgresult is not None
        service.origin[relation] = answer.pgresult.ftable(names.index("id"))
        types = {column.name: kinds[column.type_code] for column in described if column.name in columns}
        read[relation] = {
            name: _converted(place, name, kind, types[name], is_null(statement, name), own=service.is_own)
            for name, kind in columns.items()
        }
        stored[relation] = {
            name: _STORED[kind, types[name].name]
            for name, kind in columns.items()
            if (relation, name) in IDS and (kind, types[name].name) in _STORED
        }
        found[relation] = {name: str(types[name].name) for name in columns}
    if not service.is_own:
        service.read.update(read)
        service.stored.update(stored)
    return found


def _converted(place: str, name: str, kind: str, given: Any, null: bool, *, own: bool) -> str:
    """Return the expression that gives the contract's type; raises where there is no safe one.

    The contract's ``own`` tables are read as they are, so that their types have to fit.
    """
    is_text, is_whole = given.category in ("S", "E"), given.name in ("smallint", "integer", "bigint")
    if given.name == kind or (kind == "timestamptz" and given.name == "timestamp with time zone"):
        return name
    if own and kind == "text" and given.category == "S":
        return name
    if own:
        is_text = is_whole = False
    if null and is_text:
        return f"CAST(NULL AS {kind})"
    if kind == "text" and (is_text or is_whole or (given.name in ("uuid", "numeric") and not own)):
        return f"CAST({name} AS text)"
    if kind == "uuid" and is_whole:
        return f"CASE WHEN {name} >= 0 THEN CAST(lpad(CAST({name} AS text), 32, '0') AS uuid) END"
    if kind == "uuid" and is_text:
        is_uuid = f"CAST({name} AS text) ~* '^[0-9a-f]{{8}}-?([0-9a-f]{{4}}-?){{3}}[0-9a-f]{{12}}$'"
        return f"CASE WHEN {is_uuid} THEN CAST(CAST({name} AS text) AS uuid) END"
    advice = ""
    if given.name.startswith("timestamp"):
        advice = f" Name its zone, such as: {name} AT TIME ZONE 'America/Sao_Paulo' AS {name}."
    raise SchemaMismatch("{}: {} is of type {}, and {} is expected.{}", place, name, given.name, kind, advice)


_WHOLE: Final = """
    CASE WHEN NOT {} ~ '^-?[0-9]{1,32}$' THEN NULL
         WHEN CAST({} AS numeric) BETWEEN -9223372036854775808 AND 9223372036854775807 THEN CAST({} AS bigint) END
"""
_STORED: Final = {
    ("text", "uuid"): "CASE WHEN {} ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN CAST({} AS uuid) END",
    **{("text", kind): _WHOLE for kind in ("smallint", "integer", "bigint")},
    **{
        ("uuid", kind): _WHOLE.replace("{}", "replace(CAST({} AS text), '-', '')")
        for kind in ("smallint", "integer", "bigint")
    },
}
"""By the types of the contract and of a table: what an id, in place of ``{}``, is in the table."""


def _hint(service: Service, error: psycopg.Error) -> Message:
    given = f"{error.diag.message_hint} " if error.diag.message_hint else ""
    if not service.is_own:
        return Message("{}Correct the file; nothing was read.", given)
    return Message(
        "{}The service's tables are never altered here. Where it keeps its data in other tables, write the SQL "
        "that reads them (toolkit db map) and name its file in TOOLKIT_SERVICE_SQL. Where there are none yet: "
        "toolkit db upgrade --service-tables",
        given,
    )


_TYPES_BY_OID: Final = sa.text(
    "SELECT CAST(oid AS bigint) AS oid, format_type(oid, NULL) AS name, typcategory AS category "
    "FROM pg_type WHERE CAST(oid AS bigint) = ANY(:oids)"
)


def resolve(connection: Connection) -> Resolved:
    """Return what the statements that read mean in the connection's database now; raises as ``describe`` does."""
    service = service_of(connection)
    columns = describe(connection, service)
    called = {name for relation in COLUMNS for name in functions_in(service.statements[relation])}
    names = {"names": _read(service), "called": sorted(called)}
    rows = connection.execute(sa.text(_REACHED + _TABLES), names)
    tables = {row.place: TableBehind(row.oid, row.kind, row.columns, row.definition) for row in rows}
    return Resolved(service.sha256, columns, tables)


def _read(service: Service) -> list[str]:
    return sorted({name for relation in COLUMNS for name in tables_in(service.statements[relation])})


def hidden_and_copied(connection: Connection) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the tables whose policies may hide rows, and the materialised views, by their names."""
    rows = connection.execute(
        sa.text(_REACHED + _HIDDEN_OR_COPIED), {"names": _read(service_of(connection))}
    ).all()
    return tuple(row.place for row in rows if not row.copied), tuple(row.place for row in rows if row.copied)


def rights(connection: Connection, *, write: bool = False, erase: bool = False) -> list[str]:
    """Return the rights that the statements need, such as ``SELECT`` on a table, with those on schemas.

    Those that read always; ``write``: also those that add and complete; ``erase``: also those that erase.
    """
    service = service_of(connection)
    wanted = {name: {"SELECT"} for name in _read(service)}
    for name, statement in service.statements.items():
        erases = name.startswith("erase_")
        if name in WRITES and (erase if erases else write):
            for table in tables_in(statement):
                if table not in NEW:
                    wanted.setdefault(table, {"SELECT"}).update(("DELETE",) if erases else ("INSERT", "UPDATE"))
    rows = connection.execute(sa.text(_PLACES), {"names": sorted(wanted)}).all()
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row.place, set()).update(wanted[row.name])
    order = ("SELECT", "INSERT", "UPDATE", "DELETE")
    schemas = dict.fromkeys(row.space for row in rows)
    return [f"USAGE ON SCHEMA {schema}" for schema in schemas if schema != "public"] + [
        f"{', '.join(each for each in order if each in kinds)} ON {place}" for place, kinds in found.items()
    ]


_PLACES: Final = """
    SELECT given.name, format('%I.%I', nspname, relname) AS place, quote_ident(nspname) AS space
    FROM unnest(CAST(:names AS text[])) AS given (name)
    JOIN pg_class AS class ON class.oid = to_regclass(given.name)
    JOIN pg_namespace AS space ON space.oid = relnamespace
    WHERE relkind IN ('r', 'p', 'v', 'm', 'f')
    ORDER BY 2
"""

_REACHED: Final = """
    WITH RECURSIVE reached AS (
        SELECT class.oid AS place, relkind AS kind, CAST(current_user AS name) AS reader, false AS is_part
        FROM unnest(CAST(:names AS text[])) AS given (name)
        JOIN pg_class AS class ON class.oid = to_regclass(given.name)
        WHERE relkind IN ('r', 'p', 'v', 'm', 'f')
        UNION
        SELECT behind.oid, behind.relkind,
               CASE WHEN here.relkind IN ('v', 'm') AND NOT coalesce(
                   (SELECT CAST(option_value AS boolean) FROM pg_options_to_table(here.reloptions)
                    WHERE option_name = 'security_invoker'), false)
               THEN pg_get_userbyid(here.relowner) ELSE reader END,
               next.is_part
        FROM reached
        JOIN pg_class AS here ON here.oid = reached.place
        CROSS JOIN LATERAL (
            SELECT used.refobjid AS place, false AS is_part
            FROM pg_rewrite
            JOIN pg_depend AS used ON used.classid = CAST('pg_rewrite' AS regclass) AND used.objid = pg_rewrite.oid
                 AND used.refclassid = CAST('pg_class' AS regclass) AND used.refobjid <> reached.place
            WHERE ev_class = reached.place AND kind IN ('v', 'm')
            UNION ALL
            SELECT inhrelid, true FROM pg_inherits WHERE inhparent = reached.place
        ) AS next
        JOIN pg_class AS behind ON behind.oid = next.place
    )
"""
"""The tables that are named, those behind views and their parts, each with the role whose rights hold for it.

What a view names is read with its owner's rights, or with those of its own reader (``security_invoker``).
"""

_TABLES: Final = """
    (SELECT DISTINCT ON (1) format('%I.%I', nspname, relname) AS place, CAST(class.oid AS bigint) AS oid,
           CASE WHEN is_part AND relispartition THEN 'partition' ELSE CAST(relkind AS text) END AS kind,
           (SELECT coalesce(jsonb_object_agg(attname, concat(attnum, ' ', format_type(atttypid, atttypmod), (
                SELECT format(' (%s)', string_agg(enumlabel, ', ' ORDER BY enumsortorder))
                FROM pg_enum WHERE enumtypid = atttypid HAVING count(*) > 0), (
                SELECT ' = ' || pg_get_expr(adbin, adrelid)
                FROM pg_attrdef WHERE adrelid = attrelid AND adnum = attnum AND attgenerated <> ''))), '{}')
            FROM pg_attribute
            WHERE attrelid = class.oid AND attnum > 0 AND NOT attisdropped AND NOT (is_part AND relispartition)
           ) AS columns,
           CASE WHEN relkind IN ('v', 'm') THEN md5(pg_get_viewdef(class.oid))
                WHEN relrowsecurity THEN (
                    SELECT md5(string_agg(concat(polname, polroles, polcmd, pg_get_expr(polqual, polrelid)), ' '
                                          ORDER BY polname))
                    FROM pg_policy WHERE polrelid = class.oid) END AS definition
    FROM reached
    JOIN pg_class AS class ON class.oid = reached.place
    JOIN pg_namespace AS space ON space.oid = relnamespace
    WHERE relkind IN ('r', 'p', 'v', 'm', 'f')
    ORDER BY 1, is_part)
    UNION ALL
    SELECT DISTINCT CAST(CAST(found.oid AS regprocedure) AS text), CAST(0 AS bigint), 'function',
           CAST('{}' AS jsonb),
           md5(concat(prosrc, pg_get_function_sqlbody(found.oid)))
    FROM unnest(CAST(:called AS text[])) AS given (name)
    CROSS JOIN LATERAL parse_ident(given.name) AS parts
    JOIN pg_proc AS found ON proname = parts[cardinality(parts)]
    JOIN pg_namespace AS space ON space.oid = pronamespace AND nspname NOT IN ('pg_catalog', 'information_schema')
    WHERE parts[cardinality(parts) - 1] = nspname OR (cardinality(parts) = 1 AND pg_function_is_visible(found.oid))
    ORDER BY 1
"""

_HIDDEN_OR_COPIED: Final = """
    SELECT DISTINCT CAST(CAST(here.oid AS regclass) AS text) AS place, relkind = 'm' AS copied
    FROM reached
    JOIN pg_class AS here ON here.oid = reached.place
    JOIN pg_roles AS role ON role.rolname = reached.reader
    WHERE relkind = 'm'
       OR (relrowsecurity AND NOT is_part AND NOT rolsuper AND NOT rolbypassrls
           AND (relforcerowsecurity OR NOT pg_has_role(role.oid, relowner, 'USAGE')))
    ORDER BY 1
"""
