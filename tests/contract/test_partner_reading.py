"""What a partner reads: the evidence of a sale, whether it may be completed, and its own findings."""

from datetime import date, timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest

from tests.contract.conftest import SUBJECT, issue, partner_of
from tests.contract.test_endpoints import errors
from tests.support.raw_http import in_process
from tests.support.request_bodies import UPLOAD
from tests.support.served_process import SECRET
from tests.support.uploaded_sales import MP3, PDF, add_sale, execute
from tests.support.waiting import wait_until
from toolkit.contract.people import TokenScope
from toolkit.database.connection import Lock, take
from toolkit.database.tables import custody_events
from toolkit.errors import FindingNotFound, InvalidFields, SaleNotFound
from toolkit.http import documents
from toolkit.kit.connection import Kit
from toolkit.partner import PartnerClient

CALL, PAPER = ("call.mp3", "audio/mpeg", MP3), ("contract.pdf", "application/pdf", PDF)
FILES = {"POV": CALL, "DOC_CONTRATANTE": PAPER, "KYC": PAPER}


@pytest.fixture(scope="module")
def two(environ, audited):
    """Two partners with sales, what they call the service by, and an audit that found what their sales lack.

    It is the newest audit for as long as the module runs: that of ``audited`` comes before it.
    """

    def partner(name, count):
        url, token = audited.server.url, issue(environ, f"{name}-crm", partner=name)
        sales = sorted(audited.sale(f"V-{uuid4()}", partner=name) for _ in range(count))
        return SimpleNamespace(
            name=name, sales=sales, client=PartnerClient(url, token), http=partner_of(url, token)
        )

    found = SimpleNamespace(luz=partner(f"Luz {uuid4()}", 3), sol=partner(f"Sol {uuid4()}", 2))
    with Kit(environ) as kit:
        kit.audit()
    # The service looks for a newer audit some seconds after the last time: somebody may have asked just before.
    wait_until(lambda: found.luz.http.get("/findings").json()["findings"], step=0.2)
    yield found
    for each in (found.luz, found.sol):
        each.http.close()
        each.client.close()


def upload(client, sale, evidence_type, folder):
    name, media_type, content = FILES[evidence_type]
    path = folder / name
    path.write_bytes(content)
    client.upload(sale, path, evidence_type=evidence_type, media_type=media_type)


def test_the_gate_opens_when_the_last_missing_file_lies_in_the_bucket(service, two, tmp_path):
    sale = service.sale(f"V-{uuid4()}", partner=two.luz.name)

    before = two.luz.client.completion(sale)
    assert (before["mayBeCompleted"], before["status"], before["completedAt"]) == (False, "incomplete", None)
    assert [(each["evidenceType"], each["reason"]) for each in before["missing"]] == [
        ("POV", "NEVER_REQUESTED"),
        ("DOC_CONTRATANTE", "NEVER_REQUESTED"),
    ]
    assert all("credentials" in each["whatToDo"] for each in before["missing"])

    upload(two.luz.client, sale, "DOC_CONTRATANTE", tmp_path)
    two.luz.client.request_upload(sale, dict(documents.RECORDING_EXAMPLE))
    between = two.luz.client.completion(sale)
    assert [(each["evidenceType"], each["reason"]) for each in between["missing"]] == [("POV", "NOT_UPLOADED")]

    upload(two.luz.client, sale, "POV", tmp_path)
    after = two.luz.client.completion(sale)
    assert (after["mayBeCompleted"], after["missing"], after["notExamined"]) == (True, [], 2)


def test_each_type_is_told_with_its_state_and_what_to_do(service, two, tmp_path):
    sale = service.sale(f"V-{uuid4()}", partner=two.luz.name)
    upload(two.luz.client, sale, "DOC_CONTRATANTE", tmp_path)

    found = two.luz.client.evidences(sale)

    states = {each["evidenceType"]: (each["required"], each["state"]) for each in found["evidences"]}
    assert states == {
        "POV": (True, "missing"),
        "AUT": (False, "notRequired"),
        "DOC_CONTRATANTE": (True, "present"),
        "DOC_RESPONSAVEL_FINANCEIRO": (False, "notRequired"),
        "DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO": (False, "notRequired"),
        "KYC": (False, "notRequired"),
    }
    [missing] = [each for each in found["evidences"] if each["state"] == "missing"]
    assert missing["reason"] == "NEVER_REQUESTED"
    assert missing["whatToDo"]

    upload(two.luz.client, sale, "KYC", tmp_path)
    conflict = two.luz.client.evidences(sale)
    assert (conflict["status"], [each["code"] for each in conflict["problems"]]) == ("conflict", ["KYC_NOT_ALONE"])


@pytest.mark.parametrize("what", ["evidences", "completion"])
def test_the_sale_of_another_partner_does_not_exist(two, what):
    theirs = two.sol.http.get(f"/sales/{two.luz.sales[0]}/{what}")
    unknown = two.sol.http.get(f"/sales/V-{uuid4()}/{what}")

    assert (theirs.status_code, theirs.json()) == (404, {"message": "Sale not found", "code": 404})
    assert theirs.json() == unknown.json()
    assert errors(two.sol.http.get(f"/sales//{what}")) == {"saleId": "Required"}
    with pytest.raises(SaleNotFound):
        getattr(two.sol.client, what)(two.luz.sales[0])


def test_who_asks_for_the_sale_of_another_does_not_wait_for_it(two, audited):
    """How long the answer takes would tell that the sale is there, and that its partner is asking."""
    sale = two.luz.sales[0]
    with audited.database.transaction() as connection:
        take(connection, Lock.OPEN_FORMS, sale)
        theirs = two.sol.http.put(f"/sales/{sale}/evidences", json=UPLOAD)
    assert theirs.status_code == 404


def test_a_partner_reads_the_findings_of_its_own_sales_page_by_page(two):
    found = list(two.luz.client.findings())

    assert {each["saleId"] for each in found} == set(two.luz.sales)
    assert {each["code"] for each in found} >= {"MISSING_POV", "MISSING_DOC_CONTRATANTE"}
    assert all(each["status"] in {"open", "reopened"} and each["dueAt"] and each["whatToDo"] for each in found)

    read, after = [], ""
    while after is not None:
        page = two.luz.http.get("/findings", params={"limit": 2, **({"after": after} if after else {})}).json()
        assert len(page["findings"]) <= 2
        read, after = [*read, *page["findings"]], page["nextAfter"]
    assert [each["id"] for each in read] == sorted(each["id"] for each in found)
    assert not set(two.luz.sales) & {each["saleId"] for each in two.sol.client.findings()}


def test_findings_are_chosen_by_the_day_on_which_they_are_due(two):
    days = {each["dueAt"][:10] for each in two.luz.client.findings()}
    latest, month = date.fromisoformat(max(days)), timedelta(days=30)

    def count(**chosen):
        return len(list(two.luz.client.findings(**chosen)))

    assert (count(due_before=latest - month), count(due_before=latest + month)) == (0, count())
    with pytest.raises(InvalidFields):
        list(two.luz.client.findings(status="solved"))


def test_findings_that_did_not_change_are_not_sent_again(two):
    first = two.luz.http.get("/findings?status=open")
    tag = first.headers["etag"]
    assert first.headers["cache-control"] == "private, no-cache"

    again = two.luz.http.get("/findings?status=open", headers={"If-None-Match": f'"other", {tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    # The tag of one partner says nothing to another, and that of one question nothing about another.
    assert two.sol.http.get("/findings?status=open", headers={"If-None-Match": tag}).status_code == 200
    assert two.luz.http.get("/findings", headers={"If-None-Match": tag}).status_code == 200


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("status=solved", "status"),
        ("status=open&status=waived", "status"),
        ("dueBefore=tomorrow", "dueBefore"),
        ("dueBefore=1764201600", "dueBefore"),
        ("after=' OR 1=1", "after"),
        ("after=" + "0" * 4000, "after"),
        ("after=%F0%9F%92%A3", "after"),
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("limit=1e2", "limit"),
        ("partner=Sol", "partner"),
        ("due_before=2026-01-01", "due_before"),
    ],
)
def test_a_parameter_that_is_not_understood_is_refused(two, query, field):
    told = errors(two.luz.http.get(f"/findings?{query}"))
    assert set(told) == {field}
    assert "key" not in told[field]


def test_a_cursor_of_another_partner_shows_nothing_of_it(two):
    theirs = [each["id"] for each in two.sol.client.findings()]

    page = two.luz.http.get("/findings", params={"after": min(theirs)}).json()
    assert {each["saleId"] for each in page["findings"]} <= set(two.luz.sales)


@pytest.mark.parametrize("path", ["/findings", "/sales/V-1/evidences", "/sales/V-1/completion"])
def test_reading_needs_a_token_with_the_scope_for_evidence(environ, service, stranger, path):
    register, request = (issue(environ, scopes=(scope,)) for scope in TokenScope)
    assert stranger.get(path).status_code == 401
    with partner_of(service.server.url, register) as registering:
        assert registering.get(path).status_code == 403
        assert registering.post(f"/findings/{uuid4()}/answers", json={"answer": "sentAgain"}).status_code == 403
    with partner_of(service.server.url, request) as asking:
        allowed = asking.delete(path).headers["allow"]
    assert allowed == ("GET, HEAD, PUT" if path.endswith("evidences") else "GET, HEAD")


def test_without_an_audit_nobody_is_told_that_nothing_is_wrong(run, embedded_environment):
    environ = embedded_environment | {"TOOLKIT_JWT_SECRET": SECRET}
    run("status", within=environ)
    with in_process(environ) as server, partner_of(server.url, issue(environ)) as partner:
        answer = partner.get("/findings")
    assert (answer.status_code, answer.json()["message"]) == (503, "No audit has been made yet. Try again later.")
    assert answer.headers["retry-after"]


def test_a_finding_that_ended_with_its_sale_is_told_so(run, embedded_environment, database):
    environ = embedded_environment | {"TOOLKIT_JWT_SECRET": SECRET}
    for sale in ("V-1", "V-2"):
        add_sale(database, sale, partner=SUBJECT)
    run("audit", within=environ, ends=3)
    execute(database, "DELETE FROM sales WHERE id = 'V-1'")
    run("audit", within=environ, ends=3)
    with in_process(environ) as server, partner_of(server.url, issue(environ)) as partner:
        found = partner.get("/findings").json()["findings"]
    assert {each["reason"] for each in found if each["saleId"] == "V-1"} == {"SALE_GONE"}


def test_a_partner_answers_a_finding_and_the_verdict_stays(audited, environ, run, two):
    finding = next(each for each in two.luz.client.findings() if each["code"] == "MISSING_POV")
    gate = two.luz.client.completion(finding["saleId"])
    words = {"until": date(2099, 1, 1), "text": '=HYPERLINK("http://evil")'}
    will_come = two.luz.client.answer(finding["id"], "willCome", **words)
    two.luz.client.answer(finding["id"], "waiverAsked", text="The customer moved")

    listed = run("partner", "answers", "--partner", two.luz.name, "--json", within=environ).told
    newest, first = listed["answers"]
    told = (newest["answer"], newest["saleId"], newest["code"])
    assert told == ("waiverAsked", finding["saleId"], "MISSING_POV")
    assert (first["id"], first["until"], first["text"][0]) == (str(will_come), "2099-01-01", "=")
    assert two.luz.client.completion(finding["saleId"]) == gate
    [again] = [each for each in two.luz.client.findings() if each["id"] == finding["id"]]
    assert again == finding
    kinds = audited.rows(custody_events, kind="FINDING_ANSWERED")
    assert {each["detail"]["finding"] for each in kinds} == {finding["id"]}


@pytest.mark.parametrize(
    ("body", "invalid"),
    [
        ({}, {"answer": "Required"}),
        ({"answer": "soon"}, {"answer": "Must be one of sentAgain, willCome, disputed, waiverAsked"}),
        ({"answer": "willCome"}, {"until": "Required"}),
        ({"answer": "willCome", "until": "2020-01-01"}, {"until": "Must not be in the past"}),
        ({"answer": "willCome", "until": "01/02/2099"}, {"until": "Must be a date written YYYY-MM-DD"}),
        ({"answer": "disputed", "text": "  "}, {"text": "Required"}),
        ({"answer": "waiverAsked", "text": "x" * 256}, {"text": "Must have at most 255 characters"}),
    ],
)
def test_an_answer_that_breaks_a_rule_is_refused(two, body, invalid):
    finding = next(iter(two.luz.client.findings()))
    assert errors(two.luz.http.post(f"/findings/{finding['id']}/answers", json=body)) == invalid


def test_only_the_partner_of_a_finding_may_answer_it(two):
    theirs = next(iter(two.sol.client.findings()))
    body = {"answer": "sentAgain"}

    for finding in (theirs["id"], str(uuid4()), "x", "..%2F..", "%00"):
        answer = two.luz.http.post(f"/findings/{finding}/answers", json=body)
        assert (answer.status_code, answer.json()) == (404, {"message": "Finding not found", "code": 404})
    with pytest.raises(FindingNotFound):
        two.luz.client.answer(theirs["id"], "sentAgain")
    large = {"answer": "disputed", "text": "x" * 70_000}
    assert two.sol.http.post(f"/findings/{theirs['id']}/answers", json=large).status_code == 413
