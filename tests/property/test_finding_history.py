"""The history of findings keeps two laws, whatever happens: changes lead from one moment to the other, and a past
day counts what the observations of that day give again."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any
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
from toolkit.operations.judge.findings.changes import KINDS, all_partners, changes_between, trends
from toolkit.operations.snapshot.export import export_snapshot
from toolkit.operations.snapshot.manifest import File
from toolkit.operations.snapshot.reading import open_snapshot
from toolkit.storage.file_store import FolderStore
from toolkit.storage.reader import Reader

ZONE = ZoneInfo("America/Sao_Paulo")


@dataclass
class Audited(World):
    """A world whose audits are kept as they were."""

    results: list[AuditResult] = field(default_factory=list)

    def judge(self) -> None:
        with suppress(NothingEvaluated):
            self.results.append(run_audit(self.database, clock=self.clock))


def present(result: AuditResult) -> set[UUID]:
    return {UUID(each) for each in present_findings(pd.concat([result.rows, result.warned]))["id"]}


def in_postgresql(world: Audited) -> dict[datetime, set[UUID]]:
    """The findings at the moment of each audit, judged again two years later."""
    clock = later(world)
    moments = (result.as_of for result in world.results)
    return {moment: present(run_audit(world.database, clock=clock, as_of=moment)) for moment in moments}


@contextmanager
def exported(world: Audited) -> Iterator[SnapshotTables]:
    """A snapshot of the last moment, which DuckDB reads."""
    with tempfile.TemporaryDirectory() as folder:
        store = FolderStore(Path(folder) / "snapshot", "snapshot")
        export_snapshot(world.database, store, Path(folder), SettableClock(world.results[-1].as_of))

        def path_of(file: File) -> str:
            return str(store.local(file.name, Path()))

        yield SnapshotTables(open_snapshot(store, None), path_of, Path(folder))


def in_duckdb(world: Audited, snapshot: SnapshotTables) -> dict[datetime, set[UUID]]:
    moments, clock = [result.as_of for result in world.results], later(world)
    with duckdb_engine() as engine:
        return {moment: present(audit_snapshot(snapshot, engine, clock=clock, as_of=moment)) for moment in moments}


def later(world: Audited) -> SettableClock:
    return SettableClock(max(world.clock.now, world.results[-1].as_of) + timedelta(days=730))


@dataclass(frozen=True)
class Opened:
    """A place whose tables are open already."""

    reader: Reader

    @contextmanager
    def snapshot(self) -> Iterator[Reader]:
        yield self.reader


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
        with exported(world) as snapshot:
            assert in_duckdb(world, snapshot) == there
            for place in (database, snapshot):
                with place.snapshot() as reader:
                    changes_lead_from_one_moment_to_the_other(reader, there)
                    every_day_counts_its_findings(reader, world, there)


def changes_lead_from_one_moment_to_the_other(reader: Reader, there: dict[datetime, set[UUID]]) -> None:
    moments = {START - timedelta(days=9): set[UUID]()} | there  # before the first audit nothing was known
    for earlier, later in combinations(sorted(moments), 2):
        found = changes_between(Opened(reader), earlier, later)
        assert found.counts == {kind: len(getattr(found, kind)) for kind in KINDS}
        new, resolved, reopened, still = ({*map(UUID, getattr(found, kind).to_pylist())} for kind in KINDS)
        before, after = moments[earlier], moments[later]
        assert before - resolved | new | reopened == after
        assert still == before & after
        assert resolved <= before
        assert not (new | reopened) & before
        known = set().union(*(ids for moment, ids in moments.items() if moment <= earlier))
        assert not new & known
        assert reopened <= known


def every_day_counts_its_findings(reader: Reader, world: Audited, there: dict[datetime, set[UUID]]) -> None:
    counts = {moment.astimezone(ZONE).date(): len(ids) for moment, ids in there.items()}
    first = START.astimezone(ZONE).date() - timedelta(days=9)
    found = all_partners(trends(reader, first, world.results[-1].as_of, ZONE))
    by_day = found.set_index("day")["present"]
    assert {day: by_day.get(day, 0) for day in counts} == counts
