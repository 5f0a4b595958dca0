"""List the objects of a scope, several parts of the bucket side by side.

A page of a listing waits for the network most of the time, and the next one cannot be asked for before it is
there. So while fewer parts than ``LISTERS`` are listed, one that goes on for some pages is cut in two: in the
middle of all keys that there could be up to its end, or as near to it as keys are found. Nothing needs to be known
of the bucket, and one prefix may hold all of it. Keys that no listing shows are asked for one by one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from os.path import commonprefix
from typing import Final, Self, TypeVar

from toolkit.errors import ObjectDenied
from toolkit.operations.observe.bucket_sync.scope import Scope
from toolkit.storage.bucket import Bucket, ObjectSeen

LISTERS: Final = 8
"""Parts of the bucket that are listed at the same time."""

ASKERS: Final = 16
"""Keys that are asked for at the same time."""

ASKED_AT_ONCE: Final = 1000
"""Keys whose answers are held at a time."""

_LONG: Final = 4
"""The pages of a part before it is cut, and about as many as it must have left."""

_FIRST: Final = ord(" ")
_LAST: Final = ord("~")
"""The characters to cut at; a part whose keys differ in others only stays whole."""

Page = list[ObjectSeen]

K = TypeVar("K")
V = TypeVar("V")


def pages_of(bucket: Bucket, scope: Scope, denied: list[str]) -> Iterator[Page]:
    """Yield every object of the scope, in pages, in no particular order; memory holds a page for each part.

    One that lies in two ranges comes twice. A key about which the bucket refuses to answer goes into ``denied``:
    nobody knows whether there is an object.
    """
    yield from _side_by_side(
        Part(bucket, prefix, each.after, each.last)
        for each in scope.ranges
        for prefix in bucket.area.within(each.prefix)
    )
    yield from _one_by_one(bucket, scope.asked, denied)


class Part:
    """A range that is listed page by page, and whose rest may become a part of its own meanwhile."""

    def __init__(self, bucket: Bucket, prefix: str, after: str, last: str | None) -> None:
        self._bucket, self._prefix, self._after, self._last = bucket, prefix, after, last
        self._pages = bucket.seen(prefix, after=after)
        self._before = after
        self._read = 0
        self._whole = False

    @property
    def is_long(self) -> bool:
        """Tells whether the part went on for some pages since it was cut, and may be cut again."""
        return self._read >= _LONG and not self._whole

    def next(self) -> Page | None:
        """Return the next page, ``None`` at the end."""
        page, last = next(self._pages, None), self._last
        if not page:
            return page
        self._before, self._after, self._read = page[0].key, page[-1].key, self._read + 1
        if last is None or self._after <= last:
            return page
        self._pages = iter(())
        return [item for item in page if item.key <= last]

    def cut(self) -> Self | None:
        """Return the second half as a part of its own, with which this one ends; ``None`` where no key is found.

        Keys may come twice, where this part went on beyond the cut.
        """
        self._read = 0
        before, after, last = self._before, self._after, self._last
        width = len(commonprefix([before, after])) + 3  # noqa: RUF071  # of texts, not of paths
        low, high = _number(after, width), _number(last or self._end(after), width)
        least = _LONG * (low - _number(before, width))
        while high - low > max(least, 1):
            middle = (low + high) // 2
            key = _text(middle, width)
            if key > after and self._goes_on(key):
                self._last = key
                return type(self)(self._bucket, self._prefix, key, last)
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
        page, last = next(self._bucket.seen(self._prefix, after=key), []), self._last
        return bool(page) and (last is None or page[0].key <= last)


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
        yield [item for item in found if item is not None]


def _side_by_side(parts: Iterable[Part]) -> Iterator[Page]:
    with ThreadPoolExecutor(LISTERS, thread_name_prefix="listing") as threads:
        turns: dict[Future[Page | Part | None], Part] = {threads.submit(part.next): part for part in parts}
        cut: Future[Page | Part | None] | None = None
        while turns:
            for turn in wait(turns, return_when=FIRST_COMPLETED).done:
                part, found = turns.pop(turn), turn.result()
                cut = None if turn is cut else cut
                if isinstance(found, Part):
                    turns[threads.submit(found.next)] = found
                elif found is not None:
                    turns[threads.submit(part.next)] = part
                    yield found
            long = next((part for part in turns.values() if part.is_long), None)
            if cut is None and long is not None and len(turns) < LISTERS:
                cut = threads.submit(long.cut)
                turns[cut] = long
