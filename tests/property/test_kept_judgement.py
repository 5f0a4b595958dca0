"""An audit that takes over what did not change says what an audit of all sales says, whatever happened between."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pandas as pd
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import _TEMPLATE, SettableClock, _fresh
from tests.property.test_finding_history import Audited, live
from tests.property.test_past_audits import World, changes, number
from toolkit.errors import NothingEvaluated
from toolkit.operations.judge.audit import AuditResult, run_audit
from toolkit.operations.judge.findings.waivers import add_waiver, all_waivers, revoke_waiver
from toolkit.storage.database import Database
from toolkit.storage.observation_clock import stamp


@dataclass
class Watched(Audited):
    """A world in which files are verified and findings are waived, too."""

    def verified(self, number: int, problem: str | None) -> None:
        self._look(_VERIFIED, number, problem=problem)

    def unreadable(self, number: int) -> None:
        self._look(_UNREADABLE, number)

    def waived(self, number: int, days: int) -> None:
        today = self.clock.now.date()
        given = {
            "sale": f"S-{number}",
            "reason": "ordered",
            "owner": "ana",
            "approvedBy": "bia",
            "start": (today + timedelta(days=days)).isoformat(),
            "end": (today + timedelta(days=days + 2)).isoformat(),
        }
        add_waiver(self.database, given, today=today, clock=self.clock)

    def unwaived(self) -> None:
        for waiver in all_waivers(self.database, self.clock.now):
            if waiver.revoked_at is None:
                revoke_waiver(self.database, waiver.id, reason="sent", revoked_by="ana", clock=self.clock)
                return

    def _look(self, statement: str, number: int, **values: Any) -> None:
        with self.database.transaction() as connection:
            moment = stamp(connection, self.clock)
            connection.execute(sa.text(statement), {"key": f"%{number}%", "now": moment, **values})


_OBJECTS = "FROM audit.object_observations AS seen WHERE gone_at IS NULL AND key LIKE :key"
_VERIFIED = f"""
    INSERT INTO audit.content_checks (observation_id, kind, problem, sha256, checked_at)
    SELECT id, 'pdf', :problem, 'abc', :now {_OBJECTS}
"""
_UNREADABLE = f"""
    INSERT INTO audit.verification_failures (observation_id, reason, failed_at)
    SELECT id, 'denied', :now {_OBJECTS}
      AND NOT EXISTS (SELECT FROM audit.verification_failures WHERE observation_id = seen.id)
"""

told = st.one_of(
    changes,
    st.tuples(st.just(Watched.verified), number, st.sampled_from([None, "DAMAGED"])),
    st.tuples(st.just(Watched.unreadable), number),
    st.tuples(st.just(Watched.waived), number, st.integers(0, 3)),
    st.tuples(st.just(Watched.unwaived)),
    st.tuples(st.just("wait"), st.sampled_from([timedelta(minutes=20), timedelta(minutes=40), timedelta(days=1)])),
    st.tuples(st.just(World.audit)),
)
TABLES = ("counts", "rows", "warned", "faults", "withdrawals", "completions")


def same(one: AuditResult, other: AuditResult) -> None:
    """Assert that both say the same of every sale and of every finding."""
    for name in TABLES:
        ours, theirs = (getattr(each, name).astype(object) for each in (one, other))
        keys = list(ours.columns)
        pd.testing.assert_frame_equal(*(each.sort_values(keys, ignore_index=True) for each in (ours, theirs)))
    pd.testing.assert_frame_equal(one.life.findings, other.life.findings)
    pd.testing.assert_frame_equal(one.life.trends, other.life.trends)
    assert one.life.changes == other.life.changes
    assert (one.life.counts, one.life.waivers) == (other.life.counts, other.life.waivers)


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(history=st.lists(told, min_size=12, max_size=24))
def test_an_audit_of_what_changed_says_what_an_audit_of_everything_says(
    server: sa.Engine, history: list[Any]
) -> None:
    with contextmanager(_fresh)(server, _TEMPLATE) as database:
        world = Watched(database)
        live(world, [(World.sale, 9, "A", False), (World.audit,), *history, (World.audit,)])
        for result in world.results:
            same(result, run_audit(database, clock=SettableClock(world.results[-1].as_of), as_of=result.as_of))
        with suppress(NothingEvaluated):
            run_audit(database, clock=world.clock, everything=True)  # compares, and raises where it differs


def test_only_what_changed_is_judged(database: Database) -> None: ...
