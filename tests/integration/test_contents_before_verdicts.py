"""An audit and a report verify new files before they judge, and say how far the files were looked at."""

import csv
import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.evidence_files import JPEG, pdf, silence, tone
from tests.support.report_figures import wrong_figures
from tests.support.uploaded_sales import add_sale
from toolkit.bucket.client import Bucket
from toolkit.contract.evidence import EvidenceType
from toolkit.errors import BucketUnavailable
from toolkit.evidence import contents
from toolkit.evidence.contents import in_batches, verify_contents, waiting

RECORDINGS = {name: tone(3.0, name) for name in ("MP3", "WAV", "M4A")}
UNUSABLE = {
    "damaged-PDF": (EvidenceType.DOC_CONTRATANTE, pdf(pages=3)[:300]),
    "encrypted-PDF": (EvidenceType.DOC_CONTRATANTE, pdf(password="secret")),
    "recording-as-document": (EvidenceType.DOC_CONTRATANTE, tone()),
    "empty-document": (EvidenceType.DOC_CONTRATANTE, b""),
    "truncated-recording": (EvidenceType.POV, RECORDINGS["M4A"][:4000]),
    "silent-recording": (EvidenceType.POV, silence(3.0)),
    "short-recording": (EvidenceType.POV, tone(0.4)),
    "picture-as-recording": (EvidenceType.POV, JPEG),
}
SEEN_AT_ONCE = {name for name in UNUSABLE if "-as-" in name or name.startswith("empty-")}
FILES = 2 * (len(RECORDINGS) + len(UNUSABLE))
ALL_VERIFIED = {"verified": FILES - len(UNUSABLE), "firstBytes": 0, "never": 0, "unreadable": 0}


@pytest.fixture
def uploaded(database, add_file):
    """A sound sale with a recording of each kind, and a sale for each way in which a file can be unusable."""
    bodies = UNUSABLE | {name: (EvidenceType.POV, body) for name, body in RECORDINGS.items()}
    for sale_id, body in bodies.items():
        add_sale(database, sale_id)
        files = {EvidenceType.POV: tone(), EvidenceType.DOC_CONTRATANTE: pdf()} | dict([body])
        for evidence_type, body in files.items():
            add_file(sale_id, evidence_type, body)


def reported(run, out, *options):
    """What is missing and why, of each sale that the report names; its JSON; what the command said."""
    said = run("--quiet", "report", "--out", out, "--format", "csv,json", *options).err
    with (out / "missing-evidence.csv").open(encoding="utf-8") as file:
        rows = {row["saleId"]: f"{row['missing']} {row['reasons']}" for row in csv.DictReader(file)}
    return rows, json.loads((out / "missing-evidence.json").read_text(encoding="utf-8")), said


def test_files_that_are_unusable_change_the_verdict_of_the_report_itself(run, uploaded, tmp_path):
    looked_at_once, document, said = reported(run, tmp_path, "--no-verify")
    assert set(looked_at_once) == SEEN_AT_ONCE
    assert "were not verified before this report" in said
    assert document["compliantVerified"] == 0
    assert document["coverage"] == {
        "verified": 0,
        "firstBytes": FILES - len(SEEN_AT_ONCE),
        "never": 0,
        "unreadable": 0,
    }

    rows, document, said = reported(run, tmp_path)
    assert rows == {sale_id: f"{evidence_type} UNUSABLE" for sale_id, (evidence_type, _) in UNUSABLE.items()}
    assert (document["compliant"], document["compliantVerified"]) == (len(RECORDINGS), len(RECORDINGS))
    assert document["coverage"] == ALL_VERIFIED
    assert "verified before" not in said


def test_what_the_time_leaves_is_counted_and_verified_by_the_next_audit(run, uploaded, tmp_path):
    def audit(**limits):
        return run("--quiet", "audit", "--json", ends=None, **limits).told

    nothing = audit(TOOLKIT_VERIFY_SECONDS="0")
    assert (nothing["coverage"]["verified"], nothing["compliantVerified"]) == (0, 0)
    run("--quiet", "report", "--no-verify", "--out", tmp_path)
    document = json.loads((tmp_path / "missing-evidence.json").read_text(encoding="utf-8"))
    assert document["compliant"] == len(document["unverified"]) > 0
    assert wrong_figures(tmp_path) == []
    assert audit()["coverage"] == ALL_VERIFIED


def test_the_files_that_decide_a_verdict_come_first_and_those_that_failed_last(
    database, bucket, put, add_file, sync, clock
):
    add_sale(database, "S-1")
    _, unreadable = add_file("S-1", EvidenceType.KYC)
    sync()
    put(unreadable, b"%PDF-other")
    failed = verify_contents(database, bucket, clock=clock)
    assert (failed.verified, failed.unreadable, failed.left) == (0, 1, 1)
    stray = "evidences/2026/03/02/0199c0de-0000-7000-8000-000000000001/stray.pdf"
    put(stray)
    _, wrong = add_file("S-1", EvidenceType.POV, pdf())
    _, decisive = add_file("S-1", EvidenceType.DOC_CONTRATANTE)
    sync()
    keys = [item.key for batch in in_batches(database, waiting(database)) for item in batch]
    assert set(keys[:2]) == {unreadable, decisive}  # written again, it is a new version
    assert set(keys[2:]) == {stray, wrong}


@pytest.fixture
def keys(database, add_file):
    """The keys of the files of a sale that has all that it needs."""
    add_sale(database)
    return [add_file("sale-1", each)[1] for each in (EvidenceType.POV, EvidenceType.DOC_CONTRATANTE)]


def test_sales_whose_findings_are_all_waived_still_lack_their_evidence(run, database, tmp_path):
    add_sale(database)
    end = (datetime.now(UTC) + timedelta(days=30)).date()
    people = ["--owner", "ana", "--approved-by", "bruno", "--reason", "abroad", "--end", end]
    run("waiver", "add", "--sale", "sale-1", *people)
    _, document, said = reported(run, tmp_path, "--format", "html,xlsx,csv,json,pdf")
    assert "1 of 1 sale lacks evidence" in said
    assert document["findingCounts"]["open"] == document["findingCounts"]["overdue"] == 0
    assert document["findingCounts"]["waived"] == 3
    assert wrong_figures(tmp_path) == []


def test_a_file_that_goes_between_listing_and_reading_is_never_taken_for_verified(
    run, keys, tmp_path, delete, monkeypatch
):
    verify = contents.verify_contents

    def late(*args, **options):
        delete(keys[0])
        return verify(*args, **options)

    monkeypatch.setattr(contents, "verify_contents", late)
    _, document, said = reported(run, tmp_path)
    assert document["coverage"]["verified"] == 1
    assert "rests on files that are not fully verified" in said
    assert document["compliantVerified"] == 0
    _, document, said = reported(run, tmp_path)
    assert document["rows"][0]["missing"] == [{"evidenceType": "POV", "reason": "VANISHED"}]


@pytest.mark.usefixtures("keys")
def test_a_bucket_that_goes_in_the_middle_of_an_audit_is_no_verdict(run, tmp_path, monkeypatch):
    def away(*_, **__):
        raise BucketUnavailable("The bucket does not answer.")

    monkeypatch.setattr(Bucket, "read", away)
    said = run("--quiet", "report", "--out", tmp_path / "none", ends=1)
    assert "The bucket does not answer." in said.err
    assert not (tmp_path / "none").exists()
