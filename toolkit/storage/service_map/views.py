"""Make the views of schema ``audit_service`` from a mapping, and make them again when it changes.

They are replaced in place, so that rights granted on them stay. The service's own tables are never altered.
"""

from typing import Final

import psycopg
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from toolkit.errors import SchemaMismatch, SettingsError
from toolkit.storage.service_map.catalog import collations_of
from toolkit.storage.service_map.expressions import FUNCTIONS, THIS, literal, nothing_of, select
from toolkit.storage.service_map.model import NEEDED, ServiceMap
from toolkit.storage.service_map.row_versions import make_untouched
from toolkit.storage.service_map.triggers import execute, make_writable
from toolkit.storage.tables import OBSERVED_RELATIONS, SERVICE

_OURS: Final = "evidence toolkit: views made from mapping "
"""The comment on the schema, followed by the fingerprint."""

_HINT: Final = "Run: toolkit db upgrade"


def make_views(connection: Connection, mapping: ServiceMap) -> bool:
    """Make the schema present the service's data as the mapping describes them; return ``False`` if it does.

    Raises:
        SettingsError: the mapping names what the database does not have, or does not fit it; with the key.
        SchemaMismatch: somebody else has a schema of this name.
    """
    if made_from(connection) == mapping.fingerprint and not _lacking(connection):
        return False
    if _comment(connection) is None:
        connection.execute(sa.schema.CreateSchema(SERVICE))
    elif made_from(connection) is None:
        raise SchemaMismatch(
            f"The database has a schema {SERVICE} that is not the toolkit's; nothing was changed."
        )
    for (name, result), bodies in FUNCTIONS.items():
        for parameters, body in bodies.items():
            execute(
                connection,
                f"CREATE OR REPLACE FUNCTION {SERVICE}.{name}({parameters}) RETURNS {result} "
                f"LANGUAGE sql STABLE PARALLEL SAFE AS {literal(f'SELECT {body}')}",
            )
    for name in mapping.relations:
        try:
            with connection.begin_nested():
                execute(connection, f"CREATE OR REPLACE VIEW {SERVICE}.{name} AS {select(mapping, name)}")
        except DBAPIError as error:
            faults = _faults(connection, mapping, name) or [_words(error, mapping.named(name))]
            raise SettingsError("; ".join(faults)) from None
    make_writable(connection, mapping)
    execute(connection, f"COMMENT ON SCHEMA {SERVICE} IS {literal(_OURS + mapping.fingerprint)}")
    return True


def release(connection: Connection) -> None:
    """Let the views read nothing, so that the service may change its tables; each use of them is an error.

    The views and the rights on them stay, until ``make_views`` makes them read the service again.

    Raises:
        SchemaMismatch: there are no views of ours.
    """
    if made_from(connection) is None:
        raise SchemaMismatch(f"Schema {SERVICE} holds no views of the toolkit; nothing is to be released.")
    execute(
        connection,
        f"CREATE OR REPLACE FUNCTION {SERVICE}.released() RETURNS boolean LANGUAGE plpgsql AS "
        + literal(f"BEGIN RAISE EXCEPTION USING MESSAGE = {literal(_RELEASED_TEXT)}; END"),
    )
    for name in NEEDED:
        nothing = nothing_of(name, collations_of(connection, f"{SERVICE}.{name}"))
        execute(connection, f"CREATE OR REPLACE VIEW {SERVICE}.{name} AS {nothing} AND {SERVICE}.released()")
    for name in OBSERVED_RELATIONS:
        make_untouched(connection, name)
    execute(connection, f"COMMENT ON SCHEMA {SERVICE} IS {literal(_OURS + _RELEASED)}")


_RELEASED: Final = "released"
_RELEASED_TEXT: Final = f"the views of schema {SERVICE} were released; run: toolkit db upgrade"


def check_views(connection: Connection, mapping: ServiceMap) -> None:
    """Make sure that the views are those of the mapping; two questions to the catalog.

    Raises:
        SchemaMismatch: there are none, they were made from another file, or one was dropped.
    """
    made = made_from(connection)
    if made is None:
        raise SchemaMismatch(f"The views of the mapping (schema {SERVICE}) are not made yet. {_HINT}")
    if made == _RELEASED:
        raise SchemaMismatch(f"The views in schema {SERVICE} were released (toolkit db release). {_HINT}")
    if made != mapping.fingerprint:
        raise SchemaMismatch(
            f"The views in schema {SERVICE} were made from another mapping ({made}) than "
            f"TOOLKIT_SERVICE_MAP names ({mapping.fingerprint}), or by another version of the toolkit. {_HINT}"
        )
    if lacking := _lacking(connection):
        raise SchemaMismatch(f"The views {', '.join(lacking)} of schema {SERVICE} were dropped. {_HINT}")


def made_from(connection: Connection) -> str | None:
    """Return the fingerprint of the mapping that the views were made from; ``None`` where there are none."""
    comment = _comment(connection)
    return comment.removeprefix(_OURS) if comment and comment.startswith(_OURS) else None


def _comment(connection: Connection) -> str | None:
    """Return the comment on the schema, ``None`` where there is no such schema."""
    found: str | None = connection.scalar(
        sa.text(
            "SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace WHERE nspname = :name"
        ),
        {"name": SERVICE},
    )
    return found


def _lacking(connection: Connection) -> list[str]:
    found = connection.scalars(
        sa.text("SELECT viewname FROM pg_views WHERE schemaname = :name"), {"name": SERVICE}
    ).all()
    return [name for name in NEEDED if name not in found]


def _faults(connection: Connection, mapping: ServiceMap, name: str) -> list[str]:
    """Return the parts of a relation that PostgreSQL does not understand, each with its key in the file."""
    relation = mapping.relations[name]
    tried = [("from", f"SELECT FROM {relation.from_} AS {THIS}")]
    if relation.where:
        tried.append(("where", f"SELECT FROM {relation.from_} AS {THIS} WHERE {relation.where}"))
    tried += [
        (f"columns.{column}", select(_without_filter(mapping, name), name, [column]))
        for column in NEEDED[name].columns.keys()  # noqa: SIM118  # its values are columns
    ]
    found = []
    for key, query in tried:
        try:
            with connection.begin_nested():
                execute(connection, f"SELECT FROM ({query}) AS tried LIMIT 0")
        except DBAPIError as error:
            found.append(_words(error, mapping.named(f"{name}.{key}")))
            if key == "from":
                break
    return found


def _without_filter(mapping: ServiceMap, name: str) -> ServiceMap:
    relation = mapping.relations[name].model_copy(update={"where": None})
    return mapping.model_copy(update={name: relation})


def _words(error: DBAPIError, place: str) -> str:
    assert isinstance(error.orig, psycopg.Error)
    said = (error.orig.diag.message_primary, error.orig.diag.message_hint)
    return f"the mapping's {place}: {'. '.join(filter(None, said))}"
