"""A partner is told what it has to mend, mends it, and is told no more."""

import io
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from types import SimpleNamespace
from unittest.mock import Mock
from uuid import UUID

import pandas as pd
import pytest
from openpyxl import load_workbook

from tests.support.report_figures import everything_in
from tests.support.request_bodies import CLIENT
from tests.support.scripted_server import Answer, scripted
from tests.support.uploaded_sales import MONDAY, WHEN, add_sale, execute, rows
from tests.unit.test_jobs import Mailbox, certificate, mail_server  # noqa: F401  # a fixture
from toolkit.audit.partners import keep_answer, load_answers
from toolkit.contract.resources import FindingAnswer
from toolkit.database.observation_clock import TICK
from toolkit.intake.registration import register_client
from toolkit.jobs.partner_notices import Stage, notify_partners
from toolkit.kit.connection import Kit
from toolkit.language import language
from toolkit.reports.reading import read_audited

ADDRESSES = """
[partner."Luz do Vale"]
mail = ["ana@luz.example.com"]
language = "pt-BR"

[partner.Sol]
mail = ["rui@sol.example.com"]
"""

JOBS = """
[jobs.nightly]
schedule = "0 2 * * *"
grace = "2d"
steps = [{ name = "audit", command = "audit" }, { name = "partners", command = "partner notify" }]
"""


@pytest.fixture
def office(embedded_environment, database, certificate, tmp_path, monkeypatch, clock):  # noqa: F811
    """A kit whose mails come to a mailbox, the addresses of two partners, and a sale of one of them."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    mailbox, place = Mailbox(), tmp_path / "partners.toml"
    place.write_text(ADDRESSES)
    clock.now = MONDAY
    client = register_client(database, CLIENT).client_id
    add_sale(database, "V-SOL-1", partner="Sol", client_id=client)
    with mail_server(mailbox, certificate) as known:
        environ = embedded_environment | known | {"TOOLKIT_PARTNERS": str(place), "TOOLKIT_LANGUAGE": "en"}
        with Kit(environ, clock=clock) as kit:
            known = {"mailbox": mailbox, "place": place, "environ": environ, "clock": clock, "client": client}
            yield SimpleNamespace(kit=kit, **known)


def night(office, days=1):
    """Audit and tell the partners some days later; the recipients of the mails."""
    office.clock.now += timedelta(days=days)
    before = len(office.mailbox.mails)
    office.kit.audit()
    assert all(each.problem is None for each in notify_partners(office.kit).result)
    return [mail.rcpt_tos[0] for mail in office.mailbox.mails[before:]]


def mail_of(office, place=-1):
    """The newest mail, or the one at another place: the message and the files in it."""
    mail = message_from_bytes(office.mailbox.mails[place].content, policy=policy.default)
    return mail, {part.get_filename(): part.get_content() for part in mail.iter_attachments()}


def everything_told(office, folder, place=-1):
    """All that a mail and its files hold, as one text."""
    mail, _ = mail_of(office, place)
    told = [mail["Subject"], mail.get_body().get_content()]
    for part in mail.iter_attachments():
        (path := folder / part.get_filename()).write_bytes(part.get_payload(decode=True))
        told.append(everything_in(path))
    return "\n".join(told)


def test_a_gap_is_told_mended_and_told_no_more(office, database, add_file, tmp_path):
    add_sale(database, "V-LUZ-1", partner="Luz do Vale", client_id=office.client)
    add_file("V-LUZ-1", "DOC_CONTRATANTE", **WHEN)
    assert night(office) == ["ana@luz.example.com", "rui@sol.example.com"]
    ours, files = mail_of(office, -2)
    assert "Luz do Vale: " in ours["Subject"]
    assert set(files) == {"missing-evidence-Luz_do_Vale.html", "missing-evidence-Luz_do_Vale.xlsx"}
    told = everything_told(office, tmp_path, -2)
    assert "V-LUZ-1" in told
    assert not re.search(r"V-SOL-1|\bSol\b", told)
    # Told once: the same day nothing more, the next day nothing new.
    assert notify_partners(office.kit).result == []
    assert night(office) == []

    add_file("V-LUZ-1", "POV", **WHEN)
    # Three business days before it is due the other partner is told again, and when it is overdue.
    assert [to for days in (1, 3, 3, 5) for to in night(office, days)] == ["rui@sol.example.com"] * 2
    assert "overdue" in mail_of(office)[0]["Subject"]

    months = read_audited(office.kit.last_audit()).partner_months.set_index("partner")
    assert set(months["month"]) == {"2026-03"}
    of_luz, of_sol = months.loc["Luz do Vale"], months.loc["Sol"]
    counted = ["findings", "told", "answered", "mended", "stillOpen", "lateUntold"]
    assert of_luz[counted].tolist() == [1, 1, 0, 1, 0, 0]
    assert of_luz["medianDays"] == 2  # it came on Tuesday, stood on Wednesday, and was mended on Thursday
    assert of_sol[counted].tolist()[:5] == [2, 2, 0, 0, 2]

    assert "2026-03" in str(office.kit.open_audit("latest").partners())
    events = rows(database, "SELECT detail FROM audit.custody_events WHERE kind = 'PARTNER_TOLD'")
    assert len(events) == 4
    assert all(len(each["files"]) == 2 and each["findings"] for (each,) in events)
    assert "Luz" not in json.dumps([each for (each,) in events])

    # The next mail, of another sale, does not name the one that was mended.
    add_sale(database, "V-LUZ-2", partner="Luz do Vale", client_id=office.client)
    assert night(office) == ["ana@luz.example.com"]
    told = everything_told(office, tmp_path)
    assert ("V-LUZ-2" in told, "V-LUZ-1" in told) == (True, False)


def test_a_mail_that_is_refused_or_stopped_is_tried_again_under_the_same_id(office, database, monkeypatch):
    office.kit.audit()
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr("toolkit.jobs.partner_notices.record_event", Mock(side_effect=SystemExit))  # by a signal
        notify_partners(office.kit)
    office.mailbox.answer = "452 mailbox full"

    [first] = notify_partners(office.kit).result
    assert first.problem == "SMTPDataError: the mail server answered 452"
    office.mailbox.answer = "250 OK"
    [second] = notify_partners(office.kit).result
    assert second.problem is None

    assert len({mail_of(office, place)[0]["Message-ID"] for place in (-1, -2)}) == 1
    [(notice, tries)] = rows(database, "SELECT id, tries FROM audit.partner_notices")
    assert tries == 2
    mail, _ = mail_of(office)
    assert mail["Message-ID"] == f"<{notice}@example.com>"


def test_a_job_mails_partners_and_tells_the_office_of_one_that_it_could_not_tell(office, run, tmp_path):
    (tmp_path / "jobs.toml").write_text(JOBS)
    environ = office.environ | {"TOOLKIT_JOBS": str(tmp_path / "jobs.toml"), "TOOLKIT_JOBS_OUT": str(tmp_path)}
    office.place.write_text(ADDRESSES.replace("rui@", "full@"))
    office.mailbox.refused["full@sol.example.com"] = "452 mailbox full"

    ran = run("job", "run", "nightly", "--json", within=environ)
    assert ran.told["counts"]["partners"] == {"untold": 1}
    mail, files = mail_of(office)
    assert (mail["To"], files) == ("ana@example.com, bruno@example.com", {})
    assert "Partners that could not be told at every address: 1" in mail.get_content()
    office.mailbox.refused.clear()
    assert run("partner", "notify", "--json", within=environ).told["untold"] == 0
    assert mail_of(office)[0]["To"] == "full@sol.example.com"


def test_a_partner_is_told_at_most_once_a_day(office, database):
    office.place.write_text(ADDRESSES.replace('"rui@', '"gone@sol.example.com", "rui@'))
    office.mailbox.refused["gone@sol.example.com"] = "550 no such user"
    office.kit.audit()
    assert notify_partners(office.kit).result[0].problem == "the mail server refused some recipients for good"
    office.place.write_text(ADDRESSES)
    add_sale(database, "V-SOL-2", partner="Sol")

    assert night(office, days=0) == []
    assert night(office) == ["rui@sol.example.com"]


def test_a_sale_that_another_partner_took_over_is_told_to_it(office, database):
    assert night(office) == ["rui@sol.example.com"]
    execute(database, "UPDATE sales SET partner = 'Luz do Vale' WHERE id = 'V-SOL-1'")
    assert night(office) == ["ana@luz.example.com"]
    told = office.clock.now
    office.clock.now += timedelta(hours=1)
    office.kit.audit()
    found = office.kit.last_audit().sql("SELECT partner, told_at FROM findings").to_pylist()
    assert found == [{"partner": "Luz do Vale", "told_at": told + TICK}] * 2


def test_what_is_noted_by_a_clock_that_went_back_changes_no_earlier_audit(office, database, add_file, tmp_path):
    add_sale(database, "V-LUZ-1", partner="Luz do Vale")
    add_file("V-LUZ-1", "POV", **WHEN)
    evidence_id, _ = add_file("V-LUZ-1", "DOC_CONTRATANTE", **WHEN)
    manifest = tmp_path / "manifest.csv"
    manifest.write_text(f"saleId,fileName,fileFormat,type,evidenceType\nV-SOL-1,a,{'audio/mpeg,' * 2}AUT\n")
    office.kit.request_credentials(manifest, out=tmp_path / "issued.jsonl")
    office.kit.audit()
    office.clock.now += timedelta(minutes=50)
    made = office.kit.audit()
    office.clock.now -= timedelta(minutes=5)

    office.kit.add_waiver(sale="V-LUZ-1", reason="late", owner="ana", approvedBy="rui", end="2026-03-11")
    assert office.kit.waivers().result
    assert office.kit.sale("V-LUZ-1").result.last_sync.finished_at > office.clock.now
    gap = made.findings.set_index("code")["id"]["MISSING_POV"]
    told = {"partner": "Sol", "answered_by": "rui"}
    keep_answer(database, made.audit, UUID(gap), FindingAnswer(answer="willCome", until="2099-01-01"), **told)
    assert all(each.problem is None for each in notify_partners(office.kit).result)
    office.kit.link(evidence_id, reason="a complaint")
    assert office.kit.request_credentials(manifest, out=tmp_path / "again.jsonl").result.reissued == 1
    assert office.kit.complete("V-LUZ-1").result.completed_at

    office.clock.now += timedelta(days=1)
    assert office.kit.audit(as_of=made.as_of).audit.facts.parts == made.audit.facts.parts


def test_a_webhook_gets_the_findings_signed_at_least_once_and_under_one_id(office, database):
    add_sale(database, "V-LUZ-1", partner="Luz do Vale")
    (office.place.parent / "sol.secret").write_text("shared\n", "utf-8-sig")
    with scripted(Answer(500), Answer(204)) as server:
        office.place.write_text(
            f'[partner.Sol]\nwebhook = "{server.url}/hook"\nwebhook-secret-file = "sol.secret"\n'
        )
        office.kit.audit()
        problems = [each.problem for _ in range(3) for each in notify_partners(office.kit).result]
        first, sent = server.requests
    assert problems == ["the address answered 500", None]
    assert json.loads(first.body)["id"] == json.loads(sent.body)["id"]
    document = json.loads(sent.body)
    assert (document["kind"], document["partner"], document["more"]) == ("findings", "Sol", False)
    assert {each["saleId"] for each in document["findings"]} == {"V-SOL-1"}
    assert all(each["whatToDo"] and each["dueAt"] for each in document["findings"])


def test_the_numbers_of_a_mail_are_of_all_findings_that_stand(office, database):
    night(office)
    # What was told before as due still is, when a new sale is the news.
    night(office, days=3)
    add_sale(database, "V-SOL-2", partner="Sol")
    office.clock.now += timedelta(days=1)
    office.kit.audit()

    [told] = notify_partners(office.kit).result
    found = office.kit.last_audit().sql("FROM findings WHERE status = 'open'").to_pylist()
    due = [each for each in found if each["due_in_business_days"] <= 3 and not each["overdue"]]
    assert {each["sale_id"] for each in due} == {"V-SOL-1"}
    assert (told.findings, told.stages[Stage.DUE]) == (len(found), len(due))
    assert told.stages[Stage.NEW] == sum(each["sale_id"] == "V-SOL-2" for each in found)
    text = mail_of(office)[0].get_body().get_content()
    assert f"Due within 3 business days: {told.stages[Stage.DUE]}\n" in text.replace("\r", "")


def test_a_partner_answers_in_the_workbook_that_it_was_sent(office, database, run, tmp_path):
    add_sale(database, "V-LUZ-1", partner="Luz do Vale")
    night(office)
    _, files = mail_of(office, -2)
    [content] = [content for name, content in files.items() if name.endswith("xlsx")]

    book = load_workbook(io.BytesIO(content))
    sheet = book["Respostas"]
    headings = [cell.value for cell in sheet[1]]
    place = {name: headings.index(name) + 1 for name in ("Resposta", "Até", "Texto")}
    [offered] = sheet.data_validations.dataValidation
    assert offered.formula1 == '"enviado de novo,virá até o dia,está errado,pede dispensa"'
    recording, document = (
        next(row[0].row for row in sheet.iter_rows(min_row=2) if words in row[headings.index("Achado")].value)
        for words in ("áudio do contratante", "documento do contratante")
    )
    sheet.cell(recording, place["Resposta"], "Virá até o dia")
    sheet.cell(recording, place["Até"], "2/3/2099")
    sheet.cell(document, place["Resposta"], "está errado")
    sheet.cell(document, place["Texto"], "Há um arquivo")
    book.save(tmp_path / "answers.xlsx")
    run("partner", "answers", tmp_path / "answers.xlsx", "--partner", "Luz do Vale", within=office.environ)
    kept = run("partner", "answers", "--json", within=office.environ).told["answers"]
    assert {(each["saleId"], each["answer"], each["until"], each["text"]) for each in kept} == {
        ("V-LUZ-1", "willCome", "2099-03-02", None),
        ("V-LUZ-1", "disputed", None, "Há um arquivo"),
    }

    office.clock.now = datetime.now(UTC)
    office.kit.audit().report(tmp_path / "reports", formats="xlsx,json")
    sheet = load_workbook(tmp_path / "reports" / "missing-evidence.xlsx")["Open findings"]
    place = [cell.value for cell in sheet[1]].index("Told or answered")
    assert {row[place].value for row in sheet.iter_rows(min_row=2)} == {
        *("will come, 2 Mar 2099", "is wrong", "told 3 Mar 2026")
    }


def test_a_finding_that_comes_back_is_told_again_and_its_same_answer_kept(
    office, database, add_file, delete, tmp_path
):
    place = tmp_path / "answers.csv"

    def night():
        office.clock.now += timedelta(days=1)
        found = office.kit.audit().findings
        return found[found["code"] == "MISSING_POV"].iloc[0]

    def answered():
        who = {"partner": "Sol", "answered_by": "rui", "spoken": language("en")}
        return load_answers(database, office.kit.last_audit(), place, **who).new

    place.write_text(f"findingId,answer,until,text\n{night()['id']},sentAgain,,\n")
    assert notify_partners(office.kit).result[0].problem is None
    assert (answered(), answered()) == (1, 0)
    _, key = add_file("V-SOL-1", "POV", **WHEN)
    night()
    assert notify_partners(office.kit).result == []
    delete(key)
    assert night()["answer"] is pd.NA
    [told] = notify_partners(office.kit).result
    assert told.stages[Stage.NEW] == 1  # the recording that is missing again, beside what comes due
    assert answered() == 1
    assert night()["answer"] == "sentAgain"


def test_a_deadline_that_ran_while_nobody_was_told_is_counted(office):
    office.kit.audit()
    office.clock.now += timedelta(days=30)
    audit = office.kit.audit()

    [month] = audit.numbers.partner_months.itertuples()
    assert (month.told, month.mended) == (0, 0)
    assert month.findings == month.stillOpen == month.lateUntold > 0
    audit.report(office.place.parent / "reports", formats="html")
    assert "Due before told" in (office.place.parent / "reports" / "missing-evidence.html").read_text("utf-8")
    facts = replace(audit.audit.facts, as_of=datetime(2027, 3, 1, 15, tzinfo=UTC))  # the thirteenth month
    assert read_audited(replace(audit.audit, facts=facts)).partner_months.empty
