"""Reports of odd moments say what is known: no records, all waived or completed, files and buckets that go."""

import json
from datetime import UTC, datetime, timedelta

from tests.support.evidence_files import pdf, tone
from tests.support.report_figures import wrong_figures
from tests.support.uploaded_sales import add_record, add_sale
from toolkit.bucket.client import Bucket
from toolkit.contract.evidence import EvidenceType
from toolkit.errors import BucketUnavailable
from toolkit.evidence import contents

FILES = {EvidenceType.POV: tone(1.5), EvidenceType.DOC_CONTRATANTE: pdf()}


def report(run, out, formats="json"):
    said = run("--quiet", "report", "--out", out, "--format", formats)
    return json.loads((out / "missing-evidence.json").read_text(encoding="utf-8")), said.out + said.err


def uploaded(database, bucket, s3):
    """A sale with all that it needs: the keys of its files."""
    add_sale(database)
    keys = []
    for evidence_type, body in FILES.items():
        _, key = add_record(database, evidence_type=evidence_type)
        s3.put_object(Bucket=bucket.name, Key=key, Body=body)
        keys.append(key)
    return keys


def test_sales_whose_findings_are_all_waived_still_lack_their_evidence(run, database, tmp_path):
    add_sale(database)
    end = (datetime.now(UTC) + timedelta(days=30)).date()
    people = ["--owner", "ana", "--approved-by", "bruno", "--reason", "abroad", "--end", end]
    run("waiver", "add", "--sale", "sale-1", *people)
    document, said = report(run, tmp_path, "html,xlsx,json,pdf")
    assert "1 of 1 sale lacks evidence" in said
    assert document["findingCounts"]["open"] == document["findingCounts"]["overdue"] == 0
    assert document["findingCounts"]["waived"] == 3
    assert wrong_figures(tmp_path) == []


def test_a_file_that_goes_between_listing_and_reading_is_never_taken_for_verified(
    run, database, bucket, s3, tmp_path, monkeypatch
):
    keys = uploaded(database, bucket, s3)
    verify = contents.verify_contents

    def late(*args, **options):
        s3.delete_object(Bucket=bucket.name, Key=keys[0])
        return verify(*args, **options)

    monkeypatch.setattr(contents, "verify_contents", late)
    document, said = report(run, tmp_path)
    assert document["coverage"]["verified"] == 1
    assert "rests on files that are not fully verified" in said
    assert document["compliantVerified"] == 0
    document, said = report(run, tmp_path)
    assert document["rows"][0]["missing"] == [{"evidenceType": "POV", "reason": "VANISHED"}]


def test_a_bucket_that_goes_in_the_middle_of_an_audit_is_no_verdict(
    run, database, bucket, s3, tmp_path, monkeypatch
):
    uploaded(database, bucket, s3)

    def away(*_, **__):
        raise BucketUnavailable("The bucket does not answer.")

    monkeypatch.setattr(Bucket, "read", away)
    said = run("--quiet", "report", "--out", tmp_path / "none", ends=1)
    assert "The bucket does not answer." in said.err
    assert not (tmp_path / "none").exists()
