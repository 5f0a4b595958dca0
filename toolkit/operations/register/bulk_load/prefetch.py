"""Run a generator ahead of its consumer, in a thread of its own."""

import queue
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_AHEAD: Final = 1


@dataclass(frozen=True, slots=True)
class _Made(Generic[T]):
    item: T


@dataclass(frozen=True, slots=True)
class _Ended:
    failure: BaseException | None


@contextmanager
def prefetch(items: Iterable[T]) -> Iterator[Iterator[T]]:
    """Make the items ahead, while earlier ones are used; an exception is raised at the item that it belongs to.

    The thread is gone when the block is left, however it is left.
    """
    made: queue.Queue[_Made[T] | _Ended] = queue.Queue(_AHEAD)
    given_up = threading.Event()

    def make() -> None:
        failure: BaseException | None = None
        try:
            for item in items:
                made.put(_Made(item))
                if given_up.is_set():
                    return
        except BaseException as error:  # raised again where the items are used
            failure = error
        made.put(_Ended(failure))

    thread = threading.Thread(target=make, name="reading", daemon=True)
    thread.start()
    try:
        yield _used(made)
    finally:
        given_up.set()
        while thread.is_alive():
            try:
                made.get(timeout=0.05)
            except queue.Empty:
                continue


def _used(made: queue.Queue[_Made[T] | _Ended]) -> Iterator[T]:
    while isinstance(next_one := made.get(), _Made):
        yield next_one.item
    if next_one.failure is not None:
        raise next_one.failure
