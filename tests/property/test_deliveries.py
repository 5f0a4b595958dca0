"""An inventory and a listing give the same observations, whatever happens in the bucket."""

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
from tests.support.fake_bucket import FIRST, MemoryBucket
from tests.support.s3_inventory import row_of, write_inventory
from tests.support.uploaded_sales import rows
from toolkit.audit.inventory import find_inventory
from toolkit.audit.observe_bucket import sync_bucket
from toolkit.audit.take_over_inventory import take_over
from toolkit.bucket.client import Bucket
from toolkit.bucket.file_store import FolderStore
from toolkit.database.connection import Database
from toolkit.database.observations import Tolerance

KEYS = ("notes/a.txt", "notes/b ç.txt", 'notes/c,".txt')
CONTENTS = (b"one", b"another")

Change = tuple[str, int, int]


@dataclass
class Recorded:
    """A bucket in which a second passes with each change."""

    bucket: MemoryBucket = field(default_factory=MemoryBucket)
    steps: int = 0

    @property
    def now(self) -> datetime:
        return FIRST + timedelta(seconds=self.steps)

    def change(self, change: Change) -> None:
        kind, number, content = change
        key = KEYS[number]
        self.steps += 1
        if kind == "put":
            self.bucket.put(key, CONTENTS[content])
            self.bucket._written[key] = self.steps
        else:
            self.bucket.delete(key)


_change = st.tuples(st.sampled_from(["put", "put", "delete"]), st.integers(0, 2), st.integers(0, 1))


@settings(
    max_examples=4,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(nights=st.lists(st.lists(_change, max_size=6), min_size=2, max_size=4))
def test_an_inventory_and_a_listing_give_the_same_observations(
    server: Any, nights: Sequence[Sequence[Change]]
) -> None:
    with ExitStack() as stack:
        one, two = (stack.enter_context(contextmanager(_fresh)(server, _TEMPLATE)) for _ in range(2))
        world = Recorded()
        clock = SettableClock(FIRST)
        bucket = cast("Bucket", world.bucket)
        for night in nights:
            for change in night:
                world.change(change)
            world.steps += 1
            clock.now = world.now
            sync_bucket(one, bucket, clock=clock)
            _taken(two, bucket, clock)
            assert _state(one) == _state(two)
            assert _history(one) == _history(two)


def _taken(database: Database, bucket: Bucket, clock: SettableClock) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        listed = [row_of(seen) for page in bucket.seen() for seen in page]
        write_inventory(place / "delivered", bucket.name, listed, clock.now)
        delivery = find_inventory(FolderStore(place / "delivered", "delivered"), None, place)
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
