"""The whole way of evidence files, on a second, independent S3 server."""

import pytest

from tests.integration.test_upload_forms import make_bucket
from tests.support.audits import audited
from tests.support.evidence_files import pdf
from tests.support.uploaded_sales import add_record, add_sale, rows


@pytest.fixture
def bucket(object_gateway):
    return make_bucket(object_gateway)


@pytest.fixture
def s3(bucket):
    return bucket._client


def test_a_deleted_an_overwritten_and_a_restored_object_are_told_apart(
    database, bucket, delete, s3, put, sync, clock
):
    s3.put_bucket_versioning(Bucket=bucket.name, VersioningConfiguration={"Status": "Enabled"})
    add_sale(database)
    _, key = add_record(database)
    first = put(key)["VersionId"]
    sync()
    second = put(key, pdf(2))["VersionId"]
    sync()
    marker = delete(key)["VersionId"]
    sync()
    vanished = audited(database, clock=clock)
    delete(key, VersionId=marker)
    sync()
    for version in (second, first):
        delete(key, VersionId=version)
    sync()
    assert rows(database, "SELECT version_id, gone_how FROM audit.object_observations ORDER BY id") == [
        (first, "OVERWRITTEN"),
        (second, "DELETED"),
        (second, "DELETED"),
    ]
    told = "SELECT kind FROM audit.custody_events WHERE kind IN ('UPLOADED', 'RESTORED', 'GONE') ORDER BY id"
    kinds = [kind for (kind,) in rows(database, told)]
    assert kinds == ["UPLOADED", "GONE", "UPLOADED", "GONE", "RESTORED", "GONE"]
    assert vanished.rows["reasons"].tolist() == ["NEVER_REQUESTED|VANISHED"]
