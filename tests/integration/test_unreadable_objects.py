"""Archived objects, and those that may not be read, are counted and named; a reading of the rest goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from moto import mock_aws

from tests.conftest import SettableClock
from tests.integration.evidence_bytes import pdf
from tests.integration.uploaded_sales import add_record, add_sale
from toolkit.entrypoints.cli import main
from toolkit.errors import BucketError, ObjectDenied
from toolkit.operations.judge.completion import complete_sale
from toolkit.operations.observe.bucket_sync import sync_bucket
from toolkit.operations.verify.contents import verify_contents
from toolkit.settings import AwsSettings
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database

DENIED = ObjectDenied("The bucket denied access: the credentials are wrong, or lack s3:GetObject.")


@pytest.fixture
def amazon() -> Iterator[Bucket]:
    """A bucket of Amazon's, by moto, with nothing in it."""
    with mock_aws():
        keys = {"aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": "secret"}
        boto3.client("s3", region_name="us-east-1", **keys).create_bucket(Bucket="evidence")
        bucket = Bucket("evidence", AwsSettings("AKIAEXAMPLE", "secret", region="us-east-1"))
        bucket._listing._ordinary = False
        yield bucket


def test_archived_files_are_named_and_complete_no_sale(
    amazon: Bucket, database: Database, clock: SettableClock
) -> None:
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
def no_reading(s3: Any, bucket: Bucket, database: Database, monkeypatch: pytest.MonkeyPatch) -> str:
    add_sale(database)
    _, key = add_record(database)
    s3.put_object(Bucket=bucket.name, Key=key, Body=pdf())
    monkeypatch.setattr(Bucket, "read", Mock(side_effect=DENIED))
    monkeypatch.setattr(Bucket, "chunks", Mock(side_effect=DENIED))
    return key


def test_commands_count_and_name_what_may_not_be_read_and_end_with_3(
    no_reading: str, embedded_environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--quiet", "bucket", "sync"], embedded_environment) == 3
    shown = capsys.readouterr()
    folder = no_reading.rpartition("/")[0]
    assert shown.err == (
        f"1 objects are not readable with these credentials (s3:GetObject), for example below {folder}/\n"
    )
    assert main(["--quiet", "evidence", "verify", "--json"], embedded_environment) == 3
    assert json.loads(capsys.readouterr().out)["failures"] == {"DENIED": 1}


@pytest.mark.usefixtures("no_reading")
def test_status_tries_a_read_and_names_the_right_that_is_missing(
    embedded_environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--json"], embedded_environment) == 3
    problem = json.loads(capsys.readouterr().out)["bucket"]["problem"]
    assert problem.endswith("lack s3:GetObject.")


def test_a_bucket_is_adopted_by_a_command(
    embedded_environment: dict[str, str], capsys: pytest.CaptureFixture[str], s3: Any
) -> None:
    assert main(["bucket", "sync", "--json"], embedded_environment) == 0
    capsys.readouterr()
    s3.create_bucket(Bucket=f"{embedded_environment['EVIDENCE_BUCKET']}-new")
    moved = embedded_environment | {"EVIDENCE_BUCKET": f"{embedded_environment['EVIDENCE_BUCKET']}-new"}
    assert main(["bucket", "sync"], moved) == 1
    assert "This database belongs to the bucket" in capsys.readouterr().err
    assert main(["bucket", "adopt"], moved) == 0
    assert "; before, to " in capsys.readouterr().out
    assert main(["bucket", "sync"], moved) == 0
