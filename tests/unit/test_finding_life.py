"""The identity of a finding."""

from uuid import uuid5

from hypothesis import given
from hypothesis import strategies as st

from toolkit.contract.findings import NAMESPACE, finding_id

NAMES = st.text(st.characters(codec="utf-8"))


@given(NAMES, st.lists(NAMES, max_size=2))
def test_the_id_of_a_finding_is_a_uuid_of_version_5(code, subject):
    assert finding_id(code, *subject) == str(uuid5(NAMESPACE, "\x1f".join((code, *subject))))
