"""The history of findings keeps two laws, whatever happens: changes lead from one moment to the other, and a past
day counts what the observations of that day give again."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import combinations
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import _TEMPLATE, SettableClock, _fresh
from tests.property.test_past_audits import START, World, changes
from tests.support.audits import audited
from toolkit.audit.changes import KINDS, changes_between
from toolkit.contract.findings import FindingStatus
from toolkit.database.connection import Database
from toolkit.errors import NothingEvaluated
from toolkit.reports.audited import Audited

ZONE = ZoneInfo("America/Sao_Paulo")


@dataclass
class Noted(World):
    """A world that remembers the moments of its audits."""

    moments: list[datetime] = field(default_factory=list)

    def judge(self) -> None:
        with suppress(NothingEvaluated):
            self.moments.append(audited(self.database, clock=self.clock).as_of)


def judged_again(world: Noted) -> dict[datetime, set[UUID]]:
    """The findings at the moment of each audit, judged again two years later."""
    clock = SettableClock(max(world.clock.now, world.moments[-1]) + timedelta(days=730))
    return {moment: present(audited(world.database, clock=clock, as_of=moment)) for moment in world.moments}


def present(result: Audited) -> set[UUID]:
    there = result.findings[result.findings["status"] != FindingStatus.RESOLVED]
    return {UUID(each) for each in there["id"]}


stories = st.lists(st.one_of(changes, st.tuples(st.just(World.audit))), min_size=8, max_size=25)


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(story=stories)
def test_changes_and_trend_are_what_each_moment_gives_when_it_is_judged_again(
    server: sa.Engine, story: list[Any]
) -> None:
    with contextmanager(_fresh)(server, _TEMPLATE) as database:
        world = Noted(database)
        world.live([*story, (World.sale, 0, "A", False), (World.audit,)])  # without a sale there is no audit
        there = judged_again(world)
        changes_lead_from_one_moment_to_the_other(database, there)
        every_day_counts_its_findings(world, there)


def changes_lead_from_one_moment_to_the_other(database: Database, there: dict[datetime, set[UUID]]) -> None:
    moments = {START - timedelta(days=9): set[UUID]()} | there  # before the first audit nothing was known
    for earlier, later in combinations(sorted(moments), 2):
        found = changes_between(database, earlier, later, ZONE)
        new, resolved, reopened, still = ({*map(UUID, found.ids(kind))} for kind in KINDS)
        before, after = moments[earlier], moments[later]
        assert before - resolved | new | reopened == after
        assert still == before & after
        assert resolved <= before
        assert not (new | reopened) & before
        known = set().union(*(ids for moment, ids in moments.items() if moment <= earlier))
        assert not new & known
        assert reopened <= known


def every_day_counts_its_findings(world: Noted, there: dict[datetime, set[UUID]]) -> None:
    counts = {moment.astimezone(ZONE).date(): len(ids) for moment, ids in there.items()}
    found = changes_between(world.database, START - timedelta(days=9), world.moments[-1], ZONE)
    by_day = found.by_day.set_index("day")
    assert {day: by_day["present"].get(day, 0) for day in counts} == counts
    for moment in there:  # a trend that begins later tells the same of its days
        later = changes_between(world.database, moment, world.moments[-1], ZONE).by_day.set_index("day")
        assert later.equals(by_day.loc[later.index])
