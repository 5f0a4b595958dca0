"""A listing shows the same keys, folder by folder as by one page after another."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.fake_bucket import SeededBucket
from toolkit.bucket.client import list_objects


@settings(max_examples=25)
@given(wanted=st.lists(st.integers(0, 10**6), min_size=1, max_size=3))
def test_folders_side_by_side_show_the_keys_of_their_prefixes_and_no_others(wanted):
    bucket = SeededBucket()
    pages = list_objects(bucket, [f"{number}/" for number in wanted])
    found = {item.key for page in pages for item in page}
    assert found == {key for number in wanted for key in bucket.keys(number)}
