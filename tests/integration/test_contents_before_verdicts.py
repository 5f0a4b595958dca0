"""An audit and a report verify new files before they judge, and say how far the files were looked at."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SettableClock
from tests.integration.evidence_bytes import JPEG, pdf, silence, tone
from tests.integration.uploaded_sales import add_record, add_sale
from toolkit.domain.evidence import EvidenceType
from toolkit.entrypoints.cli import main
from toolkit.operations.observe.bucket_sync import sync_bucket
from toolkit.operations.verify.contents import Budget, verify_contents
from toolkit.operations.verify.contents.queue import in_batches, waiting
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database

UNUSABLE = {
    "truncated-document": (EvidenceType.DOC_CONTRATANTE, pdf(pages=3)[:300]),
    "encrypted-document": (EvidenceType.DOC_CONTRATANTE, pdf(password="secret")),
    "picture-as-document": (EvidenceType.DOC_CONTRATANTE, JPEG),
    "truncated-recording": (EvidenceType.POV, tone(3.0, "WAV")[:-20_000]),
    "silent-recording": (EvidenceType.POV, silence(5.0)),
    "short-recording": (EvidenceType.POV, tone(0.4)),
    "document-as-recording": (EvidenceType.POV, pdf()),
}


@pytest.fixture
def put(database: Database, bucket: Bucket, s3: Any) -> Any:
    def put_file(sale_id: str, evidence_type: EvidenceType, body: bytes) -> str:
        _, key = add_record(database, sale_id, evidence_type)
        s3.put_object(Bucket=bucket.name, Key=key, Body=body)
        return key

    return put_file


@pytest.fixture
def uploaded(database: Database, put: Any) -> None:
    """A sound sale, and one for each way in which a file can be unusable."""
    for sale_id in ("sound", *UNUSABLE):
        add_sale(database, sale_id)
        files = {EvidenceType.POV: tone(), EvidenceType.DOC_CONTRATANTE: pdf()}
        if sale_id in UNUSABLE:
            files.update([UNUSABLE[sale_id]])
        for evidence_type, body in files.items():
            put(sale_id, evidence_type, body)


def reported(environ: dict[str, str], out: Path, *options: str) -> tuple[dict[str, str], dict[str, Any]]:
    """The reasons of each sale that a report names, and its JSON."""
    assert main(["--quiet", "report", "--out", str(out), "--format", "csv,json", *options], environ) == 0
    with (out / "missing-evidence.csv").open(encoding="utf-8") as file:
        rows = {row["saleId"]: f"{row['missing']} {row['reasons']}" for row in csv.DictReader(file)}
    return rows, json.loads((out / "missing-evidence.json").read_text(encoding="utf-8"))


def test_files_that_are_unusable_change_the_verdict_of_the_report_itself(
    embedded_environment: dict[str, str], uploaded: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    looked_at_once, document = reported(embedded_environment, tmp_path, "--no-verify")
    assert set(looked_at_once) == {"picture-as-document", "document-as-recording"}
    assert "were not verified before this report" in capsys.readouterr().err
    assert document["compliantVerified"] == 0
    assert document["coverage"] == {"verified": 0, "firstBytes": 14, "never": 0, "unreadable": 0}

    rows, document = reported(embedded_environment, tmp_path)
    assert rows == {sale_id: f"{evidence_type} UNUSABLE" for sale_id, (evidence_type, _) in UNUSABLE.items()}
    assert (document["compliant"], document["compliantVerified"]) == (1, 1)
    assert document["coverage"] == {"verified": 9, "firstBytes": 0, "never": 0, "unreadable": 0}
    assert "verified before" not in capsys.readouterr().err


def test_what_the_budget_leaves_is_counted_and_verified_by_the_next_audit(
    embedded_environment: dict[str, str], uploaded: None, capsys: pytest.CaptureFixture[str]
) -> None:
    def audit(**limits: str) -> dict[str, Any]:
        main(["--quiet", "audit", "--json"], embedded_environment | limits)
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    nothing = audit(TOOLKIT_VERIFY_SECONDS="0")
    assert (nothing["coverage"]["verified"], nothing["compliantVerified"]) == (0, 0)
    some = audit(TOOLKIT_VERIFY_BYTES="60000")
    assert 0 < some["coverage"]["verified"] < 9
    assert audit()["coverage"] == {"verified": 9, "firstBytes": 0, "never": 0, "unreadable": 0}


def test_the_files_that_decide_a_verdict_come_first_and_those_that_failed_last(
    database: Database, bucket: Bucket, s3: Any, put: Any, clock: SettableClock
) -> None:
    add_sale(database, "S-1")
    stray = "evidences/2026/03/02/0199c0de-0000-7000-8000-000000000001/stray.pdf"
    s3.put_object(Bucket=bucket.name, Key=stray, Body=pdf())
    wrong = put("S-1", EvidenceType.POV, pdf())
    unreadable = put("S-1", EvidenceType.KYC, pdf())
    sync_bucket(database, bucket, clock=clock)
    s3.put_object(Bucket=bucket.name, Key=unreadable, Body=b"%PDF-other")
    failed = verify_contents(database, bucket, clock=clock, budget=Budget(bytes=len(pdf())))
    assert (failed.verified, failed.unreadable, failed.left) == (0, 1, 3)
    decisive = put("S-1", EvidenceType.DOC_CONTRATANTE, pdf())
    sync_bucket(database, bucket, clock=clock)
    keys = [item.key for batch in in_batches(database, waiting(database)) for item in batch]
    assert keys[:2] in ([unreadable, decisive], [decisive, unreadable])  # written again, it is a new version
    assert set(keys[2:]) == {stray, wrong}
