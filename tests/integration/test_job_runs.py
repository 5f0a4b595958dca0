"""The run of a slot is one row, whoever starts it: taken, held, gone on with, ended, missed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from tests.conftest import SettableClock
from toolkit.domain.jobs.definitions import Job, read_jobs
from toolkit.domain.jobs.outcomes import FailureCode, RunStatus
from toolkit.errors import LeaseLost
from toolkit.operations.jobs.history import due_for_deletion, missed_since_success, recent_runs
from toolkit.operations.jobs.notices import Notice, NoticeKind, note_delivery, undelivered
from toolkit.operations.jobs.processes import is_dead, this_process
from toolkit.operations.jobs.runs import (
    Answer,
    Claim,
    StepEnd,
    decide_success,
    end_failure,
    end_success,
    note_step,
    renew_lease,
    steps_done,
    take_run,
)
from toolkit.operations.jobs.watching import Watched, watch_job
from toolkit.storage.database import Database
from toolkit.storage.tables import job_runs

SLOT = datetime(2026, 3, 2, 5, 0, tzinfo=UTC)
"""Two in the morning in São Paulo."""


@pytest.fixture
def job() -> Job:
    steps = [{"name": "sync", "command": "bucket sync"}]
    document = {"jobs": {"nightly": {"schedule": "0 2 * * *", "late": "6h", "steps": steps}}}
    return read_jobs(document, ZoneInfo("America/Sao_Paulo"))["nightly"]


@pytest.fixture
def night(clock: SettableClock) -> SettableClock:
    clock.now = SLOT + timedelta(minutes=5)
    return clock


def told(job: str, slot: datetime, kind: NoticeKind, content: Mapping[str, Any]) -> Sequence[Notice]:
    return [Notice(job, slot, kind, "email", content)]


def succeed(database: Database, claim: Claim, clock: SettableClock, notices: Sequence[Notice] = ()) -> None:
    decide_success(database, claim, clock, counts={}, files=[], folder="x", seal=None, versions={})
    end_success(database, claim.id, notices, clock)


def test_of_many_starts_at_once_one_takes_the_run(database: Database, job: Job, night: SettableClock) -> None:
    with ThreadPoolExecutor(6) as pool:
        claims = list(pool.map(lambda _: take_run(database, job, SLOT, night), range(6)))
    assert sorted(claim.answer for claim in claims) == [Answer.HELD] * 5 + [Answer.TAKEN]
    assert len(recent_runs(database)) == 1


def test_a_run_that_is_done_is_not_run_again(database: Database, job: Job, night: SettableClock) -> None:
    succeed(database, take_run(database, job, SLOT, night), night)
    assert take_run(database, job, SLOT, night, late=True).answer is Answer.DONE


def test_a_run_is_gone_on_with_when_its_lease_ran_out_and_the_old_holder_writes_nothing_more(
    database: Database, job: Job, night: SettableClock
) -> None:
    first = take_run(database, job, SLOT, night, lease=timedelta(0))
    end = StepEnd(job.steps[0], 0, {}, 1, night(), night(), {"listed": 3})
    note_step(database, first, end)
    second = take_run(database, job, SLOT, night)
    assert second.answer is Answer.TAKEN
    assert steps_done(database, second)["sync"].counts == {"listed": 3}
    assert renew_lease(database, second)
    assert not renew_lease(database, first)
    with pytest.raises(LeaseLost):
        note_step(database, first, end)
    with pytest.raises(LeaseLost):
        succeed(database, first, night)
    with pytest.raises(LeaseLost):
        end_failure(database, first, FailureCode.STOPPED, "x", (), night)


def test_a_run_whose_process_died_on_this_machine_is_taken_at_once(
    database: Database, job: Job, night: SettableClock
) -> None:
    claim = take_run(database, job, SLOT, night)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    held_by = {**this_process(), "pid": ended.pid}
    with database.transaction() as connection:
        connection.execute(sa.update(job_runs).where(job_runs.c.id == claim.id).values(held_by=held_by))
    assert take_run(database, job, SLOT, night).answer is Answer.TAKEN


def test_only_a_process_of_this_machine_can_be_known_to_be_dead() -> None:
    here = this_process()
    assert not is_dead(here)
    assert is_dead({**here, "started": "1"})  # the number was given out again
    assert not is_dead({**here, "started": "1", "boot": "another machine"})
    assert not is_dead({**here, "started": "1", "namespace": "another container"})
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # ended, and nobody asked for its result
    assert is_dead({**here, "pid": child.pid})
    child.wait()


def watch(database: Database, job: Job, clock: SettableClock) -> Watched:
    return watch_job(database, job, clock, told)


def test_a_slot_that_nobody_started_is_noted_and_told_once(
    database: Database, job: Job, night: SettableClock
) -> None:
    assert watch(database, job, night).missed == ()
    night.now = SLOT + timedelta(days=3, hours=7)
    slots = tuple(SLOT + timedelta(days=days) for days in (1, 2, 3))
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: watch(database, job, night).missed, range(3)))
    assert sorted(found) == [(), (), slots]
    [notice] = undelivered(database, ["email"])
    assert (notice.kind, len(notice.content["slots"])) == ("missed", 3)
    assert [run.slot for run in missed_since_success(database, "nightly")] == list(slots)
    assert {run.status for run in recent_runs(database)} == {RunStatus.MISSED}


def test_what_a_clock_that_was_ahead_called_missed_is_watched_again(
    database: Database, job: Job, night: SettableClock
) -> None:
    watch(database, job, night)
    night.now += timedelta(days=400)
    assert len(watch(database, job, night).missed) == 399
    night.now = SLOT + timedelta(hours=8)
    assert watch(database, job, night).missed == ()
    assert recent_runs(database) == []
    night.now += timedelta(days=2)
    assert watch(database, job, night).missed == tuple(SLOT + timedelta(days=days) for days in (1, 2))


def test_no_file_is_due_for_deletion_by_a_clock_alone_that_is_ahead(
    database: Database, job: Job, night: SettableClock
) -> None:
    now = datetime.now(UTC)
    for days in (1, 1000):
        night.now = now - timedelta(days=days)
        succeed(database, take_run(database, job, night.now, night), night)
    night.now = now + timedelta(days=4000)
    assert [run.slot for run in due_for_deletion(database, job, night)] == [now - timedelta(days=1000)]


def test_of_several_slots_one_is_caught_up_with_within_its_window(
    database: Database, job: Job, night: SettableClock
) -> None:
    watch(database, job, night)
    night.now = SLOT + timedelta(days=3, hours=5)
    assert len(watch(database, job, night).missed) == 2
    latest = job.schedule.latest(night.now)
    assert latest == SLOT + timedelta(days=3)
    succeed(database, take_run(database, job, latest, night), night)
    assert missed_since_success(database, "nightly") == []
    night.now = SLOT + timedelta(days=4, hours=7)
    claim = take_run(database, job, SLOT + timedelta(days=4), night)
    assert (claim.answer, claim.run) == (Answer.TOO_LATE, None)
    assert take_run(database, job, SLOT + timedelta(days=4), night, late=True).answer is Answer.TAKEN


def test_another_schedule_makes_no_slots_of_the_past_missed(
    database: Database, job: Job, night: SettableClock
) -> None:
    watch(database, job, night)
    steps = [{"name": "sync", "command": "bucket sync"}]
    document = {"jobs": {"nightly": {"schedule": "0 1 * * *", "steps": steps}}}
    changed = read_jobs(document, ZoneInfo("America/Sao_Paulo"))["nightly"]
    night.now += timedelta(days=3)
    assert watch(database, changed, night).missed == ()


def test_a_run_whose_process_died_is_told_as_failed_and_can_be_gone_on_with(
    database: Database, job: Job, night: SettableClock
) -> None:
    take_run(database, job, SLOT, night, lease=timedelta(0))
    assert watch(database, job, night).died == (SLOT,)
    assert watch(database, job, night).died == ()
    [run] = recent_runs(database)
    assert (run.status, run.failure) == (RunStatus.FAILED, FailureCode.RUNNER_DIED)
    [notice] = undelivered(database, ["email"])
    assert notice.content == {"code": "RUNNER_DIED"}
    assert take_run(database, job, SLOT, night).answer is Answer.TAKEN


def test_all_is_well_again_is_told_once_after_bad_news_only(
    database: Database, job: Job, night: SettableClock
) -> None:
    well = [Notice("nightly", SLOT, NoticeKind.RECOVERED, "email", {})]
    succeed(database, take_run(database, job, SLOT, night), night, well)
    assert undelivered(database, ["email"]) == []
    night.now += timedelta(days=1)
    bad = told("nightly", SLOT, NoticeKind.FAILED, {})
    claim = take_run(database, job, SLOT + timedelta(days=1), night)
    end_failure(database, claim, FailureCode.STOPPED, "stopped", bad, night)
    again = take_run(database, job, SLOT + timedelta(days=1), night)
    succeed(database, again, night, well)
    end_success(database, again.id, well, night)
    assert [notice.kind for notice in undelivered(database, ["email"])] == ["failed", "recovered"]


def test_a_notice_waits_until_it_is_delivered(database: Database, job: Job, night: SettableClock) -> None:
    claim = take_run(database, job, SLOT, night)
    end_failure(database, claim, FailureCode.STOPPED, "x", told("nightly", SLOT, NoticeKind.FAILED, {}), night)
    [notice] = undelivered(database, ["email"])
    note_delivery(database, notice.id, "the server refused", night)
    [notice] = undelivered(database, ["email"])
    assert (notice.tries, notice.problem) == (1, "the server refused")
    assert undelivered(database, ["webhook"]) == []
    note_delivery(database, notice.id, None, night)
    assert undelivered(database, ["email"]) == []
