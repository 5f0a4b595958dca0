"""Move whole months of ended observations into a snapshot, and out of the database.

The snapshot is continued first. Then every row of each month is compared with what its files hold, and only then
do the partitions leave, in one transaction that also notes them. So a month is in the database or in the snapshot,
whenever this is killed. Few observations stay in the database, too: those of a record whose key no other one there
tells, as the snapshot has no keys of objects, the last ones of withdrawn records, which reports list, and those
with which a sale was gone or came back, which tell that it was observed and why findings ended.
"""
# ruff: noqa: S608  # names of our own tables

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from toolkit.domain.deadlines import Deadlines
from toolkit.errors import DatabaseUnavailable, InvalidInput, UnreadableFile
from toolkit.operations import Clock
from toolkit.operations.progress import Progress, Quiet
from toolkit.operations.snapshot.contents import CONTENTS
from toolkit.operations.snapshot.export import export_snapshot
from toolkit.operations.snapshot.moved import Elsewhere, Month, month_before
from toolkit.operations.snapshot.reading import Snapshot, digest_of_manifests, open_snapshot
from toolkit.operations.snapshot.secret import secret_of
from toolkit.storage import tables
from toolkit.storage.database import Database
from toolkit.storage.file_store import FileStore
from toolkit.storage.frames import stream_arrow
from toolkit.storage.observation_clock import stamp
from toolkit.storage.partitions import (
    PARTITIONED,
    is_partitioned,
    months_of,
    partition_by_month,
    partition_of,
    records_assumed_at,
)

PATIENCE: Final = 60.0
"""Seconds to wait for a moment in which nobody reads or writes observations."""

_PAUSE: Final = 0.2


def months_to_move(database: Database, clock: Clock, older_than: int) -> list[Month]:
    """Return the months that were over ``older_than`` months ago and are still in the database, the oldest first.

    Raises:
        InvalidInput: observations are not partitioned by month.
    """
    end = month_before(clock(), older_than)
    with database.transaction() as connection:
        _check_partitioned(connection)
        months = [
            Month(content, began_at, 0)
            for content in CONTENTS
            if content.table in PARTITIONED
            for began_at in months_of(connection, content.table)
        ]
        return [
            replace(month, rows=_count(connection, month))
            for month in sorted(months, key=lambda each: each.began_at)
            if month.over_at <= end
        ]


def move_months(
    database: Database,
    store: FileStore,
    elsewhere: Elsewhere,
    clock: Clock,
    *,
    older_than: int,
    deadlines: Deadlines | None = None,
    progress: Progress | None = None,
) -> list[Month]:
    """Move the months that were over ``older_than`` months ago, one at least, into the snapshot in ``store``.

    Raises:
        InvalidInput: observations are not partitioned, or somebody else owns them.
        UnreadableFile: the snapshot does not hold what the database does; nothing was removed.
        DatabaseUnavailable: somebody reads or writes observations all the time; nothing was removed.
    """
    with database.transaction() as connection:
        _check_partitioned(connection)
        _check_owner(connection)
        partition_by_month(connection)  # rows that ended in a month without a partition get one
    months = months_to_move(database, clock, older_than)
    if not months:
        return []
    export_snapshot(
        database, store, elsewhere.home, clock, elsewhere=elsewhere, deadlines=deadlines, progress=progress
    )
    exported = open_snapshot(store)
    months = _compared(database, store, exported, months, elsewhere, progress or Quiet())
    where = {
        "target": store.place,
        "exported_at": exported.moment,
        "manifests": digest_of_manifests(store, exported),
    }
    with _alone(database, clock) as (connection, now):
        assumed_at = records_assumed_at(connection)
        for month in months:
            _remove(connection, month, exported.moment)
        note = {"records_assumed_at": assumed_at, "moved_at": now, **where}
        connection.execute(sa.insert(tables.moved_partitions), [month.told | note for month in months])
        # An older judgement cannot be carried on, as changes since then left: the next audit judges all sales.
        judged_at = tables.judgement.c.judged_at
        connection.execute(sa.delete(tables.judgement).where(judged_at < months[-1].over_at))
    return months


def _compared(
    database: Database,
    store: FileStore,
    exported: Snapshot,
    months: Sequence[Month],
    elsewhere: Elsewhere,
    progress: Progress,
) -> list[Month]:
    """Return the months with the digest of their rows, which is the same in the database and in the snapshot."""
    secret, found = secret_of(elsewhere.home), []
    progress.begin("Comparing", len(months), "months")
    with elsewhere.months_in(store, exported, months) as rows_of:
        for month in months:
            there = month.digest(rows_of(month))
            columns = ", ".join(month.compared.names)
            rows = month.content.rows(None, exported.moment, month.partition)
            query = f"SELECT {columns} FROM ({rows}) AS told ORDER BY id"
            with database.snapshot() as connection:
                batches = stream_arrow(connection, query, month.compared)
                here = month.digest(month.content.without_keys(batch, secret) for batch in batches)
            if here != there or here[0] != month.rows:
                raise UnreadableFile(
                    f"The snapshot in {store.address} does not hold {month.content.name} of "
                    f"{month.began_at:%Y-%m} as the database does ({there[0]:,} rows, and {here[0]:,} here). "
                    "Nothing was removed. See: toolkit snapshot verify TARGET"
                )
            found.append(replace(month, sha256=here[1]))
            progress.advance(1)
    progress.end()
    return found


@contextmanager
def _alone(database: Database, clock: Clock) -> Iterator[tuple[Connection, datetime]]:
    """Open a transaction beside which nobody reads or writes observations, and its moment.

    The clock of observations is taken first, and the tables are never waited for: whoever holds them may need it.
    """
    ends = time.monotonic() + PATIENCE
    while True:
        with database.transaction() as connection:
            now = stamp(connection, clock)
            if _lock(connection):
                yield connection, now
                return
        if time.monotonic() > ends:
            raise DatabaseUnavailable(
                f"Somebody read or wrote observations for {PATIENCE:.0f} seconds. Nothing was removed; "
                "try again later."
            )
        time.sleep(_PAUSE)


def _lock(connection: Connection) -> bool:
    names = ", ".join(table.fullname for table in PARTITIONED)
    try:
        with connection.begin_nested():
            connection.execute(sa.text(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE NOWAIT"))
    except OperationalError:
        return False
    return True


def _remove(connection: Connection, month: Month, exported_at: datetime) -> None:
    """Drop the partition, but for the observations that stay."""
    if _count(connection, month) != month.rows:
        raise InvalidInput(f"Rows of {month.partition} changed while they were compared. Nothing was removed.")
    table, default = month.content.table, partition_of(month.content.table, None)
    columns, (trigger, staying) = ", ".join(column.name for column in table.columns), _STAYING[table]
    for statement in (
        f"ALTER TABLE {table.fullname} DETACH PARTITION {month.partition}",
        f"ALTER TABLE {default} DISABLE TRIGGER {trigger}",
        f"INSERT INTO {default} ({columns}) OVERRIDING SYSTEM VALUE "
        + staying.format(columns=columns, month=month.partition, others=table.fullname),
        f"ALTER TABLE {default} ENABLE TRIGGER {trigger}",
        f"DROP TABLE {month.partition}",
    ):
        connection.execute(sa.text(statement), {"exported_at": exported_at} if ":exported_at" in statement else {})


def _count(connection: Connection, month: Month) -> int:
    return int(connection.scalar(sa.text(f"SELECT count(*) FROM {month.partition}")) or 0)


def _check_partitioned(connection: Connection) -> None:
    if not is_partitioned(connection):
        raise InvalidInput(
            "Observations are not partitioned by month, so no month can be moved. "
            "Run: toolkit db upgrade --partition-by-month"
        )


def _check_owner(connection: Connection) -> None:
    for table in PARTITIONED:
        role = connection.scalar(sa.text(_NO_OWNER), {"name": table.fullname})
        if role is not None:
            raise InvalidInput(
                f"The role {role} does not own {table.fullname}, and only its owner can remove partitions of it. "
                "Connect as the role that runs: toolkit db upgrade"
            )


_NO_OWNER: Final = """
    SELECT current_user FROM pg_class WHERE oid = to_regclass(:name) AND NOT pg_has_role(relowner, 'USAGE')
"""

_OF_SALES: Final = """
    WITH beside AS (
        SELECT id, lag(gone_at) OVER of_sale AS gone_before, lead(seen_at) OVER of_sale AS seen_after
        FROM (
            SELECT id, sale_id, seen_at, gone_at FROM {others}
            UNION ALL
            SELECT id, sale_id, seen_at, gone_at FROM {month}
        ) AS every
        WINDOW of_sale AS (PARTITION BY sale_id ORDER BY seen_at)
    )
    SELECT {columns} FROM {month} AS ended JOIN beside USING (id)
    WHERE seen_after IS DISTINCT FROM gone_at OR gone_before <> seen_at
"""
"""A sale that changed has an observation that began when this one ended."""

_OF_RECORDS: Final = """
    SELECT {columns} FROM {month} AS ended
    WHERE object_key IS NOT NULL
      AND NOT EXISTS (
          SELECT FROM {others} AS other
          WHERE other.object_key = ended.object_key AND other.seen_at <= :exported_at
      )
      AND NOT EXISTS (
          SELECT FROM {month} AS later WHERE later.object_key = ended.object_key AND later.id > ended.id
      )
    UNION
    SELECT {columns} FROM {month} AS ended
    WHERE evidence_id IN (SELECT evidence_id FROM audit.withdrawals)
      AND NOT EXISTS (
          SELECT FROM {others} AS later
          WHERE later.evidence_id = ended.evidence_id AND later.seen_at > ended.seen_at
      )
      AND NOT EXISTS (
          SELECT FROM {month} AS later
          WHERE later.evidence_id = ended.evidence_id AND later.seen_at > ended.seen_at
      )
"""

_STAYING: Final = {
    tables.sale_observations: ("tell_sales_observed", _OF_SALES),
    tables.evidence_observations: ("tell_recorded", _OF_RECORDS),
}
"""The observations that stay, and the trigger that would tell the custody log of them once more."""
