"""List the objects of a scope, several folders of the bucket side by side.

A page of a listing waits for the network most of the time, and the next one cannot be asked for before it is
there. So a part that has more than one page is listed folder by folder, and the folders at the same time. Keys
that no listing shows are asked for one by one.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Final, TypeVar

from toolkit.audit.bucket_scope import Scope
from toolkit.bucket.client import Asked, Bucket, ObjectSeen, Page
from toolkit.errors import ObjectDenied

ASKERS: Final = 16
"""Keys that are asked for, or pages that are read, at the same time."""

ASKED_AT_ONCE: Final = 1000
"""Keys whose answers are held at a time."""

K = TypeVar("K")
V = TypeVar("V")


def pages_of(bucket: Bucket, scope: Scope, denied: list[str]) -> Generator[Page]:
    """Yield every object of the scope, in pages, in no particular order; memory holds a page for each part.

    One that lies in two ranges comes twice. A key about which the bucket refuses to answer goes into ``denied``:
    nobody knows whether there is an object.
    """
    parts = [
        Part(Asked(prefix, each.after, each.last))
        for each in scope.ranges
        for prefix in bucket.area.within(each.prefix)
    ]
    yield from side_by_side(bucket, parts)
    yield from _one_by_one(bucket, scope.asked, denied)


@dataclass(frozen=True, slots=True)
class Part:
    """The next page of a range of keys; ``is_whole`` tells that it cannot be listed folder by folder."""

    asked: Asked
    is_whole: bool = False

    def read(self, bucket: Bucket) -> tuple[Page, list["Part"]]:
        """Return the page and the parts that follow it."""
        page = bucket.page(self.asked)
        if page.token is None:
            return page, []
        rest = self.asked._replace(token=page.token)
        if self.is_whole or self.asked.token:
            return page, [Part(rest, self.is_whole)]
        # A token cannot be given for a folder, so the keys of this page may come again.
        level = bucket.level(self.asked)
        if level is None or not level[1]:
            return page, [Part(rest, is_whole=True)]
        return level[0], [Part(self.asked._replace(prefix=folder)) for folder in level[1]]


def side_by_side(bucket: Bucket, parts: Iterable[Part]) -> Iterator[Page]:
    """Yield the pages of the parts, and of those that follow them."""
    waiting, turns = list(parts), set[Future[tuple[Page, list[Part]]]]()
    with ThreadPoolExecutor(ASKERS, thread_name_prefix="listing") as threads:
        while waiting or turns:
            while waiting and len(turns) < ASKERS:
                turns.add(threads.submit(waiting.pop().read, bucket))
            done, turns = wait(turns, return_when=FIRST_COMPLETED)
            for each in done:
                page, following = each.result()
                waiting += following
                yield page


def ask_each(look: Callable[[K], V], batches: Iterable[Sequence[K]]) -> Iterator[list[V]]:
    """Yield the answers to each batch, in its order; some of them are asked for at the same time."""
    with ThreadPoolExecutor(ASKERS, thread_name_prefix="asking") as threads:
        for batch in batches:
            yield list(threads.map(look, batch))


def _one_by_one(bucket: Bucket, keys: Sequence[str], denied: list[str]) -> Iterator[Page]:
    def look(key: str) -> ObjectSeen | None:
        try:
            return bucket.head(key)
        except ObjectDenied:  # it may be there or not
            denied.append(key)
            return None

    batches = (keys[start : start + ASKED_AT_ONCE] for start in range(0, len(keys), ASKED_AT_ONCE))
    for found in ask_each(look, batches):
        yield Page.of([item.row for item in found if item is not None])
