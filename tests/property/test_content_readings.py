"""The state of a file (kind by the latest look, damaged by any look) is read in several places; all must agree."""

from __future__ import annotations

from typing import Any, cast
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import SettableClock
from tests.integration.audited import Story, day
from tests.memory_bucket import MemoryBucket
from toolkit.domain.contents import ContentProblem
from toolkit.domain.evidence import EvidenceType, FileKind
from toolkit.domain.rules import EvidenceState, evidence_state
from toolkit.operations.judge.audit import run_audit
from toolkit.operations.judge.evidence_records import records_of
from toolkit.operations.request.existing_records import sales_with_kyc
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database

looks = st.lists(
    st.tuples(st.sampled_from(FileKind), st.none() | st.sampled_from(ContentProblem)), min_size=0, max_size=4
)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(looks=looks)
def test_all_readings_of_a_file_agree(database: Database, looks: list[tuple[FileKind, Any]]) -> None:
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
        damaged=any(problem is not None for _, problem in looks),
        expired=True,
    )
    (record,) = records_of(database, sale_id, clock)
    open_sales = run_audit(database, clock=clock, as_of=day(20)).rows.set_index("saleId")
    with database.transaction() as connection:
        covered = sales_with_kyc(connection, cast("Bucket", MemoryBucket()), [sale_id], day(20))

    counts = expected is EvidenceState.COUNTED
    assert record.state is expected
    assert (sale_id not in open_sales.index) == counts
    assert (covered == {sale_id}) == counts
