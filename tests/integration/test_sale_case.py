"""One sale on one page: rule, records with files, next steps, findings and the time line; and its files."""

import json
import re
import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from uuid import UUID

import httpx
import pytest

from tests.support.evidence_files import pdf, silence
from tests.support.report_text import everything_in, packed_cases
from tests.support.uploaded_sales import MONDAY, add_sale, execute, rows
from tests.support.waiting import PATIENCE, wait_until
from toolkit.contract.evidence import EvidenceType
from toolkit.kit.process import signed_in_account


@pytest.fixture
def told(run, database, add_file):
    """A sale with a silent recording, a document, and a KYC that was withdrawn; audited once."""
    add_sale(database)
    ids = {}
    files = {EvidenceType.POV: silence(3.0), EvidenceType.DOC_CONTRATANTE: pdf(pages=2), EvidenceType.KYC: pdf()}
    for minute, (evidence_type, body) in enumerate(files.items()):
        requested_at = MONDAY + timedelta(minutes=minute)
        ids[evidence_type], _ = add_file(
            "sale-1", evidence_type, body, file_name="Ana Souza.pdf", requested_at=requested_at
        )
    people = ["--reason", "sent twice", "--by", "ana", "--approved-by", "bruno"]
    run("evidence", "withdraw", ids[EvidenceType.KYC], *people)
    run("--quiet", "findings", ends=3)
    return ids


def test_a_sale_shows_what_its_own_database_found_where_several_share_the_audits(run, told, tmp_path):
    shared = {"TOOLKIT_AUDITS": str(tmp_path)}
    run("--quiet", "audit", "--no-sync", ends=3, **shared)
    [own] = tmp_path.glob("2*")
    shown = run("sale", "show", "sale-1", "--json", **shared).told["findings"]
    other = shutil.copytree(own, tmp_path / "2099-01-01T00-00-00Z")
    facts = json.loads((other / "audit.json").read_text("utf-8"))
    (other / "audit.json").write_text(json.dumps(facts | {"run": str(UUID(int=1))}), "utf-8")
    (other / "findings.parquet").unlink()
    assert shown
    assert run("sale", "show", "sale-1", "--json", **shared).told["findings"] == shown


def test_a_sale_shows_its_rule_files_faults_and_next_steps(run, told):
    case = run("sale", "show", "sale-1", "--json").told
    assert case["status"] == "incomplete"
    assert [each["evidenceType"] for each in case["rule"]] == ["POV", "DOC_CONTRATANTE"]
    assert [(each["evidenceType"], each["reason"]) for each in case["missing"]] == [("POV", "UNUSABLE")]
    pov, contract, kyc = case["records"]
    assert (pov["state"], pov["file"]["fault"], round(pov["file"]["seconds"])) == ("UNUSABLE", "SILENT", 3)
    file = contract["file"]
    assert (contract["state"], file["pages"], file["coverage"], file["depth"]) == (
        *("COUNTED", 2, "verified", "DRAWN"),
    )
    assert sorted(each.split()[0] for each in file["readers"]) == ["pypdf", "pypdfium2"]
    withdrawal = kyc["withdrawal"]
    assert (kyc["state"], withdrawal["reason"], withdrawal["approvedBy"]) == ("WITHDRAWN", "sent twice", "bruno")
    assert "fileName" not in pov
    assert [each["code"] for each in case["nextSteps"]] == ["MISSING_POV", "WITHOUT_CLIENT"]
    assert {"MISSING_POV", "WITHOUT_CLIENT"} <= {each["code"] for each in case["findings"]}
    assert {event["evidenceId"] for event in case["timeline"]} == {each["id"] for each in case["records"]}
    kinds = [event["kind"] for event in case["timeline"]]
    assert Counter(kinds) == {"RECORDED": 3, "UPLOADED": 3, "VERIFIED": 3, "WITHDRAWN": 1}

    page = run("sale", "show", "sale-1").out
    assert f"by {', '.join(file['readers'])} (DRAWN)" in page
    assert "SILENT: The recording is silent" in page
    assert "toolkit evidence list sale-1" in page
    assert "SALE_ID" not in page
    assert "approved by bruno: sent twice" in page
    assert "Ana Souza" not in page


def test_a_link_opens_a_file_for_a_while_and_is_kept_with_who_and_why(run, told, database):
    asked = ["evidence", "link", str(told[EvidenceType.DOC_CONTRATANTE]), "--by", "ana", "--reason", "complaint"]
    made = run(*asked, "--json").told
    assert httpx.get(made["url"], timeout=PATIENCE).content.startswith(b"%PDF-")
    [(detail,)] = rows(database, "SELECT detail FROM audit.custody_events WHERE kind = 'OPENED'")
    who = {"by": "ana", "reason": "complaint", "account": signed_in_account()}
    query = "SELECT opened_by, reason, account FROM audit.evidence_openings"
    assert rows(database, query) == [tuple(who.values())]
    assert who.keys() <= detail.keys()
    assert all(detail[name] == sha256(text.encode()).hexdigest() for name, text in who.items())
    shown = run("sale", "show", "sale-1").out
    assert re.search(r"link to the file made +DOC_CONTRATANTE$", shown, re.MULTILINE)
    assert re.search(r"  ana  complaint  ", shown)
    [told_there] = run("sale", "show", "sale-1", "--json").told["openings"]
    assert (told_there["openedBy"], told_there["reason"]) == ("ana", "complaint")
    short = run(*asked, "--seconds", "1", "--json").told["url"]
    wait_until(lambda: httpx.get(short, timeout=PATIENCE).status_code == 403)
    longer = made["url"].replace("X-Amz-Expires=300", "X-Amz-Expires=900")
    assert httpx.get(longer, timeout=PATIENCE).status_code == 403
    assert "Give a reason, and the name of each person" in run(*asked[:-1], " ", ends=1).err


def test_a_report_holds_the_rows_and_cases_behind_its_numbers_and_one_of_a_partner_nothing_of_another(
    run, told, database, tmp_path
):
    execute(database, "UPDATE sales SET partner = 'Norte Energia'")
    now = datetime.now(UTC)
    add_sale(database, "other-1", utility_group="E", created_at=now, completed_at=now, partner="Sul/Ltda")
    command = ["--quiet", "report", "--out", str(tmp_path), "--per-partner", "--format", "html,csv,json,xlsx"]
    run(*command)
    document = json.loads((tmp_path / "missing-evidence.json").read_text())
    assert [(each["code"], each["saleId"]) for each in document["unusableFiles"]] == [("SILENT", "sale-1")]
    assert [each["approvedBy"] for each in document["withdrawals"]] == ["bruno"]
    assert document["changes"]["new"] == len(document["changed"]) == 3
    assert [(each["saleId"], each["status"]) for each in document["completed"]] == [("other-1", "conflict")]
    assert [(each["partner"], each["findings"]) for each in document["partners"]] == [
        ("Norte Energia", 4),  # two about the sale, two about files that were written late
        ("Sul/Ltda", 3),
    ]
    cases = packed_cases((tmp_path / "missing-evidence.html").read_text())
    [case] = [each for each in cases if each["records"]]
    shown = run("sale", "show", "sale-1", "--json").told
    for ours, theirs in zip(case["records"], shown["records"], strict=True):
        names = ("size", "seconds", "pages", "coverage", "fault")
        assert (ours["id"], ours["type"], ours["state"]) == (theirs["id"], theirs["evidenceType"], theirs["state"])
        assert [ours[name] for name in names] == [theirs["file"][name] for name in names]
        assert theirs["file"]["sha256"].startswith(ours["sha256"])
        assert ours["approvedBy"] == (theirs["withdrawal"] or {}).get("approvedBy")
    ids = [each["id"] for each in case["records"]]
    told_there = [(each["kind"], each["evidenceId"]) for each in shown["timeline"]]
    assert [(kind, ids[place]) for _, kind, place in case["events"]] == told_there
    assert {each["code"] for each in case["findings"]} == {each["code"] for each in shown["findings"]}
    assert "Ana Souza" not in everything_in(tmp_path / "missing-evidence.html")
    norte, sul = sorted((tmp_path / "partners").iterdir())
    for folder, foreign in ((norte, ("other-1", "Sul")), (sul, ("sale-1", "Norte", *ids, "sent twice"))):
        for pattern in ("missing-evidence-*.html", "missing-evidence.csv", "missing-evidence.json"):
            [path] = folder.glob(pattern)
            text = everything_in(path)
            assert not any(word in text for word in foreign), path.name
    execute(database, "UPDATE sales SET partner = 'Norte Energia'")
    assert f"no sale names any more: 1 folder under {tmp_path / 'partners'}" in run(*command).err
    only = ["--quiet", "report", "--out", str(tmp_path / "one"), "--partner", "Nobody"]
    assert "No sale names the partner 'Nobody'" in run(*only, ends=1).err


def test_an_audit_of_nothing_is_an_error(run, tmp_path):
    out = ["--out", str(tmp_path / "out")]
    said = {
        "there is no sale in the service's table": (
            ["audit"],
            ["report", *out],
            ["report", "--per-partner", *out],
            ["report", "--partner", "Norte", *out],
            ["findings"],
        ),
        "no sale had been seen by": (["audit", "--as-of", "2026-03-01"],),
        "no audit had been made by": (["changes", "--from", "2026-03-01"],),
    }
    for text, commands in said.items():
        for command in commands:
            assert text in run("--quiet", *command, ends=1).err, command
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.rglob("missing-evidence.*"))
