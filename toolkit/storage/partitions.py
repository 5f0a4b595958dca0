"""Partition the observations of sales and of evidence records by the month (UTC) in which they ended.

Rows that still hold lie in the partition ``..._open``, the default one; a row moves into the partition of its
month when ``gone_at`` is set. So the work of now goes through open rows alone, and whole months can be moved to a
snapshot. Ids are counted by the table and unique within each partition; open rows are unique, because they share
one.

The other tables stay whole. Few objects ever end, and the observations of those that did are needed for ever: they
tell vanished, overwritten and restored files. Checks of contents belong to objects, the stretches of a finding
tell since when it is known, and the custody log is a chain that is read from its beginning.
"""
# ruff: noqa: S608  # names of our own tables

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.storage import tables
from toolkit.storage.database import raw

PARTITIONED: Final = (tables.sale_observations, tables.evidence_observations)

AHEAD: Final = 24
"""The months after the current one that get a partition."""

PATIENCE: Final = "30s"
"""The time to wait for readers and writers of a table whose partitions change."""


def partition_by_month(connection: Connection) -> None:
    """Partition the tables that are not yet, and add the partitions of months until ``AHEAD`` months from now.

    Rows keep their ids, and open ones stay where they are stored. The session has to own the tables.
    """
    hold_alone(connection)
    for table in PARTITIONED:
        if not is_partitioned(connection, table):
            _put_below_another(connection, table)
        _add_months(connection, table)
        raw(connection).execute(f"ANALYZE {table.fullname}".encode())


def hold_alone(connection: Connection) -> None:
    """Wait until nobody else reads or writes the tables, and hold them until the transaction ends."""
    names = ", ".join(table.fullname for table in PARTITIONED)
    connection.execute(sa.text(f"SET LOCAL lock_timeout = '{PATIENCE}'"))
    connection.execute(sa.text(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE"))


def is_partitioned(connection: Connection, table: sa.Table = PARTITIONED[0]) -> bool:
    """Tell whether the table is partitioned."""
    query = sa.text("SELECT relkind = 'p' FROM pg_class WHERE oid = to_regclass(:name)")
    return bool(connection.scalar(query, {"name": table.fullname}))


def months_of(connection: Connection, table: sa.Table) -> list[datetime]:
    """Return the beginnings of the months that have a partition, in order."""
    return [row.month for row in _asked(connection, _MONTHS, table)]


def months_left(connection: Connection) -> int | None:
    """Return the number of months to come that have a partition, ``None`` where nothing is partitioned."""
    if not is_partitioned(connection):
        return None
    now: datetime = connection.execute(sa.select(sa.func.now())).scalar_one()
    return min(sum(month > now for month in months_of(connection, table)) for table in PARTITIONED)


@dataclass(frozen=True, slots=True)
class Moved:
    """The last month that was moved: the snapshot ``target``, complete since the export of ``exported_at``."""

    over_at: datetime
    target: str
    exported_at: datetime
    manifests: str


def moved(connection: Connection) -> Moved | None:
    """Return the last month that was moved to a snapshot, ``None`` where none was."""
    known = tables.moved_partitions.c
    query = sa.select(known.over_at, known.target, known.exported_at, known.manifests)
    row = connection.execute(query.order_by(known.over_at.desc(), known.id.desc()).limit(1)).one_or_none()
    return None if row is None else Moved(*row)


def records_assumed_at(connection: Connection) -> datetime | None:
    """Return until when evidence records were not observed, also where those that tell it were moved."""
    here, elsewhere = tables.evidence_observations.c.assumed_at, tables.moved_partitions.c.records_assumed_at
    latest = [sa.select(sa.func.max(column)).scalar_subquery() for column in (here, elsewhere)]
    found: datetime | None = connection.scalar(sa.select(sa.func.greatest(*latest)))
    return found


def partition_of(table: sa.Table, month: datetime | None) -> str:
    """Return the name of the partition of a month; without one, of the open rows."""
    return f"{table.fullname}_{'open' if month is None else f'{month.astimezone(UTC):%Y_%m}'}"


def _put_below_another(connection: Connection, table: sa.Table) -> None:
    """Make the table the default partition of a new one, which takes its name, rights, indexes and triggers."""
    name, default = table.fullname, partition_of(table, None)
    indexes = _asked(connection, _INDEXES, table)
    triggers = _asked(connection, _TRIGGERS, table)
    rights = _asked(connection, _RIGHTS, table)
    ((owner,),), ((following,),) = _asked(connection, _OWNER, table), _asked(connection, _NEXT_ID, table)
    _run(
        connection,
        *(f"DROP TRIGGER {trigger.name} ON {name}" for trigger in triggers),
        *(f"ALTER INDEX {table.schema}.{index.name} RENAME TO open_{index.name}" for index in indexes),
        f"ALTER TABLE {name} ALTER id DROP IDENTITY",
        f"ALTER TABLE {name} RENAME TO {default.removeprefix(f'{table.schema}.')}",
        f"CREATE TABLE {name} (LIKE {default} INCLUDING DEFAULTS) PARTITION BY RANGE (gone_at)",
        f"ALTER TABLE {name} ALTER id ADD GENERATED ALWAYS AS IDENTITY (START WITH {following})",
        f"ALTER TABLE {name} OWNER TO {owner}",
        *(index.definition for index in indexes),
        f"ALTER TABLE {name} ATTACH PARTITION {default} DEFAULT",
        *(trigger.definition for trigger in triggers),
        *(statement for right in rights for statement in (right.given, right.taken)),
    )
    _guard(connection, table, default)


def _add_months(connection: Connection, table: sa.Table) -> None:
    """Add the partitions that are missing, and move the rows of their months into them."""
    default, columns = partition_of(table, None), ", ".join(column.name for column in table.columns)
    there = set(months_of(connection, table))
    wanted = connection.execute(sa.text(_WANTED.format(default=default)), {"ahead": AHEAD})
    missing = [row for row in wanted if row.month not in there]
    before = f"gone_at IS NULL OR gone_at < '{missing[0].month}'" if missing else ""
    if not missing:
        return
    ((owner,),) = _asked(connection, _OWNER, table)
    _run(connection, f"ALTER TABLE {default} DISABLE TRIGGER never_deleted")
    for row in missing:
        partition, within = partition_of(table, row.month), f"gone_at >= '{row.month}' AND gone_at < '{row.over}'"
        _run(
            connection,
            f"CREATE TABLE {partition} (LIKE {table.fullname} INCLUDING DEFAULTS)",
            f"ALTER TABLE {partition} OWNER TO {owner}",
            f"INSERT INTO {partition} ({columns}) SELECT {columns} FROM {default} WHERE {within}",
            f"DELETE FROM {default} WHERE {within}",
            f"ALTER TABLE {partition} ADD PRIMARY KEY (id)",
        )
    _run(
        connection,
        f"ALTER TABLE {default} ENABLE TRIGGER never_deleted",
        # Read once for this, the open rows are not read again for each of the months.
        f"ALTER TABLE {default} ADD CONSTRAINT of_no_month CHECK ({before})",
    )
    for row in missing:
        partition, bounds = partition_of(table, row.month), f"FROM ('{row.month}') TO ('{row.over}')"
        _run(connection, f"ALTER TABLE {table.fullname} ATTACH PARTITION {partition} FOR VALUES {bounds}")
        _guard(connection, table, partition)
    _run(connection, f"ALTER TABLE {default} DROP CONSTRAINT of_no_month")


def _guard(connection: Connection, table: sa.Table, partition: str) -> None:
    """Let the triggers of statements hold, too, for those that name the partition itself."""
    triggers = (each for each in _asked(connection, _TRIGGERS, table) if each.of_statement)
    _run(
        connection, *(each.definition.replace(f" ON {table.fullname} ", f" ON {partition} ") for each in triggers)
    )


def _asked(connection: Connection, query: str, table: sa.Table) -> list[sa.Row[Any]]:
    return list(connection.execute(sa.text(query), {"name": table.fullname}))


def _run(connection: Connection, *statements: str) -> None:
    for statement in statements:
        raw(connection).execute(statement.encode())


_MONTHS: Final = """
    SELECT to_timestamp(month || ' +00', 'YYYY_MM TZH') AS month
    FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid, right(relname, 7) AS month
    WHERE inhparent = to_regclass(:name) AND month ~ '^[0-9]{4}_[0-9]{2}$'
    ORDER BY month
"""

_WANTED: Final = """
    SELECT first AT TIME ZONE 'UTC' AS month, (first + interval '1 month') AT TIME ZONE 'UTC' AS over
    FROM generate_series(
        (SELECT date_trunc('month', least(min(gone_at), now()) AT TIME ZONE 'UTC') FROM {default}
         WHERE gone_at >= coalesce((SELECT max(over_at) FROM audit.moved_partitions), '-infinity')),
        date_trunc('month', now() AT TIME ZONE 'UTC') + make_interval(months => :ahead),
        interval '1 month'
    ) AS first
    ORDER BY first
"""

_OWNER: Final = "SELECT quote_ident(pg_get_userbyid(relowner)) FROM pg_class WHERE oid = to_regclass(:name)"

_NEXT_ID: Final = "SELECT nextval(pg_get_serial_sequence(:name, 'id'))"

_INDEXES: Final = """
    SELECT relname AS name, pg_get_indexdef(indexrelid) AS definition
    FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE indrelid = to_regclass(:name) AND NOT indisunique
"""

_TRIGGERS: Final = """
    SELECT tgname AS name, definition, definition LIKE '% FOR EACH STATEMENT %' AS of_statement
    FROM pg_trigger,
         replace(
             pg_get_triggerdef(oid), CASE tgname WHEN 'never_deleted' THEN 'EACH ROW' ELSE '' END, 'EACH STATEMENT'
         ) AS definition
    WHERE tgrelid = to_regclass(:name) AND NOT tgisinternal
"""
"""A row that moves to another partition is deleted from its own, so only statements that delete are refused."""

_RIGHTS: Final = """
    SELECT format('GRANT %s %s ON %s TO %s%s', right_to, place, oid::regclass, role, options) AS given,
           format('REVOKE ALL ON %s_open FROM %s', oid::regclass, role) AS taken
    FROM (
        SELECT oid, relowner, '' AS place, held.* FROM pg_class, aclexplode(relacl) AS held
        UNION ALL
        SELECT pg_class.oid, relowner, format('(%I)', attname), held.*
        FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid, aclexplode(attacl) AS held
    ) AS rights (oid, relowner, place, grantor, grantee, right_to, is_grantable),
        coalesce(quote_ident((SELECT rolname FROM pg_roles WHERE pg_roles.oid = grantee)), 'PUBLIC') AS role,
        substr(' WITH GRANT OPTION', 1, CASE WHEN is_grantable THEN 99 ELSE 0 END) AS options
    WHERE rights.oid = to_regclass(:name) AND grantee <> relowner
"""
