"""The whole way of evidence files, on a second, independent S3 server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.gateway import Gateway
from tests.integration.test_upload_forms import make_bucket
from tests.support.audits import audited
from tests.support.evidence_files import pdf, silence, tone
from tests.support.uploaded_sales import add_record, add_sale, credentials_line, rows, write_credentials
from toolkit.audit.observe_bucket import Synced, sync_bucket
from toolkit.bucket.client import Bucket
from toolkit.contract.contents import ContentProblem
from toolkit.database.connection import Database
from toolkit.evidence.contents import Verified, verify_contents
from toolkit.evidence.upload import UploadProblem, upload_files
from toolkit.partner import post_file


@pytest.fixture
def bucket(object_gateway: Gateway) -> Bucket:
    return make_bucket(object_gateway)


def test_files_are_uploaded_observed_and_verified(
    database: Database, bucket: Bucket, tmp_path: Path, clock: Any
) -> None:
    contents = {"contrato é.pdf": pdf(), "b.pdf": pdf()[:-40], "c.mp3": tone(), "d.mp3": silence()}
    lines = []
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        lines.append(credentials_line(bucket, "s", name, "POV" if name.endswith("mp3") else "DOC_CONTRATANTE"))
    lines.append(credentials_line(bucket, "s", "gone.pdf"))
    uploaded = upload_files(write_credentials(tmp_path / "c.jsonl", lines), tmp_path)
    assert uploaded.sent == 4
    assert [failure.problem for failure in uploaded.failures] == [UploadProblem.NOT_FOUND]
    assert sync_bucket(database, bucket, clock=clock) == Synced(4, 4, 0, 0, examined=4)
    assert sync_bucket(database, bucket, clock=clock) == Synced(4, 0, 0, 0, examined=0)
    problems = {ContentProblem.DAMAGED: 1, ContentProblem.SILENT: 1}
    assert verify_contents(database, bucket, clock=clock) == Verified(4, problems, left=0)
    post_file(lines[0]["url"], lines[0]["fields"], tmp_path / "c.mp3")
    assert sync_bucket(database, bucket, clock=clock) == Synced(4, 0, 1, 0, examined=1)
    assert verify_contents(database, bucket, clock=clock) == Verified(1, {}, left=0)
    assert rows(database, "SELECT count(*) FROM audit.content_checks WHERE sha256 IS NOT NULL") == [(5,)]


def test_a_delete_marker_an_overwritten_and_a_restored_object_are_told_apart(
    database: Database, bucket: Bucket, clock: Any
) -> None:
    s3 = bucket._client
    s3.put_bucket_versioning(Bucket=bucket.name, VersioningConfiguration={"Status": "Enabled"})
    add_sale(database)
    _, key = add_record(database)
    first = s3.put_object(Bucket=bucket.name, Key=key, Body=pdf())["VersionId"]
    sync_bucket(database, bucket, clock=clock)
    second = s3.put_object(Bucket=bucket.name, Key=key, Body=pdf(2))["VersionId"]
    sync_bucket(database, bucket, clock=clock)
    marker = s3.delete_object(Bucket=bucket.name, Key=key)["VersionId"]
    sync_bucket(database, bucket, clock=clock)
    vanished = audited(database, clock=clock)
    s3.delete_object(Bucket=bucket.name, Key=key, VersionId=marker)
    sync_bucket(database, bucket, clock=clock)
    s3.delete_object(Bucket=bucket.name, Key=key, VersionId=second)
    s3.delete_object(Bucket=bucket.name, Key=key, VersionId=first)
    sync_bucket(database, bucket, clock=clock)
    assert rows(database, "SELECT version_id, gone_how FROM audit.object_observations ORDER BY id") == [
        (first, "OVERWRITTEN"),
        (second, "DELETE_MARKER"),
        (second, "DELETED"),
    ]
    told = "SELECT kind FROM audit.custody_events WHERE kind IN ('UPLOADED', 'RESTORED', 'GONE') ORDER BY id"
    kinds = [kind for (kind,) in rows(database, told)]
    assert kinds == ["UPLOADED", "GONE", "UPLOADED", "GONE", "RESTORED", "GONE"]
    assert vanished.rows["reasons"].tolist() == ["NEVER_REQUESTED|VANISHED"]
