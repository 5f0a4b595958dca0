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


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(looks=looks)
def test_all_readings_of_a_file_agree(database, looks):
    story, clock, sale_id = Story(database), SettableClock(day(20)), f"S-{uuid4()}"
    story.sale(sale_id, seen_at=day(1))
    _, key = story.record(sale_id, EvidenceType.KYC, requested_at=day(2))
    seen = story.upload(key, seen_at=day(3))
    for number, (kind, problem) in enumerate(looks):
        story.check(seen, kind, problem=problem, at=day(4 + number))

    expected = evidence_state(
        EvidenceType.KYC,
        size=1000,
        kind=looks[-1][0] if looks else None,
        damaged=bool(looks and looks[-1][1]),
        expired=True,
    )
    (record,) = records_of(database, sale_id, clock)
    open_sales = audited(database, clock=clock, as_of=day(20)).rows.set_index("saleId")

    counts = expected is EvidenceState.COUNTED
    assert record.state is expected
    assert (sale_id not in open_sales.index) == counts
