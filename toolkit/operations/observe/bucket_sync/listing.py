"""List the objects of a scope, several parts of the bucket side by side.

A page of a listing waits for the network most of the time, and the next one cannot be asked for before it is
there. So a full reading cuts the bucket into parts that hold about as many evidence records each, whatever
lies in them; otherwise each range is a part. Keys that no listing shows are asked for one by one.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import pairwise
from typing import Final

import sqlalchemy as sa

from toolkit.errors import ObjectDenied
from toolkit.operations.observe.bucket_sync.scope import Range, Scope, day_prefix
from toolkit.storage.bucket import Bucket, ObjectSeen
from toolkit.storage.database import Database
from toolkit.storage.tables import evidence_observations

LISTERS: Final = 8
"""Parts of the bucket that are listed at the same time."""

ASKERS: Final = 16
"""Keys that are asked for at the same time."""

_ASKED_AT_ONCE: Final = 1000

Page = list[ObjectSeen]


def pages_of(database: Database, bucket: Bucket, scope: Scope, denied: list[str]) -> Iterator[Page]:
    """Yield every object of the scope, in pages, in no particular order; memory holds a page for each part.

    One that lies in two ranges comes twice. A key about which the bucket refuses to answer goes into ``denied``:
    nobody knows whether there is an object.
    """
    ranges: Sequence[Range] = scope.ranges
    if scope.full:
        ranges = [Range(after or "", last) for after, last in pairwise(["", *_cuts(database), None])]
    yield from _side_by_side(_range(bucket, each) for each in ranges)
    yield from _one_by_one(bucket, scope.asked, denied)


def _cuts(database: Database) -> list[str]:
    """Return the keys at which to cut the bucket: at days, into parts of about as many evidence records each."""
    record = evidence_observations.c
    day = sa.cast(sa.func.timezone("UTC", record.requested_at), sa.Date)
    query = sa.select(day, sa.func.count()).where(record.gone_at.is_(None)).group_by(day).order_by(day)
    with database.transaction() as connection:
        days = connection.execute(query).all()
    cuts: list[str] = []
    total, before = sum(count for _, count in days), 0
    for requested_on, count in days:
        if before * LISTERS >= total * (len(cuts) + 1):
            cuts.append(day_prefix(requested_on))
        before += count
    return cuts


def _range(bucket: Bucket, wanted: Range) -> Iterator[Page]:
    for page in bucket.seen(wanted.prefix, after=wanted.after):
        if wanted.last is not None and page and page[-1].key > wanted.last:
            yield [item for item in page if item.key <= wanted.last]
            # With several prefixes the next one may begin before the end of the range.
            if len(bucket.area.prefixes) < 2:
                return
        else:
            yield page


def _one_by_one(bucket: Bucket, keys: Sequence[str], denied: list[str]) -> Iterator[Page]:
    def look(key: str) -> ObjectSeen | None:
        try:
            return bucket.head(key)
        except ObjectDenied:  # it may be there or not
            denied.append(key)
            return None

    with ThreadPoolExecutor(ASKERS, thread_name_prefix="asking") as threads:
        for start in range(0, len(keys), _ASKED_AT_ONCE):
            found = threads.map(look, keys[start : start + _ASKED_AT_ONCE])
            yield [item for item in found if item is not None]


def _side_by_side(parts: Iterable[Iterator[Page]]) -> Iterator[Page]:
    with ThreadPoolExecutor(LISTERS, thread_name_prefix="listing") as threads:
        turns: dict[Future[Page | None], Iterator[Page]] = {}
        for part in parts:
            turns[threads.submit(next, part, None)] = part
        while turns:
            for turn in wait(turns, return_when=FIRST_COMPLETED).done:
                part, page = turns.pop(turn), turn.result()
                if page is not None:
                    turns[threads.submit(next, part, None)] = part
                    yield page
