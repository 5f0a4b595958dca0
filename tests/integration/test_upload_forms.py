"""The contract's upload form on servers that enforce its policy; buckets that deny or archive what they hold."""

import json
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock
from uuid import uuid4

import httpx
import pytest
from moto import mock_aws

from tests.conftest import client_of
from tests.support.audits import audited
from tests.support.evidence_files import pdf
from tests.support.uploaded_sales import add_record, add_sale, rows
from tests.support.waiting import PATIENCE
from toolkit import embedded
from toolkit.audit.observe_bucket import sync_bucket
from toolkit.bucket.client import Area, Bucket, list_objects
from toolkit.embedded import NEVER
from toolkit.errors import BucketError, ObjectDenied
from toolkit.evidence.completion import complete_sale
from toolkit.evidence.contents import verify_contents
from toolkit.reports.notices import notices
from toolkit.reports.report import Report
from toolkit.settings import AwsSettings

MAX_BYTES = 1000
KEY = "evidences/2026/03/02/01990000-0000-7000-8000-000000000000/contrato João 😀.pdf"
ANOTHER_KEY = KEY.replace("contrato", "outro")
PDF = b"%PDF-1.4\nnot much of a document\n%%EOF\n"


@pytest.fixture(params=["embedded", "gateway"])
def empty(request, home):
    """A fresh bucket on each of the servers."""
    if request.param == "embedded":
        return make_bucket(embedded.bucket_access(home))
    return make_bucket(request.getfixturevalue("object_gateway"))


def make_bucket(access):
    name, url = f"test-{uuid4().hex}", access.s3_endpoint
    with closing(client_of(access)) as client:
        client.create_bucket(Bucket=name)
    keys = (access.access_key_id, access.secret_access_key, access.session_token)
    return Bucket(name, AwsSettings(*keys, session_ends=NEVER, s3_endpoint=url, sts_endpoint=url))


def post(bucket, content=PDF, change=dict):
    """Post a file with all text parts of section 3 of the contract, in which something is changed."""
    form = bucket.presign_post(KEY, max_bytes=MAX_BYTES, expires_at=datetime.now(UTC) + timedelta(minutes=10))
    fields = change({**form.fields, "acl": "private"})
    return httpx.post(form.url, data=fields, files={"file": ("file", content)}, trust_env=False, timeout=PATIENCE)


@pytest.mark.parametrize("size", [0, MAX_BYTES + 1, 100 * MAX_BYTES])
def test_an_empty_or_larger_file_is_refused(empty, size):
    assert_refused(empty, post(empty, b"x" * size))


TAMPERED = {
    "another key": lambda form: form | {"key": ANOTHER_KEY},
    "no acl": lambda form: without(form, "acl"),
    "a changed signature": lambda form: form | {"X-Amz-Signature": form["X-Amz-Signature"][::-1]},
    "no policy": lambda form: without(form, "Policy"),
    "an extra field": lambda form: form | {"Content-Type": "text/html"},
}


def without(form, name):
    return {key: value for key, value in form.items() if key != name}


@pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED.keys())
def test_a_form_that_was_tampered_with_is_refused(empty, change):
    """The property of its policy tells that every field is bound; here the servers are shown to look at it."""
    assert_refused(empty, post(empty, change=change))


def assert_refused(bucket, answer):
    assert 400 <= answer.status_code < 500, answer.text
    assert [item for page in list_objects(bucket, [""]) for item in page] == []


def test_what_the_bucket_says_about_one_object(empty):
    assert empty.head(KEY) is None
    post(empty)
    [[listed]] = list_objects(empty, ["evidences/2026/03/"])
    assert empty.head(KEY) == replace(listed, last_modified=listed.last_modified.replace(microsecond=0))
    assert (empty.read(KEY, 4), empty.read(KEY, 1000)) == (b"%PDF", PDF)
    empty._client.put_object(Bucket=empty.name, Key=ANOTHER_KEY)
    assert empty.read(ANOTHER_KEY, 1) == b""


def test_a_deleted_an_overwritten_and_a_restored_object_are_told_apart(empty, database):
    client, (_, key) = empty._client, add_record(database, add_sale(database))
    client.put_bucket_versioning(Bucket=empty.name, VersioningConfiguration={"Status": "Enabled"})
    of_file = {"Bucket": empty.name, "Key": key}
    first = client.put_object(**of_file, Body=pdf())["VersionId"]
    sync_bucket(database, empty)
    second = client.put_object(**of_file, Body=pdf(2))["VersionId"]
    sync_bucket(database, empty)
    marker = client.delete_object(**of_file)["VersionId"]
    sync_bucket(database, empty)
    vanished = audited(database)
    client.delete_object(**of_file, VersionId=marker)
    sync_bucket(database, empty)
    for version in (second, first):
        client.delete_object(**of_file, VersionId=version)
    sync_bucket(database, empty)
    assert rows(database, "SELECT version_id, gone_how FROM audit.object_observations ORDER BY id") == [
        (first, "OVERWRITTEN"),
        (second, "DELETED"),
        (second, "DELETED"),
    ]
    told = "SELECT kind FROM audit.custody_events WHERE kind IN ('UPLOADED', 'RESTORED', 'GONE') ORDER BY id"
    kinds = [kind for (kind,) in rows(database, told)]
    assert kinds == ["UPLOADED", "GONE", "UPLOADED", "GONE", "RESTORED", "GONE"]
    assert vanished.rows["reasons"].tolist() == ["NEVER_REQUESTED|VANISHED"]


DENIED = ObjectDenied("The bucket denied access: the credentials are wrong, or lack s3:GetObject.")


@mock_aws
def test_archived_files_are_named_and_complete_no_sale(database):
    """In a bucket of Amazon's."""
    amazon = Bucket("evidence", AwsSettings("AKIAEXAMPLE", "secret", region="us-east-1"))
    amazon._client.create_bucket(Bucket="evidence")
    add_sale(database)
    (_, archived), (_, there) = add_record(database), add_record(database)
    amazon._client.put_object(Bucket="evidence", Key=archived, Body=pdf(), StorageClass="GLACIER")
    amazon._client.put_object(Bucket="evidence", Key=there, Body=pdf())
    synced = sync_bucket(database, amazon)
    assert (synced.examined, synced.archived, synced.unreadable) == (1, (archived,), ())
    verified = verify_contents(database, amazon)
    assert (verified.verified, verified.left, verified.failures) == (1, 1, {"ARCHIVED": 1})
    with pytest.raises(BucketError, match="restore it before it is read"):
        complete_sale(database, amazon, "sale-1")
    amazon.check_reading()


def test_commands_count_and_name_what_may_not_be_read_and_status_the_right(run, database, add_file, monkeypatch):
    folder = add_file(add_sale(database))[1].rpartition("/")[0]
    for reading in ("read", "download"):
        monkeypatch.setattr(Bucket, reading, Mock(side_effect=DENIED))
    shown = run("--quiet", "bucket", "sync", ends=3)
    assert shown.err == (
        "1 object: not readable (the right s3:GetObject may be missing), or perhaps not there, "
        f"for example below {folder}/\n"
    )
    assert run("--quiet", "evidence", "verify", "--json", ends=3).told["failures"] == {"DENIED": 1}
    problem = run("status", "--json", ends=3).told["bucket"]["problem"]
    assert problem.endswith("lack s3:GetObject.")


STILL_THERE = "SELECT count(*) FROM audit.object_observations WHERE gone_at IS NULL"


def deny(bucket, action, resource=""):
    statement = {"Effect": "Deny", "Principal": "*", "Action": [action]}
    statement |= {"Resource": [f"arn:aws:s3:::{bucket.name}{resource}"]}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    bucket._client.put_bucket_policy(Bucket=bucket.name, Policy=policy)


def test_policies_that_deny_reading_or_listing_are_told_and_take_nothing_for_gone(object_gateway, database):
    bucket = make_bucket(object_gateway)
    add_sale(database)
    keys = [add_record(database)[1] for _ in range(12)]
    for key in keys:
        bucket._client.put_object(Bucket=bucket.name, Key=key, Body=pdf())
    deny(bucket, "s3:GetObject", "/*")
    synced = sync_bucket(database, bucket)
    assert (synced.appeared, synced.unreadable) == (12, tuple(sorted(keys)))
    assert verify_contents(database, bucket).failures == {"DENIED": 12}
    with pytest.raises(BucketError, match=r"lack s3:GetObject\. Without s3:ListBucket"):
        bucket.check_reading()
    bucket.area = Area(prefixes=("elsewhere/",))
    assert sync_bucket(database, bucket).unreadable == synced.unreadable  # asked for one by one
    bucket.check_reading()  # nothing lies there that could be tried
    bucket.area = Area()
    deny(bucket, "s3:ListBucket")
    with pytest.raises(BucketError, match=r"lack s3:ListBucket\.$"):
        sync_bucket(database, bucket)
    assert rows(database, STILL_THERE) == [(12,)]
    bucket._client.delete_bucket_policy(Bucket=bucket.name)
    synced = sync_bucket(database, bucket)
    assert (synced.vanished, synced.examined, synced.unreadable) == (0, 12, ())


def test_what_is_denied_though_it_is_not_there_is_never_taken_for_gone(
    delete, bucket, database, add_file, sync, monkeypatch
):
    """Without s3:ListBucket Amazon answers 403 for an object that does not exist."""
    add_sale(database)
    (_, key), (_, other) = add_file(), add_file()
    sync()
    bucket.area = Area(prefixes=("elsewhere/",))
    delete(key)
    with monkeypatch.context() as patched:
        patched.setattr(Bucket, "head", Mock(side_effect=DENIED))
        synced = sync()
    assert (synced.vanished, synced.unreadable) == (0, tuple(sorted((key, other))))
    assert rows(database, STILL_THERE) == [(2,)]
    assert "refused to answer about 2 files" in " ".join(notices(Report(audited(database))))
    assert sync().vanished == 1
    assert "refused to answer" not in " ".join(notices(Report(audited(database))))
