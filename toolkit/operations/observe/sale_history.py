"""Keep what was seen of the sales.

Sales belong to another system and change under us. Whatever was seen is kept as an observation that holds
from ``seen_at`` until ``gone_at``, so that an audit can be asked as of any past moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.operations import Clock
from toolkit.storage.database import Database
from toolkit.storage.locks import Lock, take
from toolkit.storage.tables import sale_observations, sales

OBSERVED: Final = (
    "client_id",
    "utility_group",
    "is_client_financial_responsible",
    "partner",
    "created_at",
    "completed_at",
)
"""The columns of a sale that are kept, beside its id."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The changes in the sales since the last observation."""

    appeared: int
    changed: int
    vanished: int


def observe_sales(database: Database, clock: Clock) -> Observed:
    """Note what changed in the sales since the last look, whoever changed it."""
    with database.transaction() as connection:
        return observe(connection, clock)


def observe(connection: Connection, clock: Clock, sale_id: str | None = None) -> Observed:
    """Close the observations that no longer hold, and open one for each sale that has none.

    With ``sale_id`` only that sale is looked at. Whoever waits for another observer looks later than that one,
    so the clock is asked after the wait: no observation ends before it began.
    """
    take(connection, Lock.SALE_HISTORY)
    now = clock()
    seen = sale_observations
    current = sa.and_(seen.c.gone_at.is_(None), _only(seen.c.sale_id, sale_id))
    gone = sa.update(seen).values(gone_at=now)
    vanished = connection.execute(
        gone.where(current, ~sa.select(sales.c.id).where(sales.c.id == seen.c.sale_id).exists())
    )
    changed = connection.execute(
        gone.where(
            current,
            sales.c.id == seen.c.sale_id,
            sa.or_(*(sales.c[name].is_distinct_from(seen.c[name]) for name in OBSERVED)),
        )
    )
    open_one = sa.select(seen.c.id).where(seen.c.gone_at.is_(None), seen.c.sale_id == sales.c.id).exists()
    unseen = sa.select(sales.c.id, *(sales.c[name] for name in OBSERVED), sa.literal(now)).where(
        ~open_one, _only(sales.c.id, sale_id)
    )
    opened = connection.execute(
        sa.insert(seen)
        .from_select(["sale_id", *OBSERVED, "seen_at"], unseen)
        .execution_options(preserve_rowcount=True)
    )
    return Observed(opened.rowcount - changed.rowcount, changed.rowcount, vanished.rowcount)


def _only(column: sa.ColumnElement[str], sale_id: str | None) -> sa.ColumnElement[bool]:
    return sa.true() if sale_id is None else column == sale_id
