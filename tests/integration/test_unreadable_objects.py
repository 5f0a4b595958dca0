"""Archived objects, and those that may not be read, are counted and named; a reading of the rest goes on."""

import json
from unittest.mock import Mock

import boto3
import pytest
from moto import mock_aws

from tests.integration.test_upload_forms import make_bucket
from tests.support.audits import audited
from tests.support.evidence_files import pdf
from tests.support.uploaded_sales import add_record, add_sale, rows
from toolkit.audit.observe_bucket import sync_bucket
from toolkit.bucket.client import Area, Bucket
from toolkit.errors import BucketError, ObjectDenied
from toolkit.evidence.completion import complete_sale
from toolkit.evidence.contents import verify_contents
from toolkit.reports.notices import notices
from toolkit.settings import AwsSettings

DENIED = ObjectDenied("The bucket denied access: the credentials are wrong, or lack s3:GetObject.")


@pytest.fixture
def amazon():
    """A bucket of Amazon's, by moto, with nothing in it."""
    with mock_aws():
        keys = {"aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": "secret"}
        boto3.client("s3", region_name="us-east-1", **keys).create_bucket(Bucket="evidence")
        bucket = Bucket("evidence", AwsSettings("AKIAEXAMPLE", "secret", region="us-east-1"))
        yield bucket


def test_archived_files_are_named_and_complete_no_sale(amazon, database, clock):
    add_sale(database)
    (_, archived), (_, there) = add_record(database), add_record(database)
    amazon._client.put_object(Bucket="evidence", Key=archived, Body=pdf(), StorageClass="GLACIER")
    amazon._client.put_object(Bucket="evidence", Key=there, Body=pdf())
    synced = sync_bucket(database, amazon, clock=clock)
    assert (synced.examined, synced.archived, synced.unreadable) == (1, (archived,), ())
    verified = verify_contents(database, amazon, clock=clock)
    assert (verified.verified, verified.left, verified.failures) == (1, 1, {"ARCHIVED": 1})
    with pytest.raises(BucketError, match="restore it before it is read"):
        complete_sale(database, amazon, "sale-1", clock)
    amazon.check_reading()


@pytest.fixture
def no_reading(database, add_file, monkeypatch):
    _, key = add_file(add_sale(database))
    monkeypatch.setattr(Bucket, "read", Mock(side_effect=DENIED))
    monkeypatch.setattr(Bucket, "download", Mock(side_effect=DENIED))
    return key


def test_commands_count_and_name_what_may_not_be_read_and_end_with_3(run, no_reading):
    shown = run("--quiet", "bucket", "sync", ends=3)
    folder = no_reading.rpartition("/")[0]
    assert shown.err == (
        "1 object: not readable with these credentials (s3:GetObject), or perhaps not there, "
        f"for example below {folder}/\n"
    )
    assert run("--quiet", "evidence", "verify", "--json", ends=3).told["failures"] == {"DENIED": 1}


@pytest.mark.usefixtures("no_reading")
def test_status_tries_a_read_and_names_the_right_that_is_missing(run):
    problem = run("status", "--json", ends=3).told["bucket"]["problem"]
    assert problem.endswith("lack s3:GetObject.")


STILL_THERE = "SELECT count(*) FROM audit.object_observations WHERE gone_at IS NULL"


def deny(bucket, action, resource=""):
    statement = {"Effect": "Deny", "Principal": "*", "Action": [action]}
    statement |= {"Resource": [f"arn:aws:s3:::{bucket.name}{resource}"]}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    bucket._client.put_bucket_policy(Bucket=bucket.name, Policy=policy)


def test_policies_that_deny_reading_or_listing_are_told_and_take_nothing_for_gone(
    object_gateway, database, embedded_environment, monkeypatch, run
):
    bucket = make_bucket(object_gateway)
    environ = embedded_environment | {
        "EVIDENCE_BUCKET": bucket.name,
        "AWS_ENDPOINT_URL": object_gateway.s3_endpoint,
        "AWS_ACCESS_KEY_ID": object_gateway.access_key_id,
        "AWS_SECRET_ACCESS_KEY": object_gateway.secret_access_key,
    }
    del environ["AWS_SESSION_TOKEN"], environ["AWS_CREDENTIAL_EXPIRATION"]
    for name in environ:
        monkeypatch.setenv(name, environ[name])

    def told(*command):
        ran = run("-q", *command, ends=None, within=environ)
        return ran.status, ran.out + ran.err

    add_sale(database)
    keys = [add_record(database)[1] for _ in range(12)]
    for key in keys:
        bucket._client.put_object(Bucket=bucket.name, Key=key, Body=pdf())
    deny(bucket, "s3:GetObject", "/*")
    status, text = told("bucket", "sync")
    assert status == 3
    assert text.startswith("12 objects: 12 new")
    assert "12 objects: not readable with these credentials (s3:GetObject)" in text
    assert told("evidence", "verify")[0] == 3
    assert text.splitlines()[-1] in told("audit")[1]
    # Asked for one by one, as a listing does not show them.
    environ["EVIDENCE_PREFIX"] = "elsewhere/"
    assert told("bucket", "sync") == (3, text.replace("12 objects: 12 new", "0 objects: 0 new"))
    status, text = told("status")
    assert status == 0  # nothing lies there that could be tried
    del environ["EVIDENCE_PREFIX"]
    status, text = told("status")
    assert status == 3
    assert "lack s3:GetObject. Without s3:ListBucket" in text
    deny(bucket, "s3:ListBucket")
    status, text = told("bucket", "sync")
    assert status == 1
    assert "lack s3:ListBucket." in text
    assert told("status")[0] == 3
    assert rows(database, STILL_THERE) == [(12,)]
    bucket._client.delete_bucket_policy(Bucket=bucket.name)
    assert told("bucket", "sync") == (0, "12 objects: 0 new, 0 overwritten, 0 vanished, 12 examined\n")


def test_what_is_denied_though_it_is_not_there_is_never_taken_for_gone(
    delete, bucket, database, add_file, sync, clock, monkeypatch
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
    assert "refused to answer about 2 files" in " ".join(notices(audited(database, clock=clock)))
    assert sync().vanished == 1
    assert "refused to answer" not in " ".join(notices(audited(database, clock=clock)))
