"""List the objects of a scope, several parts of the bucket side by side.

A page of a listing waits for the network most of the time, and the next one cannot be asked for before it is
there. So parts are listed at the same time, and while there may be more of them, each that goes on for some pages
is cut in two: in the middle of all keys that there could be up to its end, or as near to it as keys are found.
Nothing needs to be known of the bucket, and one prefix may hold all of it. Once ``LONG_LISTING`` pages were read,
several processes read the rest: this one only says where, and passes on the rows. Keys that no listing shows are
asked for one by one.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from os.path import commonprefix
from typing import Any, Final, Self, TypeVar

from toolkit.errors import ObjectDenied
from toolkit.operations.observe.bucket_sync.scope import Scope
from toolkit.storage.bucket import Asked, Bucket, ObjectSeen, Page
from toolkit.storage.listing_processes import MOST, PageReaders

ASKERS: Final = 16
"""Keys that are asked for at the same time."""

ASKED_AT_ONCE: Final = 1000
"""Keys whose answers are held at a time."""

LONG_LISTING: Final = 500
"""The pages of a listing before other processes read it, each of which takes half a second to start."""

_LONG_PART: Final = 4
"""The pages of a part before it is cut, and about as many as it must have left."""

_FIRST: Final = ord(" ")
_LAST: Final = ord("~")
"""The characters to cut at; a part whose keys differ in others only stays whole."""

K = TypeVar("K")
V = TypeVar("V")


def pages_of(bucket: Bucket, scope: Scope, denied: list[str]) -> Generator[Page]:
    """Yield every object of the scope, in pages, in no particular order; memory holds a page for each part.

    One that lies in two ranges comes twice. A key about which the bucket refuses to answer goes into ``denied``:
    nobody knows whether there is an object.
    """
    with ThreadPoolExecutor(MOST, thread_name_prefix="listing") as threads, PageReaders(bucket) as readers:
        parts = [
            Part(readers.read, prefix, each.after, each.last)
            for each in scope.ranges
            for prefix in bucket.area.within(each.prefix)
        ]
        yield from side_by_side(threads, readers, parts)
    yield from _one_by_one(bucket, scope.asked, denied)


class Part:
    """A range that is listed page by page, and whose rest may become a part of its own meanwhile."""

    def __init__(self, read: Callable[[Asked], Page], prefix: str, after: str, last: str | None) -> None:
        self._read, self._prefix, self._start, self._last = read, prefix, after, last
        self._before = self._after = after
        self._token: str | None = ""
        self._pages = 0
        self._whole = False

    @property
    def goes_on(self) -> bool:
        """Tells whether there may be a next page."""
        return self._token is not None and (self._last is None or self._after < self._last)

    @property
    def is_long(self) -> bool:
        """Tells whether the part went on for some pages since it was cut, and may be cut again."""
        return self._pages >= _LONG_PART and not self._whole

    def next(self) -> Page:
        """Return the next page."""
        page = self._read(Asked(self._prefix, self._start, self._last, self._token or ""))
        if page.objects:
            self._before, self._after = page.first, page.last
        self._token, self._pages = page.token, self._pages + 1
        return page

    def cut(self) -> Self | None:
        """Return the second half as a part of its own, with which this one ends; ``None`` where no key is found.

        Keys of a page may come twice, where this part goes on beyond the cut meanwhile.
        """
        self._pages = 0
        before, after, last = self._before, self._after, self._last
        end = self._end(after)
        width = len(commonprefix([before, after])) + 3  # noqa: RUF071  # of texts, not of paths
        low, high = _number(after, width), _number(min(last or end, end), width)
        least = _LONG_PART * (low - _number(before, width))
        while high - low > max(least, 1):
            middle = (low + high) // 2
            key = _text(middle, width)
            if key > after and self._goes_on(key):
                self._last = key
                if self._token is None and self._after > key:  # it came to its end meanwhile
                    return None
                return type(self)(self._read, self._prefix, max(key, self._after), last)
            high = middle
        self._whole = True
        return None

    def _end(self, key: str) -> str:
        """Return a text after all keys of the part, which begins as much like ``key`` as one can."""
        beyond, within = 0, len(key)
        while within - beyond > 1:
            length = (beyond + within) // 2
            if self._goes_on(key[:length] + chr(_LAST)):
                within = length
            else:
                beyond = length
        return key[:beyond] + chr(_LAST)

    def _goes_on(self, key: str) -> bool:
        return self._read(Asked(self._prefix, key, self._last, most=1)).objects > 0


def _number(text: str, width: int) -> int:
    """Return the place of the first characters of a text in the order of all texts."""
    return int.from_bytes(min(ord(character), _LAST) for character in text[:width].ljust(width))


def _text(number: int, width: int) -> str:
    return "".join(chr(min(max(byte, _FIRST), _LAST)) for byte in number.to_bytes(width))


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


def side_by_side(threads: ThreadPoolExecutor, readers: PageReaders, parts: Iterable[Part]) -> Iterator[Page]:
    """Yield the pages of the parts, and of those that they are cut into."""
    waiting, pages = list(parts), 0
    turns: dict[Future[Any], Part] = {}
    beside: dict[Future[Any], Part | None] = {}
    while waiting or turns or beside:
        while waiting and len(turns) + len(beside) < readers.at_once:
            part = waiting.pop()
            turns[threads.submit(part.next)] = part
        for part in turns.values():
            if part.is_long and part not in beside.values() and len(turns) + len(beside) < readers.at_once:
                beside[threads.submit(part.cut)] = part
        for ready in wait((*turns, *beside), return_when=FIRST_COMPLETED).done:
            if ready in beside:
                del beside[ready]
                if (rest := ready.result()) is not None:
                    waiting.append(rest)
                continue
            part, page, pages = turns.pop(ready), ready.result(), pages + 1
            if part.goes_on:
                turns[threads.submit(part.next)] = part
            yield page
            if pages == LONG_LISTING:
                readers.start()
                beside[threads.submit(readers.wait)] = None
