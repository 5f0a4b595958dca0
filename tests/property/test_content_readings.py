"""The state of a file, its kind and its fault by the latest look, is read in several places; all must agree."""

from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import SettableClock
from tests.support.audits import audited
from tests.support.observations import Story, day
from toolkit.contract.contents import ContentProblem
from toolkit.contract.evidence import EvidenceType, FileKind
from toolkit.contract.rules import EvidenceState, evidence_state
from toolkit.evidence.records import records_of

looks = st.lists(
    st.tuples(st.sampled_from(FileKind), st.none() | st.sampled_from(ContentProblem)), min_size=0, max_size=4
)


@settings(max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=st.lists(looks, min_size=8, max_size=16))
def test_all_readings_of_a_file_agree(database, files):
    """Many sales with a file each, so that one audit reads all of them."""
    story, clock, expected = Story(database), SettableClock(day(20)), {}
    for of_file in files:
        sale_id = story.sale(f"S-{uuid4()}", seen_at=day(1))
        _, key = story.record(sale_id, EvidenceType.KYC, requested_at=day(2))
        seen = story.upload(key, seen_at=day(3))
        for number, (kind, problem) in enumerate(of_file):
            story.check(seen, kind, problem=problem, at=day(4 + number))
        expected[sale_id] = evidence_state(
            EvidenceType.KYC,
            size=1000,
            kind=of_file[-1][0] if of_file else None,
            damaged=bool(of_file and of_file[-1][1]),
            expired=True,
        )
    assert {sale_id: records_of(database, sale_id, clock)[0].state for sale_id in expected} == expected
    open_sales = set(audited(database, clock=clock, as_of=day(20)).rows["saleId"])
    counted = {sale_id for sale_id, state in expected.items() if state is EvidenceState.COUNTED}
    assert expected.keys() & open_sales == expected.keys() - counted
