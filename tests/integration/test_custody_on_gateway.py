"""The whole way of evidence files, on a second, independent S3 server."""

import pytest

from tests.integration.test_upload_forms import make_bucket
from tests.support.audits import audited
from tests.support.evidence_files import pdf
from tests.support.uploaded_sales import add_record, add_sale, rows
from toolkit.audit.observe_bucket import sync_bucket


@pytest.fixture
def bucket(object_gateway):
    return make_bucket(object_gateway)


def test_a_deleted_an_overwritten_and_a_restored_object_are_told_apart(database, bucket, clock):
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
        (second, "DELETED"),
        (second, "DELETED"),
    ]
    told = "SELECT kind FROM audit.custody_events WHERE kind IN ('UPLOADED', 'RESTORED', 'GONE') ORDER BY id"
    kinds = [kind for (kind,) in rows(database, told)]
    assert kinds == ["UPLOADED", "GONE", "UPLOADED", "GONE", "RESTORED", "GONE"]
    assert vanished.rows["reasons"].tolist() == ["NEVER_REQUESTED|VANISHED"]
