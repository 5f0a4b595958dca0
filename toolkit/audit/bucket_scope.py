"""The keys that a reading of the bucket looks at, so that no listed key is older than stated.

A reading looks at
- the days on which an upload form that was alive since the last reading can have been issued, and
- every key that a record of an open sale, or a new record, names, and
- the next part of all keys, so that readings have gone round the whole bucket within ``EVERY_KEY_WITHIN``.

Where this costs more than reading every key, every key is read. A sale is open that is not completed, or that the
last audit found completed without evidence. A record is new for as long as a round takes, also where its sale is
completed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.bucket.client import Area, Bucket
from toolkit.bucket.listing import PAGE
from toolkit.contract.evidence import KEY_PREFIX
from toolkit.database.tables import bucket_syncs, object_observations
from toolkit.settings import LONGEST_UPLOAD_TTL

LONGEST_FORM: Final = timedelta(seconds=LONGEST_UPLOAD_TTL)
"""The longest life of an upload form."""

CLOCKS_APART: Final = timedelta(hours=1)
"""The difference to allow for between the clocks of issuers of forms and of the reader of the bucket."""

EVERY_KEY_WITHIN: Final = timedelta(days=7)
"""The age up to which any part of the bucket may go unread, where nothing else is set."""

SMALL: Final = 5000
"""Objects that a bucket may have to be read whole each time: a few pages cost nothing."""

KEYS_FOR_A_PAGE: Final = 8
"""Keys that can be asked for one by one in the time in which one page of a listing is read."""


@dataclass(frozen=True, slots=True)
class Range:
    """The keys with ``prefix`` that sort after ``after``, up to and including ``last`` (``None``: to the end)."""

    after: str = ""
    last: str | None = None
    prefix: str = ""


EVERYTHING: Final = (Range(),)


@dataclass(frozen=True, slots=True)
class Scope:
    """The keys that a reading looks at: those in ``ranges`` by listing them, and ``asked`` one by one.

    ``cycle`` counts the rounds over all keys, and ``read_to`` is the last key that this round has reached
    (``None``: it ends here). ``since`` is when the last reading began, if there was one.
    """

    ranges: tuple[Range, ...] = EVERYTHING
    asked: tuple[str, ...] = ()
    cycle: int = 1
    read_to: str | None = None
    since: datetime | None = None

    @property
    def full(self) -> bool:
        """Tells whether every key is looked at."""
        return self.ranges == EVERYTHING


def next_scope(
    connection: Connection, bucket: Bucket, now: datetime, *, full: bool, within: timedelta = EVERY_KEY_WITHIN
) -> Scope:
    """Return the part of the bucket that the next reading looks at, by the times of earlier readings."""
    last = connection.execute(sa.select(bucket_syncs).order_by(bucket_syncs.c.id.desc()).limit(1)).one_or_none()
    cycle, since = (1, None) if last is None else (1 + (last.cycle or 0), last.started_at)
    everything = Scope(asked=_asked(connection, bucket, EVERYTHING, now - within), cycle=cycle, since=since)
    known = _known(connection)
    if full or last is None or last.cycle is None or known <= SMALL:
        return everything
    oldest = listed_since(connection)
    if last.bucket != bucket.address or oldest is None or now - oldest >= within:
        return everything
    days = _days(last.started_at - LONGEST_FORM - CLOCKS_APART, now + CLOCKS_APART)
    turn = _next_part(connection, last.read_to or "", known, (now - last.started_at) / within)
    ranges = (*(_day(day) for day in days), turn)
    most = KEYS_FOR_A_PAGE * math.ceil(known / PAGE)
    asked = _asked(connection, bucket, ranges, now - within, most + 1)
    if len(asked) > most:
        return everything
    return Scope(ranges, asked, last.cycle if last.read_to is not None else cycle, turn.last, last.started_at)


def listed_since(connection: Connection, moment: datetime | None = None) -> datetime | None:
    """Return the oldest of the last readings of each part, as of ``moment``; ``None`` where a part has none.

    Records of open sales are asked for at every reading, so this is about all other objects.
    """
    until = "" if moment is None else "WHERE finished_at <= :moment"
    query = f"SELECT {_LISTED_SINCE} FROM audit.bucket_syncs {until} ORDER BY id DESC LIMIT 1"
    found: datetime | None = connection.scalar(sa.text(query), {} if moment is None else {"moment": moment})
    return found


def _day(day: date) -> Range:
    """Return the keys of evidence that was requested on this day (UTC)."""
    prefix = f"{KEY_PREFIX}{day:%Y/%m/%d}/"
    return Range(prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1), prefix)


def _known(connection: Connection) -> int:
    known = object_observations
    count: int = connection.scalar(sa.select(sa.func.count()).where(known.c.gone_at.is_(None))) or 0
    return count


def _next_part(connection: Connection, after: str, known: int, share: float) -> Range:
    """Return the keys after the last part: as many as are due, at least a page of them."""
    due = max(PAGE, math.ceil(known * min(share, 1)))
    key = sa.collate(object_observations.c.key, "C")
    query = (
        sa.select(object_observations.c.key)
        .where(object_observations.c.gone_at.is_(None), key > after)
        .order_by(key)
        .offset(due - 1)
        .limit(1)
    )
    return Range(after, connection.scalar(query))


def _asked(
    connection: Connection, bucket: Bucket, ranges: Sequence[Range], since: datetime, most: int | None = None
) -> tuple[str, ...]:
    """Return the keys to ask for one by one: of open sales outside the ranges, and those that no listing shows."""
    in_turn, listed = in_ranges("record.object_key", ranges), in_area("record.object_key", bucket.area)
    query = _ASKED.format(in_turn=in_turn.text, listed=listed.text)
    bound = {"new_since": since, "most": most, **in_turn.bound, **listed.bound}
    return tuple(connection.scalars(sa.text(query), bound))


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition in SQL, and the values that it binds."""

    text: str
    bound: dict[str, Any]


def in_ranges(key: str, ranges: Sequence[Range]) -> Condition:
    """Return the condition that a key lies in one of the ranges."""
    if tuple(ranges) == EVERYTHING:
        return Condition("TRUE", {})
    texts: list[str] = []
    bound: dict[str, Any] = {}
    for place, each in enumerate(ranges):
        text = f'{key} COLLATE "C" > :after{place} AND starts_with({key}, :within{place})'
        bound |= {f"after{place}": each.after, f"within{place}": each.prefix}
        if each.last is not None:
            text += f' AND {key} COLLATE "C" <= :last{place}'
            bound[f"last{place}"] = each.last
        texts.append(f"({text})")
    return Condition(f"({' OR '.join(texts)})", bound)


def in_area(key: str, area: Area) -> Condition:
    """Return the condition that a listing of the area shows a key."""
    bound = {f"wanted{place}": each for place, each in enumerate(area.prefixes)}
    ignored = {f"ignored{place}": each for place, each in enumerate(area.ignored)}
    wanted = " OR ".join(f"starts_with({key}, :{name})" for name in bound) or "TRUE"
    left_out = " OR ".join(f"starts_with({key}, :{name})" for name in ignored) or "FALSE"
    return Condition(f"(({wanted}) AND NOT ({left_out}))", bound | ignored)


_LISTED_SINCE: Final = """
    CASE
        WHEN cycle IS NULL THEN (
            SELECT max(started_at) FROM audit.bucket_syncs AS earlier
            WHERE earlier.id <= bucket_syncs.id AND earlier.full_listing
        )
        WHEN read_to IS NULL THEN (
            SELECT min(started_at) FROM audit.bucket_syncs AS earlier
            WHERE earlier.id <= bucket_syncs.id AND earlier.cycle = bucket_syncs.cycle
        )
        ELSE (
            SELECT min(started_at) FROM audit.bucket_syncs AS earlier
            WHERE earlier.id <= bucket_syncs.id
              AND earlier.cycle = bucket_syncs.cycle - 1
              AND (earlier.read_to IS NULL OR earlier.read_to COLLATE "C" > bucket_syncs.read_to)
        )
    END
"""
"""When that part of the bucket was read that had waited longest, as of a row of ``audit.bucket_syncs``."""

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


def _days(first: datetime, last: datetime) -> list[date]:
    start, end = first.astimezone(UTC).date(), last.astimezone(UTC).date()
    return [start + timedelta(days=number) for number in range((end - start).days + 1)]
