"""The run of a logical date is one row, whoever starts it: taken, held, gone on with, ended, missed."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.support.uploaded_sales import rows
from tests.support.waiting import wait_until
from toolkit.errors import LeaseLost
from toolkit.jobs.definitions import Job
from toolkit.jobs.notices import NoticeKind, NoticeSettings, deliver_notices, notices_of, put_notices
from toolkit.jobs.runs import (
    LEASE,
    Outcome,
    RunStatus,
    ended,
    holding,
    renew_lease,
    runs_of,
    take_run,
    watch_job,
)
from toolkit.language import ENGLISH

DATE = datetime(2025, 3, 2, 5, 0, tzinfo=UTC)
"""Two in the morning in São Paulo."""
ZONE = ZoneInfo("America/Sao_Paulo")
NOTICES = NoticeSettings(ENGLISH, ZONE, host="127.0.0.1", port=9)


def made(schedule):
    steps = [{"name": "sync", "command": "bucket sync"}]
    return Job.model_validate({"name": "nightly", "schedule": schedule, "steps": steps}, context={"zone": ZONE})


@pytest.fixture
def job():
    return made("0 2 * * *")


@pytest.fixture
def night(clock):
    clock.now = DATE + timedelta(minutes=5)
    return clock


def told(kind):
    return NOTICES.notices("nightly", DATE, kind, {})


def end(database, claim, clock, notices=(), status=RunStatus.DONE):
    with holding(database, claim, **ended(status, clock())) as connection:
        put_notices(connection, notices, clock)


def kinds(database):
    return [notice.kind for notice in notices_of(database, "nightly", DATE)]


def test_of_many_starts_at_once_one_takes_the_run_and_once_it_is_done_nobody(database, job, night):
    with ThreadPoolExecutor(6) as pool:
        claims = list(pool.map(lambda _: take_run(database, job, DATE, night), range(6)))
    assert sorted(claim.outcome for claim in claims) == [Outcome.RUNNING] * 5 + [Outcome.TAKEN]
    assert len(runs_of(database)) == 1
    end(database, next(claim for claim in claims if claim.outcome is Outcome.TAKEN), night)
    assert take_run(database, job, DATE, night, late=True).outcome is Outcome.DONE_BEFORE


def test_a_run_is_gone_on_with_when_its_lease_ran_out_and_the_old_holder_writes_nothing_more(database, job, night):
    first = take_run(database, job, DATE, night, lease=timedelta(0))
    with holding(database, first, steps=[{"name": "sync"}]):
        pass
    second = take_run(database, job, DATE, night)
    assert second.outcome is Outcome.TAKEN
    assert second.run.steps == [{"name": "sync"}]
    renew_lease(database, second, LEASE)
    with pytest.raises(LeaseLost):
        renew_lease(database, first, LEASE)
    with pytest.raises(LeaseLost):
        end(database, first, night)


def test_of_two_starts_that_find_a_run_whose_holder_died_one_takes_it(database, job, night):
    """Both look at the run at the same time: they wait for somebody else who has locked its row."""
    take_run(database, job, DATE, night, lease=timedelta(0))
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    with ThreadPoolExecutor(2) as pool:
        with database.transaction() as connection:
            connection.exec_driver_sql("SELECT 1 FROM audit.job_runs FOR UPDATE")
            starts = [pool.submit(take_run, database, job, DATE, night) for _ in range(2)]
            wait_until(lambda: rows(database, waiting) == [(2,)])
        assert sorted(start.result().outcome for start in starts) == [Outcome.RUNNING, Outcome.TAKEN]


def missed(database, job, clock):
    return watch_job(database, job, clock, NOTICES)[0]


def test_a_date_that_nobody_started_is_noted_and_told_once(database, job, night):
    assert missed(database, job, night) == []
    night.now = DATE + timedelta(days=3, hours=7)
    dates = [DATE + timedelta(days=days) for days in (1, 2, 3)]
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: missed(database, job, night), range(3)))
    assert sorted(found) == [[], [], dates]
    [notice] = notices_of(database, "nightly", dates[-1])
    assert (notice.kind, len(notice.content["dates"])) == ("missed", 3)
    assert {run.status for run in runs_of(database)} == {RunStatus.MISSED}


def test_the_last_date_is_caught_up_with_within_its_grace_time(database, job, night):
    missed(database, job, night)
    night.now = DATE + timedelta(days=3, hours=5)
    assert len(missed(database, job, night)) == 2
    latest = job.schedule.latest(night.now)
    assert latest == DATE + timedelta(days=3)
    assert take_run(database, job, latest, night).outcome is Outcome.TAKEN
    night.now = DATE + timedelta(days=4, hours=6, seconds=1)
    assert take_run(database, job, DATE + timedelta(days=4), night).outcome is Outcome.TOO_LATE
    assert runs_of(database, date=DATE + timedelta(days=4)) == []
    assert take_run(database, job, DATE + timedelta(days=4), night, late=True).outcome is Outcome.TAKEN
    night.now = DATE + timedelta(days=5, hours=6)  # the last moment of its grace time
    assert take_run(database, job, DATE + timedelta(days=5), night).outcome is Outcome.TAKEN


def test_another_schedule_makes_no_dates_of_the_past_missed(database, job, night):
    missed(database, job, night)
    night.now += timedelta(days=3)
    assert missed(database, made("0 1 * * *"), night) == []


def test_a_run_whose_process_died_is_told_once_as_failed_and_can_be_gone_on_with(database, job, night):
    take_run(database, job, DATE, night, lease=timedelta(0))
    assert [watch_job(database, job, night, NOTICES)[1] for _ in range(2)] == [[DATE], []]
    [run] = runs_of(database)
    assert (run.status, run.failure) == (RunStatus.FAILED, "RUNNER_DIED")
    [notice] = notices_of(database, "nightly", DATE)
    assert notice.content["code"] == "RUNNER_DIED"
    assert take_run(database, job, DATE, night).outcome is Outcome.TAKEN


def test_all_is_well_again_is_told_once_after_bad_news_only(database, job, night):
    end(database, take_run(database, job, DATE, night), night, told(NoticeKind.RECOVERED))
    assert kinds(database) == []
    night.now += timedelta(days=1)
    claim = take_run(database, job, DATE + timedelta(days=1), night)
    end(database, claim, night, told(NoticeKind.FAILED), RunStatus.FAILED)
    for _ in range(2):
        night.now += timedelta(days=1)
        again = take_run(database, job, night.now, night)
        end(database, again, night, told(NoticeKind.RECOVERED))
    assert kinds(database) == ["failed", "recovered"]


def test_a_notice_waits_until_it_is_delivered(database, job, night):
    claim = take_run(database, job, DATE, night)
    end(database, claim, night, told(NoticeKind.FAILED), RunStatus.FAILED)
    warnings = list[str]()
    for _ in range(2):
        deliver_notices(database, NOTICES, night, warnings.append)
    deliver_notices(database, NoticeSettings(ENGLISH, ZONE), night, warnings.append)  # of another channel
    [notice] = notices_of(database, "nightly", DATE)
    assert (notice.tries, notice.problem, notice.delivered_at) == (2, "ConnectionRefusedError", None)
    assert len(warnings) == 2
