"""Buckets in memory, for tests of their readings: what a reading of a bucket asks for, and no more."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import md5
from random import Random

from toolkit.bucket.client import Area, ObjectSeen, Page

FIRST = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class MemoryBucket:
    """Each object is written a second after the one before, or when a test says so."""

    area = Area()
    name: str = "memory"
    address: str = "memory"
    contents: dict[str, bytes] = field(default_factory=dict)
    _written: dict[str, datetime] = field(default_factory=dict)
    _writes: int = 0

    def put(self, key, content, written=None):
        self._writes += 1
        self.contents[key] = content
        self._written[key] = written or FIRST + timedelta(seconds=self._writes)

    def delete(self, key):
        self.contents.pop(key, None)

    def page(self, prefix, token="", *, level=False):
        return Page([self._seen(key) for key in sorted(self.contents) if key.startswith(prefix)])

    def head(self, key):
        return self._seen(key) if key in self.contents else None

    def keeps_versions(self):
        return False

    def read(self, key, start, length):
        return self.contents[key][start : start + length]

    def _seen(self, key):
        content = self.contents[key]
        etag = md5(content, usedforsecurity=False).hexdigest()
        return ObjectSeen(key, len(content), etag, self._written[key])


@dataclass
class SeededBucket:
    """A bucket that holds under each number the keys that the number stands for."""

    area = Area()

    def keys(self, number):
        """The keys under ``number/``, in their order."""
        drawn = Random(number)
        letters = drawn.choice(("ab", "a/~", "a/b/c/", "0123456789abcdef", "aé\ue000😀", "a\\\t\n\r% +&"))
        return sorted({f"{number}/{''.join(drawn.choices(letters, k=drawn.randrange(9)))}" for _ in range(90)})

    def page(self, prefix, token="", *, level=False):
        number = int(prefix.partition("/")[0])
        keys = [key for key in self.keys(number) if key.startswith(prefix)]
        if level:
            below = [(key, *key.removeprefix(prefix).partition("/")) for key in keys]
            folders = {f"{prefix}{name}/" for _, name, slash, _ in below if slash}
            return Page([_object(key) for key, _, slash, _ in below if not slash], None, sorted(folders))
        wanted = [key for key in keys if key > token]
        found = wanted[: 1 + number % 5]
        return Page(list(map(_object, found)), found[-1] if found != wanted else None)


def _object(key):
    return ObjectSeen(key, 1, "", FIRST)
