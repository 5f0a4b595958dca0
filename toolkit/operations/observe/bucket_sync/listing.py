"""The keys of a scope, several parts of the bucket side by side.

A page of a listing waits for the network most of the time, and the next one cannot be asked for before it is
there. So a full reading cuts the bucket into parts that hold about as many evidence records each, whatever
lies in them; one that is not full takes a day as a part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import pairwise
from typing import Final

import sqlalchemy as sa

from toolkit.operations.observe.bucket_sync.scope import Scope, day_prefix
from toolkit.storage.bucket import Bucket, ObjectSeen
from toolkit.storage.database import Database
from toolkit.storage.tables import evidences

LISTERS: Final = 8
"""Parts of the bucket that are listed at the same time."""

Page = list[ObjectSeen]


def listed_pages(database: Database, bucket: Bucket, scope: Scope) -> Iterator[Page]:
    """Every object of the scope once, in pages, in no particular order; memory holds a page for each part."""
    if scope.days is not None:
        return _side_by_side(bucket.seen(day) for day in scope.days)
    cuts = ["", *_cuts(database), None]
    return _side_by_side(_part(bucket, after, last) for after, last in pairwise(cuts))


def _cuts(database: Database) -> list[str]:
    """The days at which the bucket is cut, so that the parts hold about as many evidence records each."""
    day = sa.cast(sa.func.timezone("UTC", evidences.c.requested_at), sa.Date)
    with database.transaction() as connection:
        days = connection.execute(sa.select(day, sa.func.count()).group_by(day).order_by(day)).all()
    cuts: list[str] = []
    total, before = sum(count for _, count in days), 0
    for requested_on, count in days:
        if before * LISTERS >= total * (len(cuts) + 1):
            cuts.append(day_prefix(requested_on))
        before += count
    return cuts


def _part(bucket: Bucket, after: str | None, last: str | None) -> Iterator[Page]:
    """The objects whose keys sort after ``after``, up to and including ``last`` (``None``: to the end)."""
    for page in bucket.seen(after=after or ""):
        if last is not None and page and page[-1].key > last:
            yield [item for item in page if item.key <= last]
            return
        yield page


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
