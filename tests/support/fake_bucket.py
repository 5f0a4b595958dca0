"""Buckets in memory, for tests of their readings: what a reading of a bucket asks for, and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import md5
from random import Random

from toolkit.bucket.client import Area, Asked, ObjectSeen, Page
from toolkit.contract.contents import GoneHow

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

    def level(self, asked: Asked) -> None:
        """Tell that no page holds the folders."""

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
    """A bucket that holds under each number the keys that the number stands for."""

    area = Area()

    def keys(self, number: int) -> list[str]:
        """The keys under ``number/``, in their order."""
        drawn = Random(number)
        letters = drawn.choice(("ab", "a/~", "a/b/c/", "0123456789abcdef", "aé\ue000😀", "a\\\t\n\r% +&"))
        return sorted({f"{number}/{''.join(drawn.choices(letters, k=drawn.randrange(9)))}" for _ in range(90)})

    def page(self, asked: Asked) -> Page:
        number = int(asked.prefix.partition("/")[0])
        return _page(asked, self.keys(number), _object, 1 + number % 5)

    def level(self, asked: Asked) -> tuple[Page, list[str]] | None:
        keys = self.keys(int(asked.prefix.partition("/")[0]))
        below = [
            (key, *key.removeprefix(asked.prefix).partition("/")) for key in keys if key.startswith(asked.prefix)
        ]
        folders = {f"{asked.prefix}{name}/" for _, name, slash, _ in below if slash}
        right = [key for key, _, slash, _ in below if not slash]
        return _page(asked, right, _object, 100), sorted(folders)


def _object(key: str) -> ObjectSeen:
    return ObjectSeen(key, 1, "", FIRST)


def _page(asked: Asked, keys: list[str], seen: Callable[[str], ObjectSeen], most: int) -> Page:
    end = "\U0010ffff" if asked.last is None else asked.last
    begin = asked.token or asked.after
    wanted = [key for key in keys if key.startswith(asked.prefix) and begin < key <= end]
    found = wanted[:most]
    return Page.of([seen(key).row for key in found], found[-1] if found != wanted else None)
