"""The history of findings keeps two laws, whatever happens: changes lead from one moment to the other, and a past
day counts what the observations of that day give again."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import combinations
from typing import Any, cast
from uuid import UUID
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import _TEMPLATE, SettableClock, _fresh
from tests.property.test_past_audits import START, World, _key, changes
from toolkit.errors import NothingEvaluated
from toolkit.operations.judge.audit import AuditResult, run_audit
from toolkit.operations.judge.findings.changes import all_partners, changes_between, trends
from toolkit.operations.observe.bucket_sync import sync_bucket
from toolkit.operations.observe.service_history import observe_service
from toolkit.storage.bucket import Bucket

ZONE = ZoneInfo("America/Sao_Paulo")


@dataclass
class Audited(World):
    """A world whose audits are kept as they were."""

    results: list[AuditResult] = field(default_factory=list)

    def audit(self) -> None:
        observe_service(self.database, self.clock)
        sync_bucket(self.database, cast("Bucket", self.bucket), clock=self.clock)
        with suppress(NothingEvaluated):
            self.results.append(run_audit(self.database, clock=self.clock))


def present(result: AuditResult) -> set[UUID]:
    found = result.life.findings
    return {UUID(each) for each in found.loc[found["status"] != "resolved", "id"]}


def live(world: Audited, history: list[Any]) -> None:
    for what, *values in history:
        if what == "put":
            world.bucket.put(_key(values[0]), values[1])
        elif what == "delete":
            world.bucket.delete(_key(values[0]))
        elif what == "wait":
            world.clock.now += values[0]
        elif what is World.audit:
            world.audit()
        else:
            what(world, *values)


stories = st.lists(st.one_of(changes, st.tuples(st.just(World.audit))), min_size=8, max_size=25)
few = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))


@few
@given(story=stories)
def test_changes_lead_from_one_moment_to_the_other(server: sa.Engine, story: list[Any]) -> None:
    with contextmanager(_fresh)(server, _TEMPLATE) as database:
        world = Audited(database)
        live(world, [*story, (World.audit,)])
        for earlier, later in combinations(world.results, 2):
            found = changes_between(database, earlier.as_of, later.as_of)
            new, resolved, reopened = set(found.new), set(found.resolved), set(found.reopened)
            assert present(earlier) - resolved | new | reopened == present(later)
            assert set(found.open) == present(earlier) & present(later)
            assert resolved <= present(earlier)
            assert not (new | reopened) & present(earlier)
            assert not new & {UUID(each) for each in earlier.life.findings["id"]}
            assert reopened <= {UUID(each) for each in earlier.life.findings["id"]} | reopened


@few
@given(story=stories)
def test_every_past_day_counts_what_its_observations_give_again(server: sa.Engine, story: list[Any]) -> None:
    with contextmanager(_fresh)(server, _TEMPLATE) as database:
        world = Audited(database)
        live(world, [*story, (World.sale, 0, "A", False), (World.audit,)])  # without a sale there is no audit
        clock = SettableClock(max(world.clock.now, world.results[-1].as_of) + timedelta(days=730))
        counts = {}
        for then in world.results:
            again = run_audit(database, clock=clock, as_of=then.as_of)
            assert again.life.findings.to_dict("records") == then.life.findings.to_dict("records")
            assert again.life.counts == then.life.counts
            counts[then.as_of.astimezone(ZONE).date()] = len(present(again))
        with database.snapshot() as connection:
            first = START.astimezone(ZONE).date() - timedelta(days=9)
            by_day = all_partners(trends(connection, first, world.results[-1].as_of, ZONE)).set_index("day")[
                "present"
            ]
        assert {day: by_day.get(day, 0) for day in counts} == counts
