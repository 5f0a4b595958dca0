"""Credentials for one file: what is stored, what is answered, and what is refused."""

import logging
from datetime import UTC, datetime

import pytest

from tests.support.request_bodies import UPLOAD
from tests.support.uploaded_sales import add_sale, rows
from toolkit.bucket.client import Bucket
from toolkit.errors import BucketError, BucketUnavailable
from toolkit.evidence.credentials import UploadLimits, request_upload
from toolkit.settings import AwsSettings

LIMITS = UploadLimits(ttl_seconds=900, max_bytes=1_000_000)
BODY = {**UPLOAD, "fileName": "contrato assinado.pdf"}


@pytest.fixture
def ask(database, bucket, clock):
    add_sale(database, "VND-1")

    def ask(sale_id="VND-1", body=BODY, bucket=bucket):
        return request_upload(
            database, bucket, sale_id, body, requested_by="partner-1", limits=LIMITS, clock=clock
        )

    return ask


def records(database):
    return rows(database, "SELECT id, sale_id, file_name, object_key, requested_by, expires_at FROM evidences")


def test_nothing_is_stored_where_no_form_can_be_signed(ask, database):
    unreachable = Bucket(
        "evidence",
        AwsSettings("AKIAEXAMPLE", "secret", s3_endpoint="http://127.0.0.1:1", sts_endpoint="http://127.0.0.1:1"),
    )
    with pytest.raises(BucketUnavailable):
        ask(bucket=unreachable)
    with pytest.raises(BucketError):
        ask(bucket=Bucket("evidence", AwsSettings("AKIA", "s", "token", session_ends=datetime.now(UTC))))
    assert records(database) == []


def test_credentials_are_in_no_repr_and_no_log(ask, caplog):
    with caplog.at_level(logging.DEBUG, "toolkit"), caplog.at_level(logging.DEBUG, "sqlalchemy"):
        issued = ask()
    shown = repr(issued) + caplog.text
    for secret in ("X-Amz-Security-Token", "X-Amz-Signature", "Policy"):
        assert issued.fields[secret] not in shown
