"""The audit on PostgreSQL, as of now and of moments past; `toolkit audit`, `report` and `verify`."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from time import monotonic

import pytest

from tests.support.audits import audited
from tests.support.uploaded_sales import MP3, PDF, Story, add_record, add_sale, day, execute, rows
from tests.support.waiting import sessions_waiting, wait_until
from toolkit.contract.evidence import EvidenceType, FileKind
from toolkit.database.connection import Database
from toolkit.database.observation_clock import TICK, final_moment, stamp
from toolkit.database.observations import observe_service
from toolkit.errors import DatabaseError, InvalidInput, NothingEvaluated

MOMENT = timedelta(microseconds=1)


@pytest.fixture
def story(database, clock):
    """Tells what happened in March, at whose end it is now."""
    clock.now = day(31)
    return Story(database)


def verdicts(result):
    """Each open sale: status, what is missing and why, problems."""
    return {
        row.saleId: " ".join(filter(None, [row.status, row.missing, row.reasons, row.problems]))
        for row in result.rows.itertuples()
    }


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
        return verdicts(result).get("S-1", "compliant")

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


def test_totals_and_rows(database, story):
    client = story.client(cpf="52998224725")
    story.sale("compliant", client_id=client)
    story.file("compliant", EvidenceType.KYC)
    story.sale("new", client_id=client, created_at=day(30), partner="Sol")
    story.sale("old", utility_group="B", created_at=day(1), is_client_financial_responsible=False)
    story.file("old", EvidenceType.POV)
    story.record("old", "AUT", requested_at=day(31))
    story.sale("sold", utility_group="D", created_at=day(20), completed_at=day(21), client_id=client)
    _, key = story.record("sold", "KYC", requested_at=day(5))
    story.upload(key)
    story.file("sold", EvidenceType.POV)
    story.sale("odd", utility_group="Z", created_at=day(25), client_id=client)
    story.record("odd", "SELFIE")
    story.synced(day(30))

    result = audited(database, embedded_bucket=True)

    assert (result.sales, result.compliant, result.incomplete, result.conflict, result.open) == (5, 1, 2, 2, 4)
    assert (result.without_client, result.unexamined) == (1, 1)
    assert list(result.rows["saleId"]) == ["sold", "old", "odd", "new"]
    assert list(result.rows["ageDays"]) == [11, 30, 6, 1]
    new = result.rows.set_index("saleId").loc["new"]
    expected = {
        "utilityGroup": "A",
        "status": "incomplete",
        "missing": "POV|DOC_CONTRATANTE",
        "reasons": "NEVER_REQUESTED|NEVER_REQUESTED",
        "problems": "",
        "counted": "",
        "isClientFinancialResponsible": True,
        "partner": "Sol",
        "clientId": str(client),
        "cpf": "***.982.247-**",
        "createdAt": day(30),
        "ageDays": 1,
        **dict.fromkeys(("unexamined", "verified", "firstBytes", "never", "unreadable"), 0),
    }
    assert {name: new[name] for name in expected} == expected
    assert new[["completedAt", "oldestRequest"]].isna().all()
    assert result.rows["cpf"].dropna().unique().tolist() == ["***.982.247-**"]
    assert result.facts.source.embedded == ("bucket",)
    assert result.facts.source.last_sync.finished_at == day(30)


def test_only_audits_of_now_are_noted(database, story, clock):
    story.sale()
    audited(database, as_of=day(3))
    audited(database)
    noted = "SELECT as_of, ran_at, sales, compliant, incomplete, conflict FROM audit.audit_runs"
    assert rows(database, noted) == [(clock.now, clock.now, 1, 0, 1, 0)]


def test_a_moment_that_nobody_can_know_is_refused(database, clock):
    for moment, said in (
        (clock.now + MOMENT, "must lie in the past"),
        (clock.now.replace(tzinfo=None), "needs an offset"),
    ):
        with pytest.raises(InvalidInput, match=said):
            audited(database, as_of=moment)


@pytest.fixture
def march(database):
    """Two sales of March, one of them with a file that was there until the 20th."""
    told = Story(database)
    told.sale("good", partner="Norte")
    told.file("good", EvidenceType.KYC)
    told.sale("bad", utility_group="B", client_id=told.client(cpf="52998224725"))
    _, key = told.record("bad", "POV")
    told.upload(key, gone_at=day(20))
    return told


def audit_of_now(run, *words, **environ):
    ran = run("--quiet", "audit", "--json", *words, ends=None, **environ)
    return ran.status, ran.told


def test_an_audit_of_now_looks_at_sales_and_bucket_first(run, embedded_environment, march, s3):
    bucket = embedded_environment["EVIDENCE_BUCKET"]
    march.file("bad", EvidenceType.DOC_CONTRATANTE)
    _, pov = march.record("bad", "POV")
    s3.put_object(Bucket=bucket, Key=pov, Body=MP3)

    status, unseen = audit_of_now(run, "--no-sync")
    assert (status, unseen["sales"], unseen["compliant"], unseen["incomplete"]) == (3, 2, 1, 1)
    assert unseen["source"]["lastSync"] is None

    # What the observations of the story tell is not in the bucket: the files are gone, but for the audio.
    status, seen = audit_of_now(run)
    assert (status, seen["compliant"], seen["incomplete"]) == (3, 0, 2)
    assert [row["evidenceType"] for row in seen["missing"] if row["NEVER_REQUESTED"] + row["EXPIRED"]] == [
        "POV",
        "DOC_CONTRATANTE",
    ]
    assert seen["source"]["lastSync"] is not None
    assert seen["source"]["embedded"] == []

    _, contract = march.record("bad", "DOC_CONTRATANTE")
    _, kyc = march.record("good", "KYC")
    for key in (contract, kyc):
        s3.put_object(Bucket=bucket, Key=key, Body=PDF)
    assert audit_of_now(run)[0] == 0


EVENTS = """
    SELECT kind, CAST(detail ->> 'evidence' AS uuid)
    FROM audit.custody_events WHERE detail ? 'evidence' ORDER BY id
"""


def test_what_the_service_changes_is_a_new_observation_and_an_event(database, clock):
    add_sale(database)
    (kept, _), (retyped, _), (deleted, _) = (add_record(database) for _ in range(3))
    assert observe_service(database)["records"] == (3, 0, 0)
    assert observe_service(database)["records"] == (0, 0, 0)
    clock.now += timedelta(hours=1)
    execute(
        database,
        f"UPDATE evidences SET evidence_type = 'KYC' WHERE id = '{retyped}'",
        f"DELETE FROM evidences WHERE id = '{deleted}'",
    )
    assert observe_service(database)["records"] == (0, 1, 1)
    told = rows(database, EVENTS)
    assert set(told[:3]) == {("RECORDED", each) for each in (kept, retyped, deleted)}
    assert set(told[3:]) == {("RECORD_GONE", retyped), ("RECORD_GONE", deleted), ("RECORD_CHANGED", retyped)}
    assert len(told) == 6


def test_a_record_counts_from_when_it_was_seen_though_the_service_dates_it_back(database, clock):
    add_sale(database)
    observe_service(database)
    before = audited(database)
    clock.now += timedelta(days=1)
    add_record(database, requested_at=before.facts.as_of - timedelta(days=1))
    observe_service(database)
    after = audited(database)
    again = audited(database, as_of=before.facts.as_of)
    assert again.rows["reasons"].tolist() == before.rows["reasons"].tolist() == ["NEVER_REQUESTED|NEVER_REQUESTED"]
    assert after.rows["reasons"].tolist() == ["NEVER_REQUESTED|EXPIRED"]


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
    with database.transaction() as connection:
        assert stamp(connection) == found.facts.as_of + TICK


def test_stamps_never_go_back_and_never_lie_in_the_future(database, clock):
    def stamped():
        with database.transaction() as connection:
            return stamp(connection)

    first = stamped()
    clock.now -= timedelta(hours=1)
    assert stamped() == first
    assert final_moment(database) == first
    assert stamped() == first + TICK
    clock.now += timedelta(days=9000)
    with pytest.raises(DatabaseError, match="The clock of this machine is more than 5 minutes ahead"):
        stamped()


def test_a_session_that_cannot_write_judges_by_the_latest_moment_that_is_final(database, clock):
    add_sale(database)
    observe_service(database)
    last = audited(database).facts.as_of
    clock.now += timedelta(hours=1)
    url = database.engine.url.update_query_dict({"options": "-c default_transaction_read_only=on"})
    reader = Database(url.render_as_string(hide_password=False), clock)
    assert final_moment(reader) == last
    assert final_moment(reader, last - timedelta(hours=1)) == last - timedelta(hours=1)
    reader.dispose()


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
    limited = Database(str(database.engine.url.update_query_dict({"options": "-clock_timeout=120s"})), clock)
    with database.transaction() as connection:
        connection.exec_driver_sql("LOCK audit.told_findings")  # another stream has to wait
        began = monotonic()
        with pytest.raises(DatabaseError, match="broke off: cancelando comando por solicitação"):
            audited(limited, as_of=day(3))
        assert monotonic() - began < 110  # not until the lock is given up
    limited.dispose()
