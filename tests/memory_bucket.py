"""Buckets in memory, for tests of their readings: what a reading of a bucket asks for, and no more."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import md5
from random import Random

from toolkit.domain.contents import GoneHow
from toolkit.errors import BucketUnavailable
from toolkit.storage.bucket import Area, Asked, ObjectSeen, Page

FIRST = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class MemoryBucket:
    area = Area()
    name: str = "memory"
    address: str = "memory"
    contents: dict[str, bytes] = field(default_factory=dict)
    _written: dict[str, int] = field(default_factory=dict)
    _writes: int = 0

    def put(self, key: str, content: bytes) -> None:
        self._writes += 1
        self.contents[key], self._written[key] = content, self._writes

    def delete(self, key: str) -> None:
        self.contents.pop(key, None)

    def seen(self) -> Iterator[Page]:
        yield self.page(Asked(""))

    def page(self, asked: Asked) -> Page:
        return _page(asked, sorted(self.contents), self._seen, 1000)

    def head(self, key: str) -> ObjectSeen | None:
        return self._seen(key) if key in self.contents else None

    def keeps_versions(self) -> bool:
        return False

    def how_gone(self, key: str) -> GoneHow | None:
        return None if key in self.contents else GoneHow.DELETED

    def read(self, key: str, start: int, length: int) -> bytes:
        return self.contents[key][start : start + length]

    def _seen(self, key: str) -> ObjectSeen:
        content = self.contents[key]
        etag = md5(content, usedforsecurity=False).hexdigest()
        return ObjectSeen(key, len(content), etag, FIRST + timedelta(seconds=self._written[key]))


@dataclass
class SeededBucket:
    """A bucket that holds under each number the keys that the number stands for, in any process."""

    area = Area()

    def keys(self, number: int) -> list[str]:
        """The keys under ``number/``, in their order."""
        drawn = Random(number)
        letters = drawn.choice(("ab", "a/~", "0123456789abcdef", "aé\ue000😀", "a\\\t\n\r% +&"))
        return sorted({f"{number}/{''.join(drawn.choices(letters, k=drawn.randrange(9)))}" for _ in range(90)})

    def page(self, asked: Asked) -> Page:
        number = int(asked.prefix.partition("/")[0])
        return _page(asked, self.keys(number), lambda key: ObjectSeen(key, 1, "", FIRST), 1 + number % 5)


@dataclass
class ForsakenBucket:
    """A bucket whose listing never ends, until another process reads it: that one is killed, or finds it away."""

    killed: bool
    area = Area()
    name: str = "forsaken"
    address: str = "forsaken"
    process: int = field(default_factory=os.getpid)

    def page(self, asked: Asked) -> Page:
        if os.getpid() == self.process:
            return Page.of([ObjectSeen("a", 1, "", FIRST).row], "next")
        if self.killed:
            os.kill(os.getpid(), signal.SIGKILL)
        raise BucketUnavailable("The bucket is away.")


def _page(asked: Asked, keys: list[str], seen: Callable[[str], ObjectSeen], most: int) -> Page:
    end = "\U0010ffff" if asked.last is None else asked.last
    begin = asked.token or asked.after
    wanted = [key for key in keys if key.startswith(asked.prefix) and begin < key <= end]
    found = wanted[: asked.most or most]
    return Page.of([seen(key).row for key in found], found[-1] if found != wanted else None)
