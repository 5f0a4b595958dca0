"""A listing shows the same keys, folder by folder as by one page after another."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.fake_bucket import SeededBucket
from toolkit.audit.bucket_listing import Part, side_by_side
from toolkit.bucket.client import Asked, Bucket, ObjectSeen, Page

_TEXT = st.text("a\\tnrx\t\n\ré😀")
_PLACE = st.none() | st.integers(0, 89)


@settings(max_examples=25)
@given(wanted=st.lists(st.tuples(st.integers(0, 10**6), _PLACE, _PLACE), min_size=1, max_size=3))
def test_parts_show_the_keys_of_their_ranges_and_no_others(
    wanted: list[tuple[int, int | None, int | None]],
) -> None:
    parts, expected = [], set()
    for number, first, last in wanted:
        keys = SeededBucket().keys(number)
        after = "" if first is None else keys[first % len(keys)]
        end = None if last is None else keys[last % len(keys)]
        parts.append(Part(Asked(f"{number}/", after, end)))
        expected |= {key for key in keys if key > after and (end is None or key <= end)}
    pages = list(side_by_side(cast("Bucket", SeededBucket()), parts))
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
