"""An inventory and a listing give the same observations, whatever happens in the bucket."""

import tempfile
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.conftest import _TEMPLATE, SettableClock, _fresh
from tests.support.fake_bucket import FIRST, MemoryBucket
from tests.support.s3_inventory import row_of, write_inventory
from tests.support.uploaded_sales import rows
from toolkit.audit.inventory import find_inventory
from toolkit.audit.observe_bucket import sync_bucket
from toolkit.bucket.client import list_objects
from toolkit.bucket.file_store import FolderStore

KEYS = ("notes/a.txt", "notes/b ç.txt", 'notes/c,".txt')
CONTENTS = (b"one", b"another", None)

_change = st.tuples(st.sampled_from(KEYS), st.sampled_from(CONTENTS))
"""A key and its new content, ``None`` to delete it."""


@settings(
    max_examples=4,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(nights=st.lists(st.lists(_change, max_size=6), min_size=2, max_size=4))
def test_an_inventory_and_a_listing_give_the_same_observations(server, nights):
    with ExitStack() as stack:
        one, two = (stack.enter_context(contextmanager(_fresh)(server, _TEMPLATE)) for _ in range(2))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        memory, clock = MemoryBucket(), SettableClock(FIRST)
        for night in nights:
            for key, content in night:
                clock.now += timedelta(seconds=1)
                if content is None:
                    memory.delete(key)
                else:
                    memory.put(key, content, clock.now)
            clock.now += timedelta(seconds=1)
            sync_bucket(one, memory, clock=clock)
            inventory = _delivered(folder, memory, clock)
            sync_bucket(two, memory, clock=clock, inventory=inventory, confirmed=True)
            assert _history(one) == _history(two)


def _delivered(folder, bucket, clock):
    listed = [row_of(seen) for page in list_objects(bucket, [""]) for seen in page]
    write_inventory(folder, bucket.name, listed, clock.now)
    return find_inventory(FolderStore(folder, "delivered"), None, folder)


def _history(database):
    return rows(
        database,
        "SELECT key, size, etag, last_modified, seen_at, gone_at, gone_how FROM audit.object_observations "
        "ORDER BY key, seen_at",
    )
