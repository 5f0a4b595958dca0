"""A bucket in memory, for tests that make many changes to it: what a reading of a bucket asks for, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import md5

from toolkit.domain.contents import GoneHow
from toolkit.storage.bucket import Area, ObjectSeen

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

    def seen(self, prefix: str = "", *, after: str = "") -> Iterator[list[ObjectSeen]]:
        yield [self._seen(key) for key in sorted(self.contents) if key.startswith(prefix) and key > after]

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
