"""Read pages of a listing in several processes, as each decodes them on one core.

A process is told everything through its connections, the credentials too, and reads a page at a time for each of
them. It ends as soon as the first one is closed, also where a kill closes it.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, Pipe
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, Self

from toolkit.errors import BucketError, BucketUnavailable
from toolkit.storage.bucket import Asked, Bucket, Page

AT_ONCE: Final = 8
"""Pages that one process reads at the same time, most of which is waiting for the network."""

PROCESSES: Final = min(max(2, os.cpu_count() or 1), 8)
"""Processes that read beside this one."""

MOST: Final = PROCESSES * AT_ONCE
"""Pages that all of them read at the same time."""


class PageReaders:
    """Reads pages: in this process, and in others once they are started and ready; safe between threads."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._processes: list[subprocess.Popen[bytes]] = []
        self._starting: list[list[Connection]] = []
        self._free: SimpleQueue[Connection] = SimpleQueue()
        self.at_once = AT_ONCE

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def read(self, asked: Asked) -> Page:
        """Return the page that is asked for.

        Raises:
            BucketUnavailable: the bucket does not answer, or a process ended.
        """
        try:
            connection = self._free.get_nowait()
        except Empty:
            return self._bucket.page(asked)
        answer: Page = _ask(connection, asked)
        self._free.put(connection)
        return answer

    def start(self) -> None:
        """Start the processes; Ctrl-C is for this one, which then ends them."""
        folders = os.pathsep.join(filter(None, sys.path))
        options: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        options |= {"env": {**os.environ, "PYTHONPATH": folders}, "process_group": 0}
        with _told():
            for _ in range(PROCESSES):
                ours, theirs = zip(*(Pipe() for _ in range(1 + AT_ONCE)), strict=True)
                numbers = [each.fileno() for each in theirs]
                command = [sys.executable, "-P", "-m", __name__, *map(str, numbers)]
                self._processes.append(subprocess.Popen(command, pass_fds=numbers, **options))  # noqa: S603  # ours
                self._starting.append(list(ours))
                for each in theirs:
                    each.close()

    def wait(self) -> None:
        """Wait until each process is ready, and have it read from then on."""
        for number, (first, *others) in enumerate(self._starting, start=1):
            _ask(first, self._bucket)
            for each in others:
                self._free.put(each)
            self.at_once = number * AT_ONCE


def _ask(connection: Connection, question: object) -> Any:
    with _told():
        connection.send(question)
        answer = connection.recv()
    if isinstance(answer, BucketError):
        raise answer
    return answer


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError):
        raise BucketUnavailable(
            "A process that lists the bucket did not start, or ended before its work was done, perhaps because "
            "memory was short. Run it again."
        ) from None


def _serve(bucket: Bucket, connection: Connection) -> None:
    try:
        while True:
            asked = connection.recv()
            try:
                connection.send(bucket.page(asked))
            except BucketError as error:
                connection.send(error)
    finally:
        os._exit(1)  # whoever waits for an answer learns that none will come


def _main(numbers: list[str]) -> None:
    first, *others = [Connection(int(number)) for number in numbers]
    bucket = first.recv()
    for each in others:
        Thread(target=_serve, args=(bucket, each), daemon=True).start()
    first.send(None)
    first.recv()  # until it is closed


if __name__ == "__main__":
    _main(sys.argv[1:])
