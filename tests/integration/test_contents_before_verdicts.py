"""An audit and a report verify new files before they judge, and say how far the files were looked at."""

import csv
import json

import pytest

from tests.support.evidence_files import JPEG, pdf, silence, tone
from tests.support.report_figures import wrong_figures
from tests.support.uploaded_sales import add_record, add_sale
from toolkit.audit.observe_bucket import sync_bucket
from toolkit.contract.evidence import EvidenceType
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
def put(database, bucket, s3):
    def put_file(sale_id, evidence_type, body):
        _, key = add_record(database, sale_id, evidence_type)
        s3.put_object(Bucket=bucket.name, Key=key, Body=body)
        return key

    return put_file


@pytest.fixture
def uploaded(database, put):
    """A sound sale with a recording of each kind, and a sale for each way in which a file can be unusable."""
    bodies = UNUSABLE | {name: (EvidenceType.POV, body) for name, body in RECORDINGS.items()}
    for sale_id, body in bodies.items():
        add_sale(database, sale_id)
        files = {EvidenceType.POV: tone(), EvidenceType.DOC_CONTRATANTE: pdf()} | dict([body])
        for evidence_type, body in files.items():
            put(sale_id, evidence_type, body)


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


def test_the_files_that_decide_a_verdict_come_first_and_those_that_failed_last(database, bucket, s3, put, clock):
    add_sale(database, "S-1")
    unreadable = put("S-1", EvidenceType.KYC, pdf())
    sync_bucket(database, bucket, clock=clock)
    s3.put_object(Bucket=bucket.name, Key=unreadable, Body=b"%PDF-other")
    failed = verify_contents(database, bucket, clock=clock)
    assert (failed.verified, failed.unreadable, failed.left) == (0, 1, 1)
    stray = "evidences/2026/03/02/0199c0de-0000-7000-8000-000000000001/stray.pdf"
    s3.put_object(Bucket=bucket.name, Key=stray, Body=pdf())
    wrong = put("S-1", EvidenceType.POV, pdf())
    decisive = put("S-1", EvidenceType.DOC_CONTRATANTE, pdf())
    sync_bucket(database, bucket, clock=clock)
    keys = [item.key for batch in in_batches(database, waiting(database)) for item in batch]
    assert keys[:2] in ([unreadable, decisive], [decisive, unreadable])  # written again, it is a new version
    assert set(keys[2:]) == {stray, wrong}
