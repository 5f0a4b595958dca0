"""Keep observations of the sales and of the evidence records.

Both belong to another system and change under us. Whatever was seen is kept as an observation that holds from
``seen_at`` until ``gone_at``, so that an audit can be asked as of any past moment. The times that the service
writes itself (``created_at``, ``requested_at``) are data: a row that is dated back is known from when it was seen.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

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

    The rows are read once: what they say may be costly to compute where they come through a mapping.
    """
    rows, seen = history.rows, history.observations
    every = only is None
    row = (
        sa.select(rows.c.id, *(_told(rows.c[name]) for name in history.columns), sa.true().label("present"))
        .where(sa.true() if every else rows.c.id == only)
        .subquery("row")
    )
    last = (
        sa.select(seen)
        .where(seen.c.gone_at.is_(None), sa.true() if every else seen.c[history.id_of_row] == only)
        .subquery("last")
    )
    different = (
        sa.select(row, last.c.id.label("observation"))
        .join_from(row, last, row.c.id == last.c[history.id_of_row], full=True)
        .where(
            sa.or_(
                row.c.present.is_(None),
                last.c.id.is_(None),
                *(row.c[name].is_distinct_from(last.c[name]) for name in history.columns),
            )
        )
        .cte("different")
    )
    closed = (
        sa.update(seen)
        .values(gone_at=now)
        .where(seen.c.id == sa.any_(sa.func.array(sa.select(different.c.observation).scalar_subquery())))
        .returning(seen.c.id)
        .cte("closed")
    )
    # One observation of a row holds at a time: the next is opened after the count of all that were closed.
    after_closing = sa.select(sa.func.count()).select_from(closed).scalar_subquery() >= 0
    opened = sa.insert(seen).from_select(
        [history.id_of_row, *history.columns, "seen_at"],
        sa.select(different.c.id, *(different.c[name] for name in history.columns), sa.literal(now))
        .where(different.c.present, after_closing)
        .order_by(different.c.id),
    )
    known = different.c.observation.is_not(None)
    counts = sa.select(
        sa.func.count().filter(different.c.present, ~known),
        sa.func.count().filter(different.c.present, known),
        sa.func.count().filter(different.c.present.is_(None)),
    ).add_cte(opened.cte("opened"))
    return Observed(*connection.execute(counts).one())


def _told(column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    """Return what a row says in a column; a blank partner is none."""
    return sa.func.nullif(sa.func.btrim(column), "").label(column.name) if column.name == "partner" else column
