"""Create, upgrade and check the schema of a database."""

from pathlib import Path
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql

from toolkit.errors import SchemaMismatch
from toolkit.storage import tables
from toolkit.storage.database import Database
from toolkit.storage.locks import Lock, take
from toolkit.storage.partitions import partition_by_month
from toolkit.storage.service_map import ServiceMap
from toolkit.storage.service_map.row_versions import make_touched
from toolkit.storage.service_map.views import check_views, made_from, make_views
from toolkit.storage.service_map.views import release as release_views

_POSTGRESQL: Final = postgresql.dialect()  # type: ignore[no-untyped-call]

_MIGRATIONS: Final = Path(__file__).parent / "migrations"
_VERSION_TABLE: Final = "alembic_version"

_UPGRADE_HINT: Final = "Run: toolkit db upgrade"


def upgrade(
    database: Database,
    *,
    service_tables: bool = False,
    service_map: ServiceMap | None = None,
    by_month: bool = False,
) -> None:
    """Bring schema ``audit`` to this version; with ``service_tables``, create the service's where there are none.

    With ``service_map``, the views of schema ``audit_service`` are made from it; with ``by_month``, observations
    are partitioned (``toolkit.storage.partitions``). All or nothing: a failure leaves the schema as it was.

    Raises:
        SchemaMismatch: the database is newer than this toolkit, or the service's tables differ from ours.
        SettingsError: the mapping does not fit the database.
    """
    with database.transaction() as connection:
        take(connection, Lock.SCHEMA)
        _refuse_newer(connection)
        made = False
        if service_map is not None:
            made = make_views(connection, service_map)
        else:
            if service_tables and not _present(connection, tables.service):
                tables.service.create_all(connection)
            _check_service_tables(connection)
        # Asked for first: without the right to create schemas, one that is there is enough.
        if not sa.inspect(connection).has_schema(tables.AUDIT):
            connection.execute(sa.schema.CreateSchema(tables.AUDIT))
        _migrate(connection)
        if service_map is not None and made:  # after the tables that the views read
            make_touched(connection, service_map)
        if by_month:
            partition_by_month(connection)


def release(database: Database) -> None:
    """Let the views of the mapping read nothing until the next ``upgrade``, so that the service may change.

    Raises:
        SchemaMismatch: there are no views.
    """
    with database.transaction() as connection:
        take(connection, Lock.SCHEMA)
        release_views(connection)


def check(database: Database, service_map: ServiceMap | None = None) -> None:
    """Make sure that this version of the toolkit can work with the database as it is.

    Raises:
        SchemaMismatch: older, newer, or not the tables that we expect; the text says what to do.
    """
    with database.transaction() as connection:
        current, head = revision(connection), newest_revision()
        _refuse_newer(connection)
        if current is None:
            raise SchemaMismatch(f"The database at {database.address} has no toolkit schema yet. {_UPGRADE_HINT}")
        if current != head:
            raise SchemaMismatch(
                f"The database at {database.address} has schema version {current}, older than {head}, which this "
                f"toolkit needs. {_UPGRADE_HINT}"
            )
        if service_map is not None:
            check_views(connection, service_map)
        else:
            _check_service_tables(connection)


def is_current(database: Database, service_map: ServiceMap | None = None) -> bool:
    """Tell whether ``upgrade`` has nothing to do."""
    with database.transaction() as connection:
        mapped = service_map is None or made_from(connection) == service_map.fingerprint
        return mapped and revision(connection) == newest_revision()


def revision(connection: Connection) -> str | None:
    """Return the version of schema ``audit`` in this database, ``None`` where there is none."""
    if not sa.inspect(connection).has_table(_VERSION_TABLE, schema=tables.AUDIT):
        return None
    version = sa.table(_VERSION_TABLE, sa.column("version_num"), schema=tables.AUDIT)
    return connection.scalar(sa.select(version.c.version_num))


def newest_revision() -> str:
    """Return the version of schema ``audit`` that this toolkit was written for."""
    return max(_known_revisions())


def _known_revisions() -> set[str]:
    """Return all versions that there ever were: the name of a migration's file starts with it."""
    return {path.name.partition("_")[0] for path in (_MIGRATIONS / "versions").glob("[0-9]*_*.py")}


def _migrate(connection: Connection) -> None:
    # Whoever finds the schema as it should be, which is nearly always, need not wait for Alembic to load.
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    command.upgrade(config, "head")


def _refuse_newer(connection: Connection) -> None:
    current = revision(connection)
    if current is not None and current not in _known_revisions():
        raise SchemaMismatch(
            f"The database has schema version {current}, which is newer than this toolkit "
            f"({newest_revision()}). Install a newer toolkit; nothing was changed."
        )


def _present(connection: Connection, metadata: sa.MetaData) -> bool:
    inspector = sa.inspect(connection)
    return any(inspector.has_table(table.name, schema=tables.OWN_TABLES) for table in metadata.sorted_tables)


def _check_service_tables(connection: Connection) -> None:
    inspector = sa.inspect(connection)
    differences = []
    for table in tables.service.sorted_tables:
        if not inspector.has_table(table.name, schema=tables.OWN_TABLES):
            differences.append(f"table {table.name} is missing")
            continue
        columns = inspector.get_columns(table.name, schema=tables.OWN_TABLES)
        found = {column["name"]: column["type"] for column in columns}
        for column in table.columns:
            if column.name not in found:
                differences.append(f"column {table.name}.{column.name} is missing")
            elif not _alike(column.type, found[column.name]):
                is_now, expected = (kind.compile(_POSTGRESQL) for kind in (found[column.name], column.type))
                differences.append(f"column {table.name}.{column.name} is {is_now}, expected {expected}")
    if differences:
        raise SchemaMismatch(
            f"The service's tables differ from what this toolkit works with: {'; '.join(differences)}. They are "
            "never altered here. Where the service keeps its data in other tables, describe them: toolkit db map. "
            "Where there are none yet: toolkit db upgrade --service-tables"
            + (
                f". Schema {tables.SERVICE} was made from a mapping: set TOOLKIT_SERVICE_MAP to its file"
                if made_from(connection)
                else ""
            )
        )


def _alike(expected: sa.types.TypeEngine[object], found: sa.types.TypeEngine[object]) -> bool:
    def family(kind: sa.types.TypeEngine[object]) -> str:
        if isinstance(kind, sa.Enum):  # SQLAlchemy counts it among the texts; PostgreSQL compares it with none
            return "enum"
        if isinstance(kind, sa.String):
            return "text"
        if isinstance(kind, sa.DateTime):
            return "timestamptz" if kind.timezone else "timestamp"
        return kind._type_affinity.__name__ if kind._type_affinity else type(kind).__name__

    return family(expected) == family(found)
