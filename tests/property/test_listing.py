"""A listing shows the same keys, by parts in any number of processes as by one page after another."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import cast
from unittest.mock import patch
from urllib.parse import quote, unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory_bucket import SeededBucket
from toolkit.operations.observe.bucket_sync.listing import Part, side_by_side
from toolkit.storage import listing_processes
from toolkit.storage.bucket import Bucket, ObjectSeen, Page
from toolkit.storage.listing import _decoded
from toolkit.storage.listing_processes import MOST, PageReaders

_TEXT = st.text("a\\tnrx\t\n\ré😀")
_PLACE = st.none() | st.integers(0, 89)


@pytest.fixture(scope="module", params=[0, 2])
def readers(request: pytest.FixtureRequest) -> Iterator[PageReaders]:
    """Readers in so many processes beside this one, which reads nothing itself where there are others."""
    bucket = cast("Bucket", SeededBucket())
    with patch.object(listing_processes, "PROCESSES", request.param), PageReaders(bucket) as readers:
        readers.start()
        readers.wait()
        if request.param:
            del readers._bucket
        yield readers


@settings(max_examples=25)
@given(wanted=st.lists(st.tuples(st.integers(0, 10**6), _PLACE, _PLACE), min_size=1, max_size=3))
def test_parts_show_the_keys_of_their_ranges_and_no_others(
    readers: PageReaders, wanted: list[tuple[int, int | None, int | None]]
) -> None:
    parts, expected = [], set()
    for number, first, last in wanted:
        keys = SeededBucket().keys(number)
        after = "" if first is None else keys[first % len(keys)]
        end = None if last is None else keys[last % len(keys)]
        parts.append(Part(readers.read, f"{number}/", after, end))
        expected |= {key for key in keys if key > after and (end is None or key <= end)}
    with ThreadPoolExecutor(MOST) as threads:
        pages = list(side_by_side(threads, readers, parts))
    rows = [row for page in pages for row in page.rows.decode().split("\n")[:-1]]
    assert len(rows) == sum(map(len, pages))
    assert {row.split("\t")[0] for row in rows} == {copied(key) for key in expected}


def copied(key: str) -> str:
    """A key as COPY reads it in its text format, by PostgreSQL's documentation."""
    return key.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


@given(st.lists(st.tuples(_TEXT, st.integers(0, 2**40), _TEXT, st.datetimes(timezones=st.just(UTC)))))
def test_the_rows_of_a_page_are_those_of_its_objects(values: list[tuple[str, int, str, datetime]]) -> None:
    objects = [ObjectSeen(*each) for each in values]
    assert list(Page.of([item.row for item in objects])) == objects


@given(st.lists(st.text(st.characters(blacklist_categories=["Cs"])) | st.text("a %0+\n&é😀")))
def test_keys_of_a_page_are_decoded_together_as_one_by_one(keys: list[str]) -> None:
    assert _decoded([quote(key) for key in keys]) == keys


@given(st.lists(st.text("%C3A09a/").map(lambda key: f"{key}%"), min_size=1))
def test_keys_that_are_no_utf8_are_decoded_together_as_one_by_one(encoded: list[str]) -> None:
    assert _decoded(encoded) == [unquote(key) for key in encoded]
