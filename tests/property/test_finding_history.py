"""The history of findings keeps two laws, whatever happens: changes lead from one moment to the other, and a past
day counts what the observations of that day give again."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any, cast
from uuid import UUID
from zoneinfo import ZoneInfo

import pandas as pd
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import _TEMPLATE, SettableClock, _fresh
from tests.property.test_past_audits import START, World, changes
from toolkit.errors import NothingEvaluated
from toolkit.operations.judge.audit import AuditResult, run_audit
from toolkit.operations.judge.audit.engines import duckdb_engine
from toolkit.operations.judge.audit.from_snapshot import audit_snapshot
from toolkit.operations.judge.audit.present import present_findings
from toolkit.operations.judge.audit.snapshot_tables import SnapshotTables
from toolkit.operations.judge.findings.changes import all_partners, changes_between, trends
from toolkit.operations.observe.bucket_sync import sync_bucket
from toolkit.operations.observe.service_history import observe_service
from toolkit.operations.snapshot import export_snapshot, open_snapshot
from toolkit.operations.snapshot.manifest import File
from toolkit.storage.bucket import Bucket
from toolkit.storage.file_store import FolderStore

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
    return {UUID(each) for each in present_findings(pd.concat([result.rows, result.warned]))["id"]}


def in_postgresql(world: Audited) -> dict[datetime, set[UUID]]:
    """The findings at the moment of each audit, judged again two years later."""
    clock = later(world)
    moments = (result.as_of for result in world.results)
    return {moment: present(run_audit(world.database, clock=clock, as_of=moment)) for moment in moments}


def from_a_snapshot(world: Audited) -> dict[datetime, set[UUID]]:
    """The same by DuckDB, from a snapshot of the last moment."""
    moments = [result.as_of for result in world.results]
    with tempfile.TemporaryDirectory() as folder, duckdb_engine() as engine:
        store = FolderStore(Path(folder) / "snapshot", "snapshot")
        export_snapshot(world.database, store, Path(folder), SettableClock(moments[-1]))

        def path_of(file: File) -> str:
            return str(store.local(file.name, Path()))

        snapshot, clock = SnapshotTables(open_snapshot(store, None), path_of, Path(folder)), later(world)
        return {moment: present(audit_snapshot(snapshot, engine, clock=clock, as_of=moment)) for moment in moments}


def later(world: Audited) -> SettableClock:
    return SettableClock(max(world.clock.now, world.results[-1].as_of) + timedelta(days=730))


stories = st.lists(st.one_of(changes, st.tuples(st.just(World.audit))), min_size=8, max_size=25)


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(story=stories)
def test_changes_and_trend_are_what_each_moment_gives_when_it_is_judged_again(
    server: sa.Engine, story: list[Any]
) -> None:
    with contextmanager(_fresh)(server, _TEMPLATE) as database:
        world = Audited(database)
        world.live([*story, (World.sale, 0, "A", False), (World.audit,)])  # without a sale there is no audit
        there = in_postgresql(world)
        assert from_a_snapshot(world) == there
        changes_lead_from_one_moment_to_the_other(world, there)
        every_day_counts_its_findings(world, there)


def changes_lead_from_one_moment_to_the_other(world: Audited, there: dict[datetime, set[UUID]]) -> None:
    for earlier, later in combinations(world.results, 2):
        found = changes_between(world.database, earlier.as_of, later.as_of)
        new, resolved, reopened = set(found.new), set(found.resolved), set(found.reopened)
        before, after = there[earlier.as_of], there[later.as_of]
        assert before - resolved | new | reopened == after
        assert set(found.open) == before & after
        assert resolved <= before
        assert not (new | reopened) & before
        known = {UUID(each) for each in earlier.life.findings["id"]}
        assert not new & known
        assert reopened <= known


def every_day_counts_its_findings(world: Audited, there: dict[datetime, set[UUID]]) -> None:
    counts = {moment.astimezone(ZONE).date(): len(ids) for moment, ids in there.items()}
    with world.database.snapshot() as connection:
        first = START.astimezone(ZONE).date() - timedelta(days=9)
        found = all_partners(trends(connection, first, world.results[-1].as_of, ZONE))
    by_day = found.set_index("day")["present"]
    assert {day: by_day.get(day, 0) for day in counts} == counts
