"""The records of a sale can be listed with their ids, which a withdrawal needs."""

from datetime import timedelta
from typing import Any

import pytest

from tests.conftest import SettableClock
from tests.support.observations import Story, day
from toolkit.contract.evidence import FileKind
from toolkit.database.connection import Database
from toolkit.evidence.records import records_of


@pytest.fixture
def story(database):
    return Story(database)


def listed(database: Database, clock: SettableClock) -> dict[Any, str | None]:
    return {record.id: record.state for record in records_of(database, "S-1", clock)}


def test_each_record_says_how_far_it_got(database, story, clock):
    clock.now = day(31)
    story.sale(seen_at=day(2))
    good, good_key = story.record("S-1", "POV", requested_at=day(3))
    story.check(story.upload(good_key, seen_at=day(4)), FileKind.AUDIO, at=day(4))
    bad, bad_key = story.record("S-1", "AUT", requested_at=day(4))
    story.check(story.upload(bad_key, seen_at=day(5)), FileKind.PDF, at=day(5))
    late, _ = story.record("S-1", "KYC", requested_at=day(5))
    fresh, _ = story.record("S-1", "DOC_CONTRATANTE", requested_at=day(31) - timedelta(minutes=1))
    story.withdraw(late, at=day(6))
    assert listed(database, clock) == {good: "COUNTED", bad: "UNUSABLE", late: "WITHDRAWN", fresh: "NOT_UPLOADED"}
    withdrawn = {
        record.id: record.withdrawal and record.withdrawal.withdrawn_at
        for record in records_of(database, "S-1", clock)
    }
    assert withdrawn == {good: None, bad: None, late: day(6), fresh: None}
