"""The keys that a reading of the bucket has to list."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection, Row

from toolkit.domain.evidence import KEY_PREFIX
from toolkit.settings import LONGEST_UPLOAD_TTL
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database
from toolkit.storage.tables import bucket_syncs, object_observations

LONGEST_FORM: Final = timedelta(seconds=LONGEST_UPLOAD_TTL)
"""The longest life of an upload form."""

CLOCKS_APART: Final = timedelta(hours=1)
"""How far the clocks of those who issue forms and of the one who reads the bucket may differ."""

FULL_EVERY: Final = timedelta(days=7)
"""The longest time between two full readings."""

SMALL: Final = 5000
"""Objects that a bucket may have to be read whole each time: a few pages cost nothing."""

DAY_LENGTH: Final = len(f"{KEY_PREFIX}YYYY/MM/DD/")
"""Characters in the prefix of a key that names its day."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The keys that a reading looks at: all, or those that start with one of ``days``."""

    days: tuple[str, ...] | None = None

    @property
    def full(self) -> bool:
        """Tell whether every key is listed."""
        return self.days is None

    @property
    def of_known(self) -> str:
        """The scope as a condition on ``known.key``, with the bound parameter ``days``."""
        return "TRUE" if self.full else f"left(known.key, {DAY_LENGTH}) = ANY(:days)"

    @property
    def parameters(self) -> dict[str, Any]:
        """The values of what ``of_known`` binds."""
        return {} if self.days is None else {"days": list(self.days)}


def next_scope(database: Database, bucket: Bucket, now: datetime, *, full: bool) -> Scope:
    """The scope of the next reading, derived from the times of the readings before."""
    with database.transaction() as connection:
        last = connection.execute(_newest()).one_or_none()
        last_full = connection.execute(_newest().where(bucket_syncs.c.full_listing)).one_or_none()
        full = full or _few_known(connection)
    if full or last is None or last_full is None or not _fresh(last_full, now):
        return Scope()
    if {last.bucket, last_full.bucket} != {address(bucket)}:
        return Scope()
    first = last.started_at - LONGEST_FORM - CLOCKS_APART
    return Scope(tuple(day_prefix(day) for day in _days(first, now + CLOCKS_APART)))


def address(bucket: Bucket) -> str:
    """The bucket as it is told apart from others of the same name."""
    return f"{bucket.name} ({bucket.endpoint})"


def day_prefix(day: date) -> str:
    """The prefix of the keys of evidence requested on this day (UTC)."""
    return f"{KEY_PREFIX}{day:%Y/%m/%d}/"


def _newest() -> sa.Select[Any]:
    return sa.select(bucket_syncs).order_by(bucket_syncs.c.id.desc()).limit(1)


def _few_known(connection: Connection) -> bool:
    known = object_observations
    some = sa.select(known.c.id).where(known.c.gone_at.is_(None)).limit(SMALL + 1).subquery()
    count: int = connection.execute(sa.select(sa.func.count()).select_from(some)).scalar_one()
    return count <= SMALL


def _fresh(last_full: Row[Any], now: datetime) -> bool:
    return bool(now - last_full.started_at < FULL_EVERY)


def _days(first: datetime, last: datetime) -> list[date]:
    start, end = first.astimezone(UTC).date(), last.astimezone(UTC).date()
    return [start + timedelta(days=number) for number in range((end - start).days + 1)]
