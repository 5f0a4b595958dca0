"""Work in a thread beside the one that judges: read ahead of it, and write behind it."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, Self, TypeVar

T = TypeVar("T")

_AT_ONCE: Final = 2
"""Pieces of work that are begun or wait; each may hold some fifteen megabytes."""


class Behind:
    """Does pieces of work one after the other; what one raises is raised by a later call."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._pending: deque[Future[None]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def do(self, work: Callable[..., None], *arguments: object) -> None:
        """Do this after all before it; waits while enough is waiting."""
        self._wait(_AT_ONCE - 1)
        self._pending.append(self._thread.submit(work, *arguments))

    def finish(self) -> None:
        """Wait until all is done."""
        self._wait(0)

    def close(self) -> None:
        """Wait for the piece at work, and drop those that wait."""
        self._thread.shutdown(cancel_futures=True)

    def _wait(self, left: int) -> None:
        while len(self._pending) > left:
            self._pending.popleft().result()


@contextmanager
def prefetch(items: Iterable[T]) -> Iterator[Iterator[T]]:
    """Make each item while the one before it is used; an exception is raised at the item that it belongs to."""
    with ThreadPoolExecutor(1, thread_name_prefix="reading") as thread:
        yield _ahead(thread, iter(items))


def _ahead(thread: ThreadPoolExecutor, items: Iterator[T]) -> Iterator[T]:
    made = thread.submit(next, items, None)
    while (item := made.result()) is not None:
        made = thread.submit(next, items, None)
        yield item
