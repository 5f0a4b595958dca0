"""Find out what the statements of a ``service.sql`` mean in one database: types, tables, columns, policies."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import psycopg
import sqlalchemy as sa
from psycopg import sql
from sqlalchemy import Connection

from toolkit.contract.service_rows import ServiceChange
from toolkit.database.service import COLUMNS, IDS, NEW, WRITES, Service, service_of
from toolkit.database.statements import columns_of, cut_off, functions_in, is_null, nodes, tables_in
from toolkit.errors import SchemaMismatch
from toolkit.message import Message

Resolved = Mapping[str, Any]
"""The meaning of a file's statements when they were tried.

``sha256`` is the file's, ``columns`` has the types by relation and column. ``tables`` has what is read, through
views and from partitions, too, by its name with the schema: ``oid`` (for a foreign table a hash of what it leads
to), ``kind``, ``columns`` (by name: its number in the table, type, labels of an enum, rule of a generated one) and
``definition``, a hash of a view's SQL, of a function's body or of a table's policies.
"""


def changes_between(before: Resolved, now: Resolved) -> Iterator[str]:
    """Yield a sentence for each thing that is read otherwise than before."""
    if before["sha256"] != now["sha256"]:
        yield ServiceChange.STATEMENTS.value
    for name in sorted({*before["tables"], *now["tables"]}):
        was, is_ = before["tables"].get(name), now["tables"].get(name)
        kind = (is_ or was)["kind"]
        noun = {"v": "VIEW", "m": "VIEW", "function": "FUNCTION"}.get(kind, "TABLE")
        if is_ is None:
            yield ServiceChange[f"{noun}_UNREAD"].format(name)
        elif was is None:
            if kind != "partition":  # a new month is no news
                yield ServiceChange[f"{noun}_NEW"].format(name)
        elif was["definition"] == is_["definition"] and was["oid"] != is_["oid"]:
            yield ServiceChange.TABLE_REPLACED.format(name)
        else:
            if was["definition"] != is_["definition"]:
                yield ServiceChange["POLICY_REPLACED" if noun == "TABLE" else f"{noun}_REPLACED"].format(name)
            yield from _columns_between(name, was["columns"], is_["columns"])


def _columns_between(table: str, before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for column in sorted({*before, *now}):
        if column not in before:
            yield ServiceChange.COLUMN_NEW.format(table, column)
        elif column not in now:
            yield ServiceChange.COLUMN_LOST.format(table, column)
        elif before[column] != now[column]:
            (number, was), (other, is_) = (each[column].split(" ", 1) for each in (before, now))
            if number != other:
                yield ServiceChange.COLUMN_REPLACED.format(column, table)
            else:
                yield ServiceChange.COLUMN_CHANGED.format(column, table, is_, was)


def describe(connection: Connection, service: Service) -> dict[str, dict[str, str]]:
    """Try the SELECTs of a service and return the types that they yield, by relation and column.

    From then on the service converts what is read to the contract's types.

    Raises:
        SchemaMismatch: one does not fit the database, or yields a column of a wrong type or none.
    """
    found: dict[str, dict[str, str]] = {}
    read: dict[str, dict[str, str]] = {}
    for relation, columns in COLUMNS.items():
        place, statement = f"{service.source or 'service.sql'}, {relation}", service.statements[relation]
        answer = _tried(connection, service, place, statement)
        yielded = answer.description or []
        names = [column.name for column in yielded]
        repeated = sorted({name for name in names if names.count(name) > 1})
        missing = [name for name in columns if name not in names]
        if repeated or missing:
            problem = f"yields {repeated[0]} twice" if repeated else f"does not yield {', '.join(missing)}"
            raise SchemaMismatch("{}: {}. What the tables do not hold is written as NULL AS name.", place, problem)
        assert answer.pgresult is not None
        service.origin[relation] = answer.pgresult.ftable(names.index("id"))
        oids = {"oids": [column.type_code for column in yielded]}
        kinds = {row.oid: row for row in connection.execute(_TYPES_BY_OID, oids)}
        types = {column.name: kinds[column.type_code] for column in yielded}
        found[relation] = {name: types[name].name for name in columns}
        read[relation] = {
            name: _converted(place, name, kind, types[name], statement, own=service.is_own)
            for name, kind in columns.items()
        }
        service.stored[relation] = {
            name: _STORED[columns[name], types[name].name]
            for name in IDS.get(relation, ())
            if (columns[name], types[name].name) in _STORED
        }
        if "cpf" in columns:  # with a mask, or a number that lost its zeros: read as the contract writes it
            digits = f"translate({read[relation]['cpf']}, '.-/ ', '')"
            padded = f"lpad({digits}, greatest(length({digits}), 11), '0')"
            read[relation]["cpf"] = padded if types["cpf"].category == "N" else digits
        if not service.is_own and connection.scalar(_TAKES_TEXTS_FOR_EQUAL):
            for name in (each for each, kind in columns.items() if kind == "text"):
                read[relation][name] += ' COLLATE "C"'
                if name in IDS.get(relation, ()) and types[name].category == "S":
                    service.stored[relation][name] = "{}"  # by the collation of its index, too
    if not service.is_own:
        service.read.update(read)
    return found


def _tried(connection: Connection, service: Service, place: str, statement: str) -> psycopg.Cursor[Any]:
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    try:
        query = sql.SQL("SELECT * FROM ({}) AS given LIMIT 0").format(sql.SQL(statement))
        return driver.execute(query, prepare=False)  # a prepared one fails once its columns are others
    except psycopg.Error as error:
        if error.sqlstate == "42501" or (error.sqlstate or "")[:2] not in ("42", "22", "0A", "3F"):
            raise
        hint = Message(
            "{}The service's tables are never altered here. Where it keeps its data in other tables, write the "
            "SQL that reads them (toolkit db map) and name its file in TOOLKIT_SERVICE_SQL. Where there are none "
            "yet: toolkit db upgrade --service-tables"
            if service.is_own
            else "{}Correct the file; nothing was read.",
            f"{error.diag.message_hint} " if error.diag.message_hint else "",
        )
        raise SchemaMismatch("{}: {}. {}", place, error.diag.message_primary, hint) from None


_TAKES_TEXTS_FOR_EQUAL: Final = sa.text("SELECT EXISTS (SELECT FROM pg_collation WHERE NOT collisdeterministic)")
"""Tells whether a collation may take texts for equal that differ, such as ``V-1`` and ``v-1``: no key is that."""

_TYPES_BY_OID: Final = sa.text("""
    SELECT CAST(oid AS bigint) AS oid, typcategory AS category,
           CASE WHEN typname = 'timestamptz' THEN typname ELSE format_type(oid, NULL) END AS name
    FROM pg_type WHERE CAST(oid AS bigint) = ANY(:oids)
""")


def _converted(place: str, name: str, kind: str, given: sa.Row[Any], statement: str, *, own: bool) -> str:
    """Return the expression that gives the contract's type; raises where there is no safe one.

    The contract's ``own`` tables are read as they are, so that their types have to fit.
    """
    is_text, is_whole = given.category in ("S", "E"), given.name in WHOLE_TYPES
    if given.name == kind or (own and kind == "text" and given.category == "S"):
        return f"NOT NOT {name}" if kind == "boolean" else name  # binds no other type that a column gets later
    if not own and is_text and is_null(statement, name):
        return f"CAST(NULL AS {kind})"
    if not own and kind == "text" and (is_text or is_whole or given.name in ("uuid", "numeric")):
        return f"CAST({name} AS text)"
    if not own and kind == "uuid" and is_whole:
        return f"CASE WHEN {name} >= 0 THEN CAST(lpad(CAST({name} AS text), 32, '0') AS uuid) END"
    if not own and kind == "uuid" and is_text:
        is_uuid = f"CAST({name} AS text) ~* '^[0-9a-f]{{8}}-?([0-9a-f]{{4}}-?){{3}}[0-9a-f]{{12}}$'"
        return f"CASE WHEN {is_uuid} THEN CAST(CAST({name} AS text) AS uuid) END"
    advice = _ADVICE.get(f"{kind} of {given.category}", _ADVICE[kind]).format(name)
    raise SchemaMismatch(
        "{}: {} is of type {}, and {} is expected. Write, for instance: {} AS {}.",
        *(place, name, given.name, kind, advice, name),
    )


_ADVICE: Final = {
    "text": "CAST({} AS text)",
    "uuid": "CAST({} AS bigint)",
    "boolean": "CASE {} WHEN 'S' THEN true WHEN 'N' THEN false END",
    "boolean of N": "CASE {} WHEN 1 THEN true WHEN 0 THEN false END",
    "date": "CAST({} AS date)",
    "date of S": "to_date({}, 'DD/MM/YYYY')",
    "timestamptz": "CAST({} AS timestamp) AT TIME ZONE 'America/Sao_Paulo'",
    "timestamptz of N": "to_timestamp({})",
    "timestamptz of S": "CAST(to_timestamp({}, 'DD/MM/YYYY') AS timestamp) AT TIME ZONE 'America/Sao_Paulo'",
}
"""By the types of the contract, some of texts (S) or numbers (N): how a column of another type is often read."""

WHOLE_TYPES: Final = ("smallint", "integer", "bigint")
_WHOLE: Final = """
    CASE WHEN NOT {} ~ '^-?[0-9]{1,32}$' THEN NULL
         WHEN CAST({} AS numeric) BETWEEN -9223372036854775808 AND 9223372036854775807 THEN CAST({} AS bigint) END
"""
_STORED: Final = {
    ("text", "uuid"): "CASE WHEN {} ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN CAST({} AS uuid) END",
    **{("text", kind): _WHOLE for kind in WHOLE_TYPES},
    **{("uuid", kind): _WHOLE.replace("{}", "replace(CAST({} AS text), '-', '')") for kind in WHOLE_TYPES},
}
"""By the types of the contract and of a table: what an id, in place of ``{}``, is in the table."""


def resolve(connection: Connection) -> Resolved:
    """Return what the statements that read mean in the connection's database now; raises as ``describe`` does."""
    service = service_of(connection)
    columns, tables = describe(connection, service), {}
    for row in _behind(connection):
        of_ids = row.oid in (service.origin["sales"], service.origin["records"])
        if of_ids and (cut := cut_off(row.view or "")) is not None:
            raise SchemaMismatch("{}: {} would leave rows out that nobody judges.", row.place, cut)
        tables[row.place] = {name: getattr(row, name) for name in ("oid", "kind", "columns", "definition")}
    return {"sha256": service.sha256, "columns": columns, "tables": tables}


def hidden_and_copied(connection: Connection) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the tables whose policies may hide rows, and what is no table of this database, by their names."""
    rows = _behind(connection)
    return tuple(row.place for row in rows if row.hidden), tuple(
        row.place for row in rows if row.kind in ("m", "f")
    )


def made_of(connection: Connection, relation: str, column: str) -> Iterator[tuple[str, str, str]]:
    """Yield a column, and those of views and generated ones that it is made of: place, name and the SELECT."""
    statement = service_of(connection).statements[relation]
    yield relation, column, statement
    for row in _behind(connection):
        for name in sorted(columns_of(statement, column).intersection(row.columns)):
            rule = row.columns[name].partition(" = ")[2]
            yield row.place, name, f'SELECT {rule} AS "{name}"' if rule else row.view or ""


def parts_alone(connection: Connection) -> Sequence[sa.Row[Any]]:
    """Return each partition that a statement reads without all others of its table, and that table."""
    return connection.execute(sa.text(_PARTS_ALONE), {"names": _read(service_of(connection))}).all()


def views_that_filter(connection: Connection) -> list[str]:
    """Return the views, by their names, that may leave rows of their tables out."""
    return [row.place for row in _behind(connection) if nodes(row.view or "", "where", "join")]


def referring(connection: Connection) -> Sequence[str]:
    """Return the tables whose rows refer to sales or records, such as reviews, and that are not read with them."""
    statements = (service_of(connection).statements[relation] for relation in ("sales", "records"))
    names = sorted({name for each in statements for name in tables_in(each)})
    return connection.scalars(sa.text(_REFERRING), {"names": names}).all()


def _behind(connection: Connection) -> Sequence[sa.Row[Any]]:
    """Return the tables and functions behind the statements that read."""
    service = service_of(connection)
    called = {name for relation in COLUMNS for name in functions_in(service.statements[relation])}
    return connection.execute(sa.text(_BEHIND), {"names": _read(service), "called": sorted(called)}).all()


def _read(service: Service) -> list[str]:
    return sorted({name for relation in COLUMNS for name in tables_in(service.statements[relation])})


def rights(connection: Connection, *, write: bool, erase: bool) -> list[str]:
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

_TABLES_READ: Final = """
    WITH read AS (
        SELECT CAST(to_regclass(name) AS oid) AS place
        FROM unnest(CAST(:names AS text[])) AS given (name) WHERE to_regclass(name) IS NOT NULL
    )
"""

_PARTS_ALONE: Final = f"""{_TABLES_READ}
    SELECT DISTINCT CAST(CAST(part.inhrelid AS regclass) AS text) AS part,
           CAST(CAST(inhparent AS regclass) AS text) AS whole
    FROM pg_inherits AS part JOIN pg_inherits AS other USING (inhparent)
    WHERE part.inhrelid IN (TABLE read) AND other.inhrelid NOT IN (TABLE read) AND inhparent NOT IN (TABLE read)
    ORDER BY 1
"""

_REFERRING: Final = f"""{_TABLES_READ}
    SELECT DISTINCT CAST(CAST(conrelid AS regclass) AS text) FROM pg_constraint
    WHERE contype = 'f' AND conparentid = 0 AND confrelid IN (TABLE read) AND conrelid NOT IN (TABLE read)
    ORDER BY 1
"""

_BEHIND: Final = """
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
    (SELECT format('%I.%I', nspname, relname) AS place,
           coalesce((
               SELECT hashtextextended(concat_ws(' ', ftrelid, srvname, srvoptions, ftoptions, (
                   SELECT string_agg(concat(attnum, attfdwoptions), ' ' ORDER BY attnum)
                   FROM pg_attribute WHERE attrelid = ftrelid)), 0)
               FROM pg_foreign_table JOIN pg_foreign_server AS server ON server.oid = ftserver
               WHERE ftrelid = class.oid), CAST(class.oid AS bigint)) AS oid,
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
                    FROM pg_policy WHERE polrelid = class.oid) END AS definition,
           relrowsecurity AND may_hide AS hidden,
           CASE WHEN relkind IN ('v', 'm') THEN pg_get_viewdef(class.oid) END AS view
    FROM (
        SELECT reached.place, bool_and(is_part) AS is_part,
               bool_or(NOT is_part AND NOT rolsuper AND NOT rolbypassrls
                       AND (relforcerowsecurity OR NOT pg_has_role(role.oid, relowner, 'USAGE'))) AS may_hide
        FROM reached
        JOIN pg_class AS here ON here.oid = reached.place
        JOIN pg_roles AS role ON role.rolname = reached.reader
        GROUP BY reached.place
    ) AS found
    JOIN pg_class AS class ON class.oid = found.place
    JOIN pg_namespace AS space ON space.oid = relnamespace
    WHERE relkind IN ('r', 'p', 'v', 'm', 'f')
    ORDER BY 1)
    UNION ALL
    SELECT CAST(CAST(oid AS regprocedure) AS text), CAST(0 AS bigint), 'function',
           CAST('{}' AS jsonb), md5(concat(prosrc, pg_get_function_sqlbody(oid))), false, NULL
    FROM pg_proc
    WHERE oid IN (
        SELECT found.oid
        FROM unnest(CAST(:called AS text[])) AS given (name)
        CROSS JOIN LATERAL parse_ident(given.name) AS parts
        JOIN pg_proc AS found ON proname = parts[cardinality(parts)]
        JOIN pg_namespace AS space ON space.oid = pronamespace
             AND nspname NOT IN ('pg_catalog', 'information_schema')
        WHERE parts[cardinality(parts) - 1] = nspname
           OR (cardinality(parts) = 1 AND pg_function_is_visible(found.oid))
        UNION ALL
        SELECT refobjid
        FROM reached
        JOIN pg_rewrite ON ev_class = reached.place AND kind IN ('v', 'm')
        JOIN pg_depend AS used ON used.classid = CAST('pg_rewrite' AS regclass) AND used.objid = pg_rewrite.oid
             AND used.refclassid = CAST('pg_proc' AS regclass)
    )
    ORDER BY 1
"""
"""The tables that are named, those behind views and their parts, and the functions that statements and views call.

What a view names is read with its owner's rights, or with those of its own reader (``security_invoker``).
``hidden`` tells where policies may hide rows from the role whose rights hold.
"""
