"""The audit as of now and of moments past; findings over days, which keep their ids and become due."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from time import monotonic
from zoneinfo import ZoneInfo

import pytest

from tests.conftest import SettableClock
from tests.support.audits import DEADLINES as DEFAULT_DEADLINES
from tests.support.audits import audited, of_partner
from tests.support.uploaded_sales import Story, add_sale, day, execute, rows
from tests.support.waiting import sessions_waiting, wait_until
from toolkit.audit.changes import changes_between
from toolkit.audit.waivers import add_waiver, revoke_waiver
from toolkit.contract.deadlines import Deadlines
from toolkit.contract.evidence import FileKind
from toolkit.contract.findings import finding_id
from toolkit.database.connection import Database
from toolkit.database.observation_clock import TICK, final_moment, stamp
from toolkit.database.observations import observe_service
from toolkit.errors import DatabaseError, InvalidInput, NothingEvaluated
from toolkit.reports.notices import notices
from toolkit.reports.report import Report

MOMENT = timedelta(microseconds=1)


@pytest.fixture
def story(database, clock):
    """Tells what happened in March, at whose end it is now."""
    clock.now = day(31)
    return Story(database)


def test_each_moment_is_judged_by_what_was_seen_then(database, story):
    story.sale(seen_at=day(2), gone_at=day(10))
    pov, pov_key = story.record("S-1", "POV", requested_at=day(3))
    story.check(story.upload(pov_key, seen_at=day(4)), FileKind.AUDIO, at=day(4))
    _, contract_key = story.record("S-1", "DOC_CONTRATANTE", requested_at=day(5), lives=timedelta(days=1))
    contract = story.upload(contract_key, seen_at=day(7), gone_at=day(12))
    story.check(contract, FileKind.PDF, problem="ENCRYPTED", at=day(8))
    story.check(story.upload(contract_key, seen_at=day(12)), FileKind.PDF, at=day(12))
    story.sale(seen_at=day(10), gone_at=day(13), is_client_financial_responsible=False)
    story.sale(seen_at=day(13), gone_at=day(20), completed_at=day(13))
    story.withdraw("S-1", pov, at=day(14))

    def at(moment):
        try:
            result = audited(database, as_of=moment)
        except NothingEvaluated:
            return None
        told = ("status", "missing", "reasons", "problems")
        return " ".join(filter(None, *result.rows[[*told]].values)) if result.open else "compliant"

    never = "incomplete POV|DOC_CONTRATANTE NEVER_REQUESTED|NEVER_REQUESTED"
    assert [at(day(2) - MOMENT), at(day(2)), at(day(3) - MOMENT)] == [None, never, never]
    assert at(day(3)) == "incomplete POV|DOC_CONTRATANTE NOT_UPLOADED|NEVER_REQUESTED"
    assert at(day(3) + timedelta(hours=1)) == "incomplete POV|DOC_CONTRATANTE EXPIRED|NEVER_REQUESTED"
    assert at(day(4)) == "incomplete DOC_CONTRATANTE NEVER_REQUESTED"
    assert at(day(5)) == "incomplete DOC_CONTRATANTE NOT_UPLOADED"
    assert at(day(6)) == "incomplete DOC_CONTRATANTE EXPIRED"
    assert at(day(7)) == "compliant"  # nobody had looked into the file yet
    assert at(day(8)) == "incomplete DOC_CONTRATANTE UNUSABLE"
    assert at(day(10)) == (
        "incomplete AUT|DOC_CONTRATANTE|DOC_RESPONSAVEL_FINANCEIRO NEVER_REQUESTED|UNUSABLE|NEVER_REQUESTED"
    )
    assert at(day(12)) == "incomplete AUT|DOC_RESPONSAVEL_FINANCEIRO NEVER_REQUESTED|NEVER_REQUESTED"
    assert at(day(13)) == "compliant"
    assert at(day(14) - MOMENT) == "compliant"
    assert at(day(14)) == "incomplete POV WITHDRAWN COMPLETED_WITHOUT_EVIDENCE"
    assert at(day(20)) is None


def test_only_audits_of_now_are_noted_and_a_moment_that_nobody_can_know_is_refused(database, story, clock):
    story.sale()
    audited(database, as_of=day(3))
    audited(database)
    noted = "SELECT as_of, ran_at, sales, compliant, incomplete, conflict FROM audit.audit_runs"
    assert rows(database, noted) == [(clock.now, clock.now, 1, 0, 1, 0)]
    for moment, said in (
        (clock.now + MOMENT, "must lie in the past"),
        (clock.now.replace(tzinfo=None), "needs an offset"),
    ):
        with pytest.raises(InvalidInput, match=said):
            audited(database, as_of=moment)


def test_an_audit_waits_for_what_was_stamped_before_it_and_not_committed(database):
    add_sale(database)
    with ThreadPoolExecutor() as pool:
        with database.transaction() as connection:
            stamp(connection)
            running = pool.submit(audited, database)
            wait_until(lambda: running.done() or sessions_waiting(database))
            assert not running.done(), "the audit did not wait for what may still change its answer"
            connection.exec_driver_sql(
                "INSERT INTO audit.sale_observations (sale_id, utility_group, is_client_financial_responsible,"
                " created_at, seen_at) SELECT id, utility_group, is_client_financial_responsible, created_at,"
                " created_at FROM public.sales"
            )
        found = running.result()
    assert found.sales == 1
    assert database.run(stamp) == found.facts.as_of + TICK


def test_stamps_never_go_back_and_never_lie_in_the_future(database, clock):
    first = database.run(stamp)
    clock.now -= timedelta(hours=1)
    assert database.run(stamp) == first
    assert final_moment(database) == first
    assert database.run(stamp) == first + TICK
    clock.now += timedelta(days=9000)
    with pytest.raises(DatabaseError, match="The clock of this machine is more than 5 minutes ahead"):
        database.run(stamp)


def test_a_session_that_cannot_write_judges_by_the_latest_moment_that_is_final(database, clock):
    add_sale(database)
    observe_service(database)
    last = audited(database).facts.as_of
    clock.now += timedelta(hours=1)
    url = database.engine.url.update_query_dict({"options": "-c default_transaction_read_only=on"})
    with Database(url.render_as_string(hide_password=False), clock) as reader:
        assert final_moment(reader) == last
        assert final_moment(reader, last - timedelta(hours=1)) == last - timedelta(hours=1)


def test_a_stream_that_breaks_off_in_the_middle_is_told_and_breaks_the_others_off(database, story, clock):
    story.sale(seen_at=day(2))
    cancelled = "CASE WHEN n = 90000 THEN cancelled() ELSE true END"
    execute(
        database,
        "CREATE FUNCTION cancelled() RETURNS bool LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE 'cancelando comando por solicitação' USING ERRCODE = 'query_canceled'; END $$",
        "ALTER TABLE audit.evidence_requests RENAME TO requests_before",
        "CREATE VIEW audit.evidence_requests AS "
        "SELECT gen_random_uuid() AS evidence_id, repeat('x', 500) AS partner "
        f"FROM generate_series(1, 100000) AS n WHERE {cancelled}",
    )
    url = str(database.engine.url.update_query_dict({"options": "-clock_timeout=120s"}))
    with Database(url, clock) as limited, database.transaction() as connection:
        connection.exec_driver_sql("LOCK audit.told_findings")  # another stream has to wait
        began = monotonic()
        with pytest.raises(DatabaseError, match="broke off: cancelando comando por solicitação"):
            audited(limited, as_of=day(3))
        assert monotonic() - began < 110  # not until the lock is given up


POV = finding_id("MISSING_POV", "S-1")
YEAR_ENDS = datetime(2025, 12, 29, 15, 0, tzinfo=UTC)


@pytest.fixture
def gaps(database):
    """A sale of Norte without its recording, and one of Sul without a client."""
    told = Story(database)
    told.sale("S-1", partner="Norte", client_id=told.client())
    told.file("S-1", "DOC_CONTRATANTE")
    told.sale("S-2", partner="Sul")
    told.file("S-2", "KYC")
    return told


def audit(database, moment, **how):
    database.clock.now = moment
    return audited(database, **how)


def statuses(result):
    found = result.findings
    return dict(zip(found["code"], found["status"], strict=True))


def test_a_finding_is_open_then_resolved_then_reopened_under_one_id(database, gaps):
    _, key = gaps.record("S-1", "POV", requested_at=day(3), lives=timedelta(days=3))
    gaps.upload(key, seen_at=day(5), gone_at=day(8))

    first = audit(database, day(4))
    assert statuses(first) == {"MISSING_POV": "open", "WITHOUT_CLIENT": "open"}
    assert first.findings["id"][0] == POV
    resolved = audit(database, day(6))
    assert statuses(resolved) == {"WITHOUT_CLIENT": "open", "MISSING_POV": "resolved"}
    again = audit(database, day(9))
    (row,) = again.findings[again.findings["id"] == POV].to_dict("records")
    assert (row["status"], row["firstSeen"], row["openedAt"]) == ("reopened", day(4), day(9))

    gone = resolved.findings.set_index("id").loc[POV]
    assert (gone["firstSeen"], gone["lastSeen"]) == (day(4), day(4))
    assert resolved.changed["resolved"] == [POV]
    assert again.changed["reopened"] == [POV]
    assert list(again.trend["present"].tail(6)) == [2, 2, 1, 1, 1, 2]
    assert list(audited(database, as_of=day(8)).trend["present"].tail(3)) == [1, 1, 2]  # no audit was made then

    zone = DEFAULT_DEADLINES.timezone  # what ended at the very moment, or on the first day, is told
    assert list(changes_between(database, first.facts.as_of, resolved.facts.as_of, zone).ids("resolved")) == [POV]
    by_day = changes_between(database, resolved.facts.as_of, again.facts.as_of, zone).by_day
    assert by_day[["present", "came", "went"]].to_numpy().tolist()[0] == [1, 0, 1]


def test_a_waiver_holds_from_its_first_day_until_its_end_or_its_revocation(database, clock):
    """Both over the change of a year; the days are those of the zone."""
    deadlines = Deadlines(ZoneInfo("Africa/Lagos"))
    for sale_id in ("S-3", "S-4"):
        Story(database).sale(sale_id, seen_at=YEAR_ENDS)
    clock.now = YEAR_ENDS
    given = {"code": "MISSING_POV", "reason": "recording ordered", "owner": "ana", "approvedBy": "bruno"}
    days = {"start": "2025-12-30", "end": "2026-01-02"}
    waiver, revoked = (
        add_waiver(database, given | days | {"sale": sale_id}, today=date(2025, 12, 29))
        for sale_id in ("S-3", "S-4")
    )
    clock.now = datetime(2026, 1, 1, 0, 0, tzinfo=deadlines.timezone)
    revoke_waiver(database, revoked.id, reason="sent", revoked_by="ana")

    def status(sale_id, *moment):
        as_of = datetime(*moment, tzinfo=deadlines.timezone)
        found = audited(database.at(SettableClock()), as_of=as_of, deadlines=deadlines).findings
        return str(found.set_index(["saleId", "code"]).loc[(sale_id, "MISSING_POV"), "status"])

    assert status("S-3", 2025, 12, 29, 23, 59) == "open"
    assert status("S-3", 2025, 12, 30, 0, 0) == "waived"
    assert status("S-3", 2026, 1, 1, 23, 59, 59) == "waived"
    assert status("S-3", 2026, 1, 2, 0, 0) == "open"
    assert status("S-4", 2025, 12, 31, 23, 59, 59, 999_999) == "waived"
    assert status("S-4", 2026, 1, 1, 0, 0) == "open"
    assert waiver.days_left(date(2026, 1, 1)) == 1

    again = add_waiver(database, given | days | {"sale": "S-4"}, today=date(2026, 1, 1))
    assert again.id != revoked.id
    as_of = datetime(2025, 12, 31, tzinfo=deadlines.timezone)
    board = audited(database.at(SettableClock()), as_of=as_of, deadlines=deadlines).partners
    assert board["waived"].sum() == 2


def test_of_two_waivers_that_hold_the_one_that_ends_last_is_named(database, gaps, clock):
    clock.now = day(2)
    given = {"partner": "Norte", "reason": "r", "owner": "ana", "approvedBy": "bruno"}
    ends = ("2026-03-20", "2026-04-20", "2026-03-30")
    added = [add_waiver(database, {**given, "end": end}, today=date(2026, 3, 2)) for end in ends]
    found = audit(database, day(3)).findings
    assert set(found["waiverId"].dropna()) == {str(added[1].id)}


def test_a_finding_becomes_overdue_after_its_last_day(database, gaps):
    deadlines = Deadlines(DEFAULT_DEADLINES.timezone, {"MISSING_POV": 4})
    due = {}
    moments = {number: day(number) for number in (2, 3, 6, 7, 9)}  # a Monday, then Friday, Saturday and Monday
    moments[6] = datetime(2026, 3, 6, 23, 59, 59, 999_999, tzinfo=deadlines.timezone)  # the whole of its last day
    for number, moment in moments.items():
        found = audit(database, moment, deadlines=deadlines).findings.set_index("id").loc[POV]
        due[number] = (found["dueInBusinessDays"], found["overdue"], found["ageBusinessDays"])
    assert due == {2: (4, False, 0), 3: (3, False, 1), 6: (0, False, 4), 7: (-1, True, 4), 9: (-1, True, 5)}


def test_what_belongs_to_one_partner_holds_nothing_of_another(database, gaps, clock):
    gaps.sale("S-3", partner=" ", utility_group="Z")
    clock.now = day(9)
    observe_service(database)  # a blank name is none
    whole = audit(database, day(10), evidence_bucket=None)
    assert whole.facts.source.embedded == ("bucket",)
    assert list(whole.partners["partner"]) == ["", "Norte", "Sul"]
    sul = of_partner(database, whole, "Sul")
    assert (sul.sales, sul.open, list(sul.findings["saleId"])) == (1, 0, ["S-2"])
    assert "S-1" not in repr((sul.rows.to_dict(), sul.warned.to_dict(), sul.findings.to_dict()))
    assert "Norte" not in repr((sul.by_group.to_dict(), sul.trend.to_dict(), sul.partners.to_dict()))
    assert list(sul.warned["saleId"]) == ["S-2"]
    assert (len(whole.facts.source.service_notes), sul.facts.source.service_notes) == (1, ())


def test_a_sale_of_another_partner_takes_its_findings_and_their_trend_along(database, gaps):
    gaps.sale("S-3", partner="Leste", gone_at=day(5))
    gaps.sale("S-3", partner="Oeste", seen_at=day(5), utility_group="D")
    before = audit(database, day(4))
    given = {"sale": "S-3", "code": "MISSING_POV", "reason": "r", "owner": "ana", "approvedBy": "bia"}
    waiver = add_waiver(database, given | {"end": "2026-03-20"}, today=date(2026, 3, 4))
    assert audit(database, day(5)).finding_counts["waived"] == 1
    revoke_waiver(database, waiver.id, reason="sent", revoked_by="ana")
    after = audit(database, day(6))

    def of_s_3(result):
        own = result.findings.query("saleId == 'S-3'")
        return dict(zip(own["id"], own["status"], strict=True))

    assert of_s_3(before) == of_s_3(after)  # neither partner nor group is part of an id
    for result, partner in ((before, "Leste"), (after, "Oeste"), (audited(database, as_of=day(4)), "Leste")):
        own = of_partner(database, result, partner)
        standing = own.finding_counts["open"]
        assert standing == 3
        assert dict(result.partners[["partner", "trend"]].to_numpy())[partner] == standing
    assert set(after.partners["partner"]) == {"Norte", "Sul", "Oeste"}


def test_findings_of_a_sale_that_is_gone_are_not_told_as_mended(database, gaps):
    gaps.sale("S-3", gone_at=day(5), utility_group="E", client_id=gaps.client("39053344705"))
    gaps.sale("S-4", gone_at=day(5))
    gaps.sale("S-4", seen_at=day(5), client_id=gaps.client("11144477735"))  # changed, and there

    def ended(result):
        gone = result.findings.query("status == 'resolved'").astype(object)
        return dict(zip(zip(gone["saleId"], gone["code"], strict=True), gone["reason"].fillna(""), strict=True))

    audit(database, day(4))
    after = audit(database, day(6))
    assert ended(after) == {("S-3", "GROUP_UNKNOWN"): "SALE_GONE", ("S-4", "WITHOUT_CLIENT"): ""}
    ended_ids = [finding_id("GROUP_UNKNOWN", "S-3"), finding_id("WITHOUT_CLIENT", "S-4")]
    assert after.changed["resolved"] == sorted(ended_ids)
    assert after.change_counts["saleGone"] == 1
    assert "only because its sale is gone: nobody mended it" in str(notices(Report(after)))
    asked_later = audited(database.at(SettableClock(day(60))), as_of=day(6))
    assert ended(asked_later) == ended(after)

    gaps.sale("S-3", seen_at=day(7), gone_at=day(9), utility_group="E", client_id=gaps.client("12345678909"))
    assert statuses(audit(database, day(8)))["GROUP_UNKNOWN"] == "reopened"
    gaps.sale("S-3", seen_at=day(9), client_id=gaps.client("98765432100"))
    mended = audit(database, day(10))
    assert ended(mended)["S-3", "GROUP_UNKNOWN"] == ""
    assert mended.change_counts["saleGone"] == 0
