"""Keep observations of the sales and of the evidence records.

Both belong to another system and change under us. Whatever was seen is kept as an observation that holds from
``seen_at`` until ``gone_at``, so that an audit can be asked as of any past moment. The times that the service
writes itself (``created_at``, ``requested_at``) are data: a row that is dated back is known from when it was seen.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.operations import Clock
from toolkit.operations.observe.belonging import belong_to_service
from toolkit.operations.observe.disappearance import FEW, Tolerance
from toolkit.storage.database import Database
from toolkit.storage.observation_clock import stamp
from toolkit.storage.tables import evidence_observations, evidences, sale_observations, sales


@dataclass(frozen=True, slots=True)
class _History:
    """A table of the service, the observations of its rows, and the columns that are kept beside the id."""

    rows: sa.Table
    observations: sa.Table
    id_of_row: str
    columns: tuple[str, ...]


OBSERVED: Final = (
    "client_id",
    "utility_group",
    "is_client_financial_responsible",
    "partner",
    "created_at",
    "completed_at",
)
"""The columns of a sale that are kept, beside its id."""

_SALES: Final = _History(sales, sale_observations, "sale_id", OBSERVED)
_RECORDS: Final = _History(
    evidences,
    evidence_observations,
    "evidence_id",
    ("sale_id", "evidence_type", "type", "object_key", "requested_at", "expires_at"),
)


@dataclass(frozen=True, slots=True)
class Observed:
    """The numbers of rows of one table that changed since it was observed last."""

    appeared: int
    changed: int
    vanished: int


def observe_service(
    database: Database, clock: Clock, tolerance: Tolerance | None = None
) -> tuple[Observed, Observed]:
    """Note what changed in the sales and in the evidence records since they were observed last.

    Raises:
        WrongService: the database belongs to another service; nothing was written.
        MassDisappearance: most of them are gone; nothing was written.
    """
    tolerance = tolerance or Tolerance()
    with database.transaction() as connection:
        now = stamp(connection, clock)
        belong_to_service(connection, now, mapped=database.mapped)
        found = _observe(connection, _SALES, now), _observe(connection, _RECORDS, now)
        for observed, history, what in zip(found, (_SALES, _RECORDS), ("sales", "evidence records"), strict=True):
            if observed.vanished > FEW:
                current = sa.select(sa.func.count()).where(history.observations.c.gone_at.is_(None))
                left = connection.execute(current).scalar_one() - observed.appeared
                tolerance.check(observed.vanished, left + observed.vanished, what)
        return found


def observe_sales(connection: Connection, clock: Clock, sale_id: str | None = None) -> Observed:
    """Return the same for the sales alone, or for one of them, inside the transaction that wrote them."""
    return _observe(connection, _SALES, stamp(connection, clock), sale_id)


def _observe(connection: Connection, history: _History, now: datetime, only: str | None = None) -> Observed:
    """Close the observations that no longer hold, and open one for each row that has none.

    The rows are read once, by a statement that only reads, so that the server may share it among processes: what
    they say may be costly to compute where they come through a mapping.
    """
    rows, seen, key = history.rows.fullname, history.observations.fullname, history.id_of_row
    columns = ", ".join(history.columns)
    told = columns.replace("partner", "nullif(btrim(partner), '') AS partner")  # a blank partner is none
    about = "true" if only is None else "{} = :only"
    different = _DIFFERENT.format(
        rows=f"SELECT id, {told}, true AS present FROM {rows} WHERE {about.format('id')}",  # noqa: S608
        last=f"SELECT * FROM {seen} WHERE gone_at IS NULL AND {about.format(key)}",  # noqa: S608
        key=key,
        values=", ".join(f"fresh.{name}" for name in history.columns),
        known=", ".join(f"last.{name}" for name in history.columns),
    )
    connection.execute(sa.text(_SIDE_BY_SIDE))
    connection.execute(sa.text(different), {} if only is None else {"only": only})
    observed = Observed(*connection.execute(sa.text(_COUNTS)).one())
    if observed != Observed(0, 0, 0):
        connection.execute(sa.text(_CLOSE.format(seen=seen)), {"now": now})
        connection.execute(sa.text(_OPEN.format(seen=seen, key=key, columns=columns)), {"now": now})
    connection.execute(sa.text("DROP TABLE different"))
    return observed


_SIDE_BY_SIDE: Final = """
    SELECT set_config('parallel_tuple_cost', '0', true),
           set_config('work_mem', CAST(least(
               CAST(setting AS bigint),
               CASE WHEN current_setting('dynamic_shared_memory_type') = 'posix' THEN 8192 END
           ) AS text), true)
    FROM pg_settings
    WHERE name = 'work_mem'
"""
"""Few rows are different. What the processes share fits into the 64 MB that a container has for it."""

_DIFFERENT: Final = """
    CREATE TEMPORARY TABLE different ON COMMIT DROP AS
    SELECT fresh.id, {values}, present, last.id AS observation
    FROM ({rows}) AS fresh FULL JOIN ({last}) AS last ON fresh.id = last.{key}
    WHERE present IS NULL OR last.id IS NULL OR ROW({values}) IS DISTINCT FROM ROW({known})
"""

_COUNTS: Final = """
    SELECT count(*) FILTER (WHERE present AND observation IS NULL),
           count(*) FILTER (WHERE present AND observation IS NOT NULL),
           count(*) FILTER (WHERE present IS NULL)
    FROM different
"""

_CLOSE: Final = "UPDATE {seen} AS seen SET gone_at = :now FROM different WHERE seen.id = observation"

_OPEN: Final = """
    INSERT INTO {seen} ({key}, {columns}, seen_at)
    SELECT id, {columns}, :now FROM different WHERE present ORDER BY id
"""
