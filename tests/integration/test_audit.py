"""The audit on PostgreSQL: as of now, and as of moments past."""

from datetime import timedelta

import pytest

from tests.support.audits import audited
from tests.support.observations import Story, day
from tests.support.uploaded_sales import rows
from toolkit.contract.evidence import EvidenceType, FileKind
from toolkit.errors import InvalidInput, NothingEvaluated

MOMENT = timedelta(microseconds=1)


@pytest.fixture
def story(database):
    return Story(database)


@pytest.fixture
def clock(clock):
    clock.now = day(31)
    return clock


def verdicts(result):
    """Each open sale: status, what is missing and why, problems."""
    return {
        row.saleId: " ".join(filter(None, [row.status, row.missing, row.reasons, row.problems]))
        for row in result.rows.itertuples()
    }


def test_each_moment_is_judged_by_what_was_seen_then(database, story, clock):
    story.sale(seen_at=day(2), gone_at=day(10))
    pov, pov_key = story.record("S-1", "POV", requested_at=day(3))
    story.check(story.upload(pov_key, seen_at=day(4)), FileKind.AUDIO, at=day(4))
    _, contract_key = story.record("S-1", "DOC_CONTRATANTE", requested_at=day(5), lives=timedelta(days=1))
    contract = story.upload(contract_key, seen_at=day(7), gone_at=day(12))
    story.check(contract, FileKind.PDF, problem="ENCRYPTED", at=day(8))
    story.check(story.upload(contract_key, seen_at=day(12)), FileKind.PDF, at=day(12))
    story.sale(seen_at=day(10), gone_at=day(13), is_client_financial_responsible=False)
    story.sale(seen_at=day(13), gone_at=day(20), completed_at=day(13))
    story.withdraw(pov, at=day(14))

    def at(moment):
        try:
            result = audited(database, clock=clock, as_of=moment)
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


def test_totals_and_rows(database, story, clock):
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

    result = audited(database, clock=clock, embedded_bucket=True)

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
    assert result.source.embedded == ("bucket",)
    assert result.source.last_sync.finished_at == day(30)


def test_only_audits_of_now_are_noted(database, story, clock):
    story.sale()
    audited(database, clock=clock, as_of=day(3))
    audited(database, clock=clock)
    noted = "SELECT as_of, ran_at, sales, compliant, incomplete, conflict FROM audit.audit_runs"
    assert rows(database, noted) == [(clock.now, clock.now, 1, 0, 1, 0)]


def test_a_moment_that_nobody_can_know_is_refused(database, clock):
    for moment, said in (
        (clock.now + MOMENT, "must lie in the past"),
        (clock.now.replace(tzinfo=None), "needs an offset"),
        (clock.now.replace(year=1), "not before 1970"),
    ):
        with pytest.raises(InvalidInput, match=said):
            audited(database, clock=clock, as_of=moment)
