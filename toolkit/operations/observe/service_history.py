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
from toolkit.storage.service_map.row_versions import state_of, touched
from toolkit.storage.tables import evidence_observations, evidences, sale_observations, sales, service_readings


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
        observe = _observe_mapped if database.mapped else _observe
        found = observe(connection, _SALES, now), observe(connection, _RECORDS, now)
        for observed, history, what in zip(found, (_SALES, _RECORDS), ("sales", "evidence records"), strict=True):
            if observed.vanished > FEW:
                current = sa.select(sa.func.count()).where(history.observations.c.gone_at.is_(None))
                left = connection.execute(current).scalar_one() - observed.appeared
                tolerance.check(observed.vanished, left + observed.vanished, what)
        return found


def observe_sales(connection: Connection, clock: Clock, sale_id: str | None = None) -> Observed:
    """Return the same for the sales alone, or for one of them, inside the transaction that wrote them."""
    now = stamp(connection, clock)
    which = "true" if sale_id is None else "{} = :only"
    return _observe(connection, _SALES, now, which, sale_id)


def _observe_mapped(connection: Connection, history: _History, now: datetime) -> Observed:
    """Do the same through a mapping, whose values are costly to read: for the rows that were touched since.

    The versions of the rows tell which (``toolkit.storage.service_map.row_versions``). All rows are compared where
    versions say too little, and once in seven days: the server's files of time zones may change, too.
    """
    name = history.rows.name
    bound = {"relation": name, "statement": _different(history)}
    reading = connection.execute(sa.text(_READING.format(state=state_of(name))), bound).one()
    if reading.all_compared_at is None:
        observed = _observe(connection, history, now)
    else:
        connection.execute(sa.text(_SIDE_BY_SIDE))
        seen = history.observations.fullname
        query = _TOUCHED.format(rows=touched(name), seen=seen, key=history.id_of_row, most=_MANY)
        ids = connection.scalars(sa.text(query)).all()
        if len(ids) == _MANY or None in ids:  # a row without a key is an error
            observed = _observe(connection, history, now)
        else:
            observed = _observe(connection, history, now, "{} = ANY(:only)", ids) if ids else Observed(0, 0, 0)
    connection.execute(sa.delete(service_readings).where(service_readings.c.relation == name))
    connection.execute(sa.text(_READ), {"relation": name, **reading._mapping})
    return observed


def _observe(
    connection: Connection, history: _History, now: datetime, which: str = "true", only: object = None
) -> Observed:
    """Close the observations that no longer hold, and open one for each row that has none.

    The rows are read once, by a statement that only reads, so that the server may share it among processes: what
    they say may be costly to compute where they come through a mapping.
    """
    connection.execute(sa.text(_SIDE_BY_SIDE))
    connection.execute(sa.text(_different(history, which)), {} if only is None else {"only": only})
    observed = Observed(*connection.execute(sa.text(_COUNTS)).one())
    if observed != Observed(0, 0, 0):
        seen, columns = history.observations.fullname, ", ".join(history.columns)
        connection.execute(sa.text(_CLOSE.format(seen=seen)), {"now": now})
        connection.execute(sa.text(_OPEN.format(seen=seen, key=history.id_of_row, columns=columns)), {"now": now})
    connection.execute(sa.text("DROP TABLE different"))
    return observed


def _different(history: _History, which: str = "true") -> str:
    """Return the statement that puts the rows that differ from their observations into a table.

    ``which`` is the condition that their ids fulfil.
    """
    columns, key = ", ".join(history.columns), history.id_of_row
    told = columns.replace("partner", "nullif(btrim(partner), '') AS partner")  # a blank partner is none
    return _DIFFERENT.format(
        rows=f"SELECT id, {told}, true AS present FROM {history.rows.fullname} WHERE {which.format('id')}",  # noqa: S608
        last=f"SELECT * FROM {history.observations.fullname} WHERE gone_at IS NULL AND {which.format(key)}",  # noqa: S608
        key=key,
        values=", ".join(f"fresh.{name}" for name in history.columns),
        known=", ".join(f"last.{name}" for name in history.columns),
    )


_READING: Final = """
    WITH here AS (
        SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint) AS since,
               {state} || md5(:statement) AS state
    )
    SELECT here.since, here.state, all_compared_at
    FROM here LEFT JOIN audit.service_readings AS kept
        ON relation = :relation AND kept.state = here.state
        AND CAST(CAST(kept.xmin AS text) AS bigint) = written_by
        AND here.since - kept.since < 2147483648 AND all_compared_at > now() - interval '7 days'
"""
"""The transactions that were over before this one reads anything, and the last reading if it can be relied on."""

_MANY: Final = 50_000
"""So many touched rows are not looked up one by one; all are compared."""

_TOUCHED: Final = """
    WITH touched AS MATERIALIZED (
        SELECT coalesce(fresh.id, {key}) AS id
        FROM {rows} AS fresh
        FULL JOIN (SELECT id AS observation, {key} FROM {seen} WHERE gone_at IS NULL) AS last ON fresh.id = {key}
        WHERE touched IS NOT FALSE OR observation IS NULL
    )
    SELECT id FROM touched LIMIT {most}
"""
"""A row that is gone, or is left out by now, has no ``touched``. The query is planned for all of its rows."""

_READ: Final = """
    INSERT INTO audit.service_readings (relation, since, written_by, state, all_compared_at)
    SELECT :relation, :since, CAST(CAST(pg_current_xact_id() AS text) AS bigint) & 4294967295, :state,
           coalesce(CAST(:all_compared_at AS timestamptz), now())
    WHERE CAST(:state AS text) IS NOT NULL
"""

_SIDE_BY_SIDE: Final = """
    SELECT set_config('parallel_tuple_cost', '0', true),
           set_config('work_mem', CAST(least(CAST(setting AS bigint), 8192) AS text), true)
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

_CLOSE: Final = """
    UPDATE {seen} AS seen SET gone_at = :now FROM different WHERE seen.id = observation AND seen.gone_at IS NULL
"""

_OPEN: Final = """
    INSERT INTO {seen} ({key}, {columns}, seen_at)
    SELECT id, {columns}, :now FROM different WHERE present ORDER BY id
"""
