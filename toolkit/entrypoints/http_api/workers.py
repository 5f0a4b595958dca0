"""Run the operations, which are synchronous, in as many threads as the pool has connections."""

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Busy(Exception):
    """The operation did not end in time, or too many callers are waiting already."""


class Workers:
    """Runs jobs in ``threads`` threads and keeps at most ``waiting`` more in line.

    A job that is still in line when its ``seconds`` are over never runs. One that has begun is left to its
    end: a database that hangs holds these threads and no others, and does not keep the process from ending.
    """

    def __init__(self, name: str, *, threads: int, waiting: int, seconds: float) -> None:
        self._seconds = seconds
        self._room = threading.Semaphore(threads + waiting)
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
        for number in range(threads):
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True).start()

    async def run(self, job: Callable[[], T]) -> T:
        """Run ``job`` in a thread; return its result or raise its error.

        Raises:
            Busy: the job did not run, or did not end in time.
        """
        if not self._room.acquire(blocking=False):
            raise Busy
        future: Future[T] = Future()
        self._jobs.put((future, job))
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise Busy from None

    def _work(self) -> None:
        while True:
            future, job = self._jobs.get()
            if future.set_running_or_notify_cancel():
                _settle(future, job)
            del future, job  # an idle thread keeps no request alive
            self._room.release()


def _settle(future: Future[T], job: Callable[[], T]) -> None:
    try:
        future.set_result(job())
    except BaseException as error:
        future.set_exception(error)
