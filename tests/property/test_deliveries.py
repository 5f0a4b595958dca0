"""A journal replayed, an inventory and a listing give the same observations, whatever happens in the bucket."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.conftest import _TEMPLATE, SettableClock, _fresh
from tests.deliveries import row_of, write_inventory, write_journal
from tests.integration.uploaded_sales import rows
from tests.memory_bucket import FIRST, MemoryBucket
from toolkit.operations.observe.bucket_sync import sync_bucket
from toolkit.operations.observe.delivered import find_inventory, find_journal, take_over
from toolkit.operations.observe.disappearance import Tolerance
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database
from toolkit.storage.file_store import FolderStore

KEYS = ("notes/a.txt", "notes/b ç.txt", 'notes/c,".txt')
CONTENTS = (b"one", b"another")

Change = tuple[str, int, int]


@dataclass
class Recorded:
    """A bucket with a journal; where it keeps versions, a deletion may be that of any version."""

    versions: bool
    bucket: MemoryBucket = field(default_factory=MemoryBucket)
    journal: list[dict[str, Any]] = field(default_factory=list)
    steps: int = 0

    @property
    def now(self) -> datetime:
        return FIRST + timedelta(seconds=self.steps)

    def change(self, change: Change) -> None:
        kind, number, content = change
        key = KEYS[number]
        self.steps += 1
        values: dict[str, Any] = {}
        if kind == "put":
            self.bucket.put(key, CONTENTS[content])
            self.bucket._written[key] = self.steps
            item = self.bucket._seen(key)
            values = {"size": item.size, "e_tag": item.etag, "last_modified_date": item.last_modified}
        elif kind == "delete":
            self.bucket.delete(key)
        self.journal.append(
            {
                "key": key,
                "sequence_number": f"{self.steps:08x}",
                "record_type": {"put": "CREATE", "delete": "DELETE", "tag": "UPDATE_METADATA"}[kind],
                "record_timestamp": self.now,
                "is_delete_marker": self.versions and kind == "delete",
                "version_id": f"v{self.steps}" if self.versions else None,
                **values,
            }
        )


_change = st.tuples(st.sampled_from(["put", "put", "delete", "tag"]), st.integers(0, 2), st.integers(0, 1))


@settings(
    max_examples=4,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(nights=st.lists(st.lists(_change, max_size=6), min_size=2, max_size=4), versions=st.booleans())
def test_a_journal_an_inventory_and_a_listing_give_the_same_observations(
    server: Any, nights: Sequence[Sequence[Change]], versions: bool
) -> None:
    with ExitStack() as stack:
        one, two, three = (stack.enter_context(contextmanager(_fresh)(server, _TEMPLATE)) for _ in range(3))
        world = Recorded(versions)
        clock = SettableClock(FIRST)
        bucket = cast("Bucket", world.bucket)
        sync_bucket(two, bucket, clock=clock)  # a journal begins where the bucket is known
        for night in nights:
            for change in night:
                world.change(change)
            world.steps += 1
            clock.now = world.now
            sync_bucket(one, bucket, clock=clock)
            _taken(two, bucket, clock, world.journal)
            _taken(three, bucket, clock, None)
            assert _state(one) == _state(two) == _state(three)
            assert _history(one) == _history(two) == _history(three)


def _taken(database: Database, bucket: Bucket, clock: SettableClock, journal: list[dict[str, Any]] | None) -> None:
    if journal == []:
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        store = FolderStore(place / "delivered", "delivered")
        delivery: Any
        if journal is not None:
            write_journal(place / "delivered", bucket.name, journal)
            delivery = find_journal(store, place)
        else:
            listed = [row_of(seen) for page in bucket.seen() for seen in page]
            write_inventory(place / "delivered", bucket.name, listed, clock.now)
            delivery = find_inventory(store, None, place)
        take_over(database, bucket, delivery, place, clock=clock, tolerance=Tolerance(confirmed=True))


def _state(database: Database) -> Any:
    return rows(
        database,
        "SELECT key, size, etag, last_modified FROM audit.object_observations WHERE gone_at IS NULL ORDER BY key",
    )


def _history(database: Database) -> Any:
    return rows(
        database,
        "SELECT key, size, etag, last_modified, seen_at, gone_at, gone_how FROM audit.object_observations "
        "ORDER BY key, seen_at",
    )
