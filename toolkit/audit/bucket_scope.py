"""The keys that a reading of the bucket looks at, so that no listed key is older than stated.

A reading looks at
- the days on which an upload form that was alive since the last reading can have been issued, and
- every key that a record of an open sale, or a new record, names, and
- every key there is, where that was done ``EVERY_KEY_WITHIN`` ago, or costs no more: at any hour of the day a
  small bucket is read whole.

A sale is open that is not completed, or that the last audit found completed without evidence. A record is new
for as long as a key may go unread, also where its sale is completed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.bucket.client import PAGE, Area, Bucket
from toolkit.contract.evidence import KEY_PREFIX
from toolkit.database.tables import bucket_syncs, object_observations
from toolkit.settings import LONGEST_UPLOAD_TTL

LONGEST_FORM: Final = timedelta(seconds=LONGEST_UPLOAD_TTL)
"""The longest life of an upload form."""

CLOCKS_APART: Final = timedelta(hours=1)
"""The difference to allow for between the clocks of issuers of forms and of the reader of the bucket."""

EVERY_KEY_WITHIN: Final = timedelta(days=7)
"""The age up to which any part of the bucket may go unread, where nothing else is set."""

KEYS_FOR_A_PAGE: Final = 8
"""Keys that can be asked for one by one in the time in which one page of a listing is read."""

EVERYTHING: Final = ("",)


@dataclass(frozen=True, slots=True)
class Scope:
    """The keys that a reading looks at: those with one of the ``prefixes`` by listing them, ``asked`` one by one.

    ``since`` is when the last reading began, if there was one.
    """

    prefixes: tuple[str, ...] = EVERYTHING
    asked: tuple[str, ...] = ()
    since: datetime | None = None

    @property
    def full(self) -> bool:
        """Tells whether every key is looked at."""
        return self.prefixes == EVERYTHING


def next_scope(
    connection: Connection, bucket: Bucket, now: datetime, *, full: bool, within: timedelta = EVERY_KEY_WITHIN
) -> Scope:
    """Return the part of the bucket that the next reading looks at, by the times of earlier readings."""
    last = connection.execute(sa.select(bucket_syncs).order_by(bucket_syncs.c.id.desc()).limit(1)).one_or_none()
    oldest, since = listed_since(connection), None if last is None else last.started_at
    if not (full or last is None or last.bucket != bucket.address or oldest is None or now - oldest >= within):
        days = _days(last.started_at - LONGEST_FORM - CLOCKS_APART, now + CLOCKS_APART)
        most = KEYS_FOR_A_PAGE * (_pages(connection) - len(days))
        asked = _asked(connection, bucket, days, now - within, max(most, 0) + 1)
        if len(asked) < most:
            return Scope(days, asked, since)
    return Scope(EVERYTHING, _asked(connection, bucket, EVERYTHING, now - within), since)


def listed_since(connection: Connection, moment: datetime | None = None) -> datetime | None:
    """Return when every key was looked at last, as of ``moment``; ``None`` where that was never done.

    Records of open sales are asked for at every reading, so this is about all other objects.
    """
    syncs = bucket_syncs.c
    query = sa.select(syncs.started_at).where(syncs.full_listing).order_by(syncs.id.desc()).limit(1)
    if moment is not None:
        query = query.where(syncs.finished_at <= moment)
    return connection.scalar(query)


def _pages(connection: Connection) -> int:
    known = connection.scalar(sa.select(sa.func.count()).where(object_observations.c.gone_at.is_(None)))
    return math.ceil((known or 0) / PAGE)


def _days(first: datetime, last: datetime) -> tuple[str, ...]:
    """Return the prefixes of the keys of evidence that was requested from one day to another (UTC)."""
    start, end = first.astimezone(UTC).date(), last.astimezone(UTC).date()
    days = (start + timedelta(days=number) for number in range((end - start).days + 1))
    return tuple(f"{KEY_PREFIX}{day:%Y/%m/%d}/" for day in days)


def _asked(
    connection: Connection, bucket: Bucket, prefixes: Sequence[str], since: datetime, most: int | None = None
) -> tuple[str, ...]:
    """Return the keys to ask for one by one: of open sales elsewhere, and those that no listing shows."""
    in_turn, listed = under("record.object_key", prefixes), in_area("record.object_key", bucket.area)
    query = _ASKED.format(in_turn=in_turn.text, listed=listed.text)
    bound = {"new_since": since, "most": most, **in_turn.bound, **listed.bound}
    return tuple(connection.scalars(sa.text(query), bound))


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition in SQL, and the values that it binds."""

    text: str
    bound: dict[str, Any]


def under(key: str, prefixes: Sequence[str], name: str = "under") -> Condition:
    """Return the condition that a key has one of the prefixes; PostgreSQL finds it by an index over "C"."""
    if "" in prefixes:
        return Condition("TRUE", {})
    bound = {f"{name}{place}": each for place, each in enumerate(prefixes)}
    texts = (f'starts_with({key} COLLATE "C", :{each})' for each in bound)
    return Condition(f"({' OR '.join(texts) or 'FALSE'})", bound)


def in_area(key: str, area: Area) -> Condition:
    """Return the condition that a listing of the area shows a key."""
    wanted, ignored = under(key, area.prefixes or EVERYTHING, "wanted"), under(key, area.ignored, "ignored")
    return Condition(f"({wanted.text} AND NOT {ignored.text})", wanted.bound | ignored.bound)


_ASKED: Final = """
    SELECT DISTINCT record.object_key
    FROM audit.evidence_observations AS record
    JOIN audit.sale_observations AS sale ON sale.sale_id = record.sale_id AND sale.gone_at IS NULL
    CROSS JOIN LATERAL (
        SELECT sale.completed_at IS NULL OR record.seen_at > :new_since OR record.sale_id IN (
            SELECT sale_id
            FROM audit.finding_observations
            WHERE gone_at IS NULL AND code = 'COMPLETED_WITHOUT_EVIDENCE'
        ) AS open
    ) AS state
    WHERE record.gone_at IS NULL
      AND record.object_key IS NOT NULL
      AND ((open AND NOT {in_turn}) OR ((open OR {in_turn}) AND NOT {listed}))
    ORDER BY record.object_key
    LIMIT CAST(:most AS bigint)
"""
