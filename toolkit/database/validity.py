"""Tell which observations held at a moment, and what had been found in an object by then."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from toolkit.database.tables import content_checks


def valid_at(observations: sa.Table, moment: datetime | None) -> sa.ColumnElement[bool]:
    """Tell the observations that held at the moment, those that hold now where it is ``None``."""
    gone_at = observations.c.gone_at
    if moment is None:
        return gone_at.is_(None)
    return sa.and_(observations.c.seen_at <= moment, sa.or_(gone_at.is_(None), gone_at > moment))


def stamped_by(stamp: sa.ColumnElement[Any], moment: datetime | None) -> sa.ColumnElement[bool]:
    """Tell what was stamped by the moment, everything where it is ``None``."""
    return sa.true() if moment is None else stamp <= moment


def latest_look_and_first_fault(
    seen: sa.FromClause, moment: datetime | None = None
) -> tuple[sa.FromClause, sa.FromClause]:
    """Return the latest look at an object's contents, and the first that found a fault that stands."""
    looked = content_checks.alias("looked")
    by_then = stamped_by(looked.c.checked_at, moment)
    every = sa.select(looked).where(looked.c.observation_id == seen.c.id, by_then).limit(1)
    sound = content_checks.alias("sound")
    corrected = sa.exists().where(
        sound.c.observation_id == looked.c.observation_id,
        sound.c.id > looked.c.id,
        sound.c.problem.is_(None),
        stamped_by(sound.c.checked_at, moment),
    )
    first = every.where(looked.c.problem.is_not(None), ~corrected).order_by(looked.c.id)
    return every.order_by(looked.c.id.desc()).lateral("latest"), first.lateral("first_fault")
