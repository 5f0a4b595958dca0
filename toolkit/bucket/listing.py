"""List the objects of a bucket, several folders side by side.

A page of a listing waits for the network most of the time, and the next one cannot be asked for before it is
there. So a part that has more than one page is listed folder by folder, and the folders at the same time.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Final, NamedTuple, TypeVar

from toolkit.bucket.client import Bucket, ObjectSeen

ASKERS: Final = 16
"""Keys that are asked for, or pages that are read, at the same time."""

ASKED_AT_ONCE: Final = 1000
"""Keys whose answers are held at a time."""

K = TypeVar("K")
V = TypeVar("V")


class _Part(NamedTuple):
    """The next page of the keys with a prefix; ``is_whole`` tells that it cannot be listed folder by folder."""

    prefix: str
    token: str = ""
    is_whole: bool = False


def list_objects(bucket: Bucket, prefixes: Iterable[str]) -> Generator[list[ObjectSeen]]:
    """Yield every object of the bucket's area with one of the prefixes, in pages, in no particular order.

    Memory holds a page for each thread. An object that several prefixes have comes several times.
    """
    waiting = [_Part(each) for prefix in prefixes for each in bucket.area.within(prefix)]
    turns = set[Future[tuple[list[ObjectSeen], list[_Part]]]]()
    with ThreadPoolExecutor(ASKERS, thread_name_prefix="listing") as threads:
        while waiting or turns:
            while waiting and len(turns) < ASKERS:
                turns.add(threads.submit(_read, bucket, waiting.pop()))
            done, turns = wait(turns, return_when=FIRST_COMPLETED)
            for each in done:
                objects, following = each.result()
                waiting += following
                yield objects


def _read(bucket: Bucket, part: _Part) -> tuple[list[ObjectSeen], list[_Part]]:
    """Return the page and the parts that follow it."""
    page = bucket.page(part.prefix, part.token)
    if page.token is None:
        return page.objects, []
    if part.is_whole or part.token:
        return page.objects, [part._replace(token=page.token)]
    # A token cannot be given for a folder, so the keys of this page may come again.
    level = bucket.page(part.prefix, level=True)
    if level.token is not None or not level.folders:
        return page.objects, [_Part(part.prefix, page.token, is_whole=True)]
    return level.objects, [_Part(folder) for folder in level.folders]


def ask_each(look: Callable[[K], V], batches: Iterable[Sequence[K]]) -> Iterator[list[V]]:
    """Yield the answers to each batch, in its order; some of them are asked for at the same time."""
    with ThreadPoolExecutor(ASKERS, thread_name_prefix="asking") as threads:
        for batch in batches:
            yield list(threads.map(look, batch))
