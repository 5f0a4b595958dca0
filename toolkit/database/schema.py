"""Create, upgrade and check the schema of a database; write the rights that its roles need."""

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql

from toolkit.database import privacy_tables, tables
from toolkit.database.connection import Database, Lock, raw, take
from toolkit.database.service_tables import describe, rights
from toolkit.errors import SchemaMismatch

_MIGRATIONS: Final = Path(__file__).parent / "migrations"
_VERSION_TABLE: Final = "alembic_version"
_OLDEST: Final = "0035"  # the oldest version of schema ``audit`` that can be upgraded

_NEVER_DELETED: Final = (*tables.CLOSED_ONCE, *tables.CHANGED_BY_RULE)
_GUARDS: Final = (
    ("append_only", "UPDATE OR DELETE", "refuse_change", tables.APPEND_ONLY),
    ("closed_once", "UPDATE", "close_once", tables.CLOSED_ONCE),
    ("never_deleted", "DELETE", "refuse_change", _NEVER_DELETED),
    ("never_emptied", "TRUNCATE", "refuse_change", (*tables.APPEND_ONLY, *_NEVER_DELETED)),
)
"""The triggers that refuse changes: name, what they refuse, function, tables."""

_EVENT: Final = re.compile(r"^-- (\w+): (INSERT|UPDATE) ON (\w+)\n(.+?)\n\n", re.MULTILINE | re.DOTALL)
_TELL: Final = """
    CREATE OR REPLACE FUNCTION audit.{name}() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
    BEGIN
        IF TG_OP = 'INSERT' OR NOT audit.is_erasing() THEN
            INSERT INTO audit.custody_events (kind, happened_at, detail) {query};
        END IF;
        RETURN NULL;
    END $$;
    CREATE OR REPLACE TRIGGER {name} AFTER {change} ON audit.{table}
        REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.{name}();
"""
"""The statements that make a trigger of ``custody_events.sql``."""

_UPGRADE_HINT: Final = "Run: toolkit db upgrade"


def upgrade(database: Database, *, service_tables: bool = False) -> None:
    """Bring schema ``audit`` to this version; with ``service_tables``, create the service's where there are none.

    The statements that read the service's tables are tried. All or nothing: a failure leaves the schema as it was.

    Raises:
        SchemaMismatch: the database is newer than this toolkit, or the service's tables differ from ours.
    """
    with database.transaction() as connection:
        take(connection, Lock.SCHEMA)
        _refuse_unknown(connection)
        inspector = sa.inspect(connection)
        if database.service.is_own and service_tables:
            known = tables.service.sorted_tables
            if not any(inspector.has_table(table.name, schema=tables.OWN_TABLES) for table in known):
                tables.service.create_all(connection)
        describe(connection, database.service)
        # Asked for first: without the right to create schemas, one that is there is enough.
        if not inspector.has_schema(tables.AUDIT):
            connection.execute(sa.schema.CreateSchema(tables.AUDIT))
        if revision(connection) is None:
            tables.toolkit.create_all(connection, checkfirst=False)
            _guard(connection)
            connection.exec_driver_sql(
                "INSERT INTO audit.observation_clock VALUES (TRUE, '1970-01-01 00:00:00.000001+00')"
            )
            connection.exec_driver_sql("INSERT INTO audit.custody_epochs VALUES (1, audit.cluster(), now())")
            _alembic(connection, "stamp")
        else:
            _alembic(connection, "upgrade")
            tables.toolkit.create_all(connection)  # those that are new
            _guard(connection)


def check(database: Database) -> None:
    """Make sure that this version of the toolkit can work with the database as it is.

    Raises:
        SchemaMismatch: older, newer, or not the tables that we expect; the text says what to do.
    """
    with database.transaction() as connection:
        current, head = revision(connection), newest_revision()
        _refuse_unknown(connection)
        if current is None:
            raise SchemaMismatch(
                "The database at {} has no toolkit schema yet. {}", database.address, _UPGRADE_HINT
            )
        if current != head:
            raise SchemaMismatch(
                "The database at {} has schema version {}, older than {}, which this toolkit needs. {}",
                *(database.address, current, head, _UPGRADE_HINT),
            )
        describe(connection, database.service)


def revision(connection: Connection) -> str | None:
    """Return the version of schema ``audit`` in this database, ``None`` where there is none."""
    if not sa.inspect(connection).has_table(_VERSION_TABLE, schema=tables.AUDIT):
        return None
    version = sa.table(_VERSION_TABLE, sa.column("version_num"), schema=tables.AUDIT)
    return connection.scalar(sa.select(version.c.version_num))


def newest_revision() -> str:
    """Return the version of schema ``audit`` that this toolkit was written for."""
    return max(_revisions())


def _revisions() -> set[str]:
    """Return the versions that migrations lead to: their files' names start with them."""
    return {path.name.partition("_")[0] for path in (_MIGRATIONS / "versions").glob("[0-9]*_*.py")}


def _guard(connection: Connection) -> None:
    """Create or renew every trigger: those that tell the custody log, and those that refuse to rewrite it."""
    raw(connection).execute(_MIGRATIONS.with_name("triggers.sql").read_bytes())
    events = _MIGRATIONS.with_name("custody_events.sql").read_text("utf-8")
    for name, change, table, query in _EVENT.findall(f"{events}\n"):
        raw(connection).execute(_TELL.format(name=name, change=change, table=table, query=query).encode())
    for trigger, when, function, guarded in _GUARDS:
        for table in guarded:
            connection.exec_driver_sql(
                f"CREATE OR REPLACE TRIGGER {trigger} BEFORE {when} ON {table.fullname} "
                f"FOR EACH {'STATEMENT' if when == 'TRUNCATE' else 'ROW'} EXECUTE FUNCTION audit.{function}()"
            )


def _alembic(connection: Connection, what: str) -> None:
    from alembic import command  # nearly always the schema is as it should be, and nobody waits for Alembic
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    if what == "upgrade" and revision(connection) not in _revisions():
        command.stamp(config, "base", purge=True)  # the oldest, or one that was never released
    getattr(command, what)(config, "head")


def _refuse_unknown(connection: Connection) -> None:
    current, newest = revision(connection), newest_revision()
    if current is not None and current < _OLDEST:
        raise SchemaMismatch(
            "The database has schema version {}; this toolkit upgrades {} and newer. First run toolkit db "
            "upgrade of the last version before 0.2.0; nothing was changed.",
            *(current, _OLDEST),
        )
    if current is not None and current > newest:
        raise SchemaMismatch(
            "The database has schema version {}, which is newer than this toolkit ({}). Install a newer "
            "toolkit; nothing was changed.",
            *(current, newest),
        )


_preparer = postgresql.dialect().identifier_preparer  # type: ignore[no-untyped-call]


class As(StrEnum):
    """The purpose of a role.

    The owner upgrades the toolkit's schema and erases personal data, by hand. The operator audits, syncs,
    registers, requests and completes; it does not own schema ``audit``, whose owner could switch off the triggers
    that keep history. The reader writes nothing.
    """

    OWNER = "owner"
    OPERATOR = "operator"
    READER = "reader"


def grants(connection: Connection, role: str, purpose: As) -> list[str]:
    """Return the statements that give ``role`` all that it needs for ``purpose``, and nothing else.

    Run them again after each upgrade: it may have made new tables.
    """
    grantee, database = quoted(role), quoted(connection.engine.url.database or "")
    given = [f"CONNECT{', TEMPORARY' if purpose is As.OPERATOR else ''} ON DATABASE {database}"]
    if purpose is As.OWNER:
        given = [f"CREATE, CONNECT, TEMPORARY ON DATABASE {database}"]
    else:
        given += [f"USAGE ON SCHEMA {tables.AUDIT}", f"SELECT ON ALL TABLES IN SCHEMA {tables.AUDIT}"]
    given += rights(connection, write=purpose is As.OPERATOR, erase=purpose is As.OWNER)
    if purpose is As.OPERATOR:
        given += _history()
    return [f"GRANT {right} TO {grantee};" for right in given]


def _history() -> Iterator[str]:
    """Yield the rights to write the toolkit's own tables: the least that keeps them append-only."""
    for table in tables.toolkit.sorted_tables:
        if table is privacy_tables.erasures:
            continue  # who writes it may change histories: the owner alone erases
        if table in tables.APPEND_ONLY:
            yield f"INSERT ON {table.fullname}"
        elif table in tables.CLOSED_ONCE:
            ends = ", ".join(name for name in ("gone_at", "gone_how") if name in table.columns)
            yield f"INSERT, UPDATE ({ends}) ON {table.fullname}"
        else:
            yield f"INSERT, UPDATE, DELETE ON {table.fullname}"


def quoted(name: str) -> str:
    """Return the name as SQL writes it, quoted where need be; SQLAlchemy doubles its per cents for drivers."""
    return str(_preparer.quote(name)).replace("%%", "%")
