"""Our upload forms against a reading of S3's rules that shares no code with them."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.credentials import ReadOnlyCredentials
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.presigned_post import Refused, Signatory, check_form
from toolkit.domain.evidence import EvidenceRequest
from toolkit.domain.requests import parse
from toolkit.errors import InvalidFields
from toolkit.storage.post_policy import signed_fields

NOW = datetime(2026, 3, 2, 12, 0, 5, tzinfo=UTC)
MAX_BYTES = 1000
SESSION = ReadOnlyCredentials("ASIAEXAMPLE", "a secret", "a token")
SIGNATORIES = {"ASIAEXAMPLE": Signatory("a secret", "a token"), "AKIAOTHER": Signatory("another secret")}


def form(key: str = "evidences/2026/03/02/id/a.pdf", **changes: Any) -> dict[str, str]:
    options = {"bucket": "evidence", "max_bytes": MAX_BYTES, "expires_at": NOW + timedelta(hours=1)} | changes
    return signed_fields(SESSION, "sa-east-1", key=key, signed_at=NOW, **options) | {"acl": "private"}


def check(
    fields: dict[str, str] | list[tuple[str, str]], size: int = 500, now: datetime = NOW, bucket: str = "evidence"
) -> str:
    posted = list(fields.items()) if isinstance(fields, dict) else fields
    return check_form(posted, size, bucket=bucket, region="sa-east-1", signatories=SIGNATORIES, now=now)


@st.composite
def file_names(draw: st.DrawFn) -> str:
    body = {"fileName": draw(st.text()), "fileFormat": "a/b", "type": "a/b", "evidenceType": "KYC"}
    try:
        return parse(
            EvidenceRequest, body | {"fileFormat": "application/pdf", "type": "application/pdf"}
        ).file_name
    except InvalidFields:
        assume(False)
        raise


@given(file_names(), st.integers(1, MAX_BYTES), st.integers(0, 3599))
@example("emoji 😀 ção \u2028.pdf", 1, 0)
def test_the_form_of_any_file_name_is_taken_for_any_size_in_range_until_it_expires(
    name: str, size: int, seconds: int
) -> None:
    key = f"evidences/2026/03/02/id/{name}"
    assert check(form(key), size, NOW + timedelta(seconds=seconds)) == key


@given(st.data())
def test_no_field_can_be_changed(data: st.DataObject) -> None:
    fields = form()
    name = data.draw(st.sampled_from(list(fields)))
    value = data.draw(st.one_of(st.text(), st.just(fields[name].swapcase()), st.just(fields[name] + " ")))
    assume(value != fields[name])
    with pytest.raises(Refused):
        check(fields | {name: value})


@given(st.sampled_from([name for name in form() if name != "bucket"]))
def test_no_field_can_be_left_out(name: str) -> None:
    fields = form()
    del fields[name]
    with pytest.raises(Refused):
        check(fields)


@given(st.text(min_size=1), st.text())
def test_no_field_can_be_added(name: str, value: str) -> None:
    assume(name.lower() != "file" and not name.lower().startswith("x-ignore-"))
    with pytest.raises(Refused):
        check([*form().items(), (name, value)])


@given(st.integers(max_value=0) | st.integers(min_value=MAX_BYTES + 1))
def test_no_other_size_is_taken(size: int) -> None:
    with pytest.raises(Refused, match="size"):
        check(form(), size)


def test_a_form_ends_with_its_last_second_and_is_for_its_bucket_only() -> None:
    with pytest.raises(Refused, match="expired"):
        check(form(), now=NOW + timedelta(hours=1))
    with pytest.raises(Refused, match="bucket"):
        check(form(), bucket="another")


def test_a_policy_cannot_be_rewritten() -> None:
    fields = form()
    policy = json.loads(base64.b64decode(fields["Policy"]))
    policy["expiration"] = "2099-01-01T00:00:00Z"
    rewritten = base64.b64encode(json.dumps(policy).encode()).decode()
    with pytest.raises(Refused, match="signature"):
        check(fields | {"Policy": rewritten})


def test_a_key_never_holds_what_s3_would_replace() -> None:
    with pytest.raises(ValueError, match="filename"):
        form("evidences/2026/03/02/id/${filename}")


AWS_POLICY = (
    "eyAiZXhwaXJhdGlvbiI6ICIyMDE1LTEyLTMwVDEyOjAwOjAwLjAwMFoiLA0KICAiY29uZGl0aW9ucyI6IFsNCiAgICB7ImJ1Y2tldCI6"
    "ICJzaWd2NGV4YW1wbGVidWNrZXQifSwNCiAgICBbInN0YXJ0cy13aXRoIiwgIiRrZXkiLCAidXNlci91c2VyMS8iXSwNCiAgICB7ImFj"
    "bCI6ICJwdWJsaWMtcmVhZCJ9LA0KICAgIHsic3VjY2Vzc19hY3Rpb25fcmVkaXJlY3QiOiAiaHR0cDovL3NpZ3Y0ZXhhbXBsZWJ1Y2tl"
    "dC5zMy5hbWF6b25hd3MuY29tL3N1Y2Nlc3NmdWxfdXBsb2FkLmh0bWwifSwNCiAgICBbInN0YXJ0cy13aXRoIiwgIiRDb250ZW50LVR5"
    "cGUiLCAiaW1hZ2UvIl0sDQogICAgeyJ4LWFtei1tZXRhLXV1aWQiOiAiMTQzNjUxMjM2NTEyNzQifSwNCiAgICB7IngtYW16LXNlcnZl"
    "ci1zaWRlLWVuY3J5cHRpb24iOiAiQUVTMjU2In0sDQogICAgWyJzdGFydHMtd2l0aCIsICIkeC1hbXotbWV0YS10YWciLCAiIl0sDQoN"
    "CiAgICB7IngtYW16LWNyZWRlbnRpYWwiOiAiQUtJQUlPU0ZPRE5ON0VYQU1QTEUvMjAxNTEyMjkvdXMtZWFzdC0xL3MzL2F3czRfcmVx"
    "dWVzdCJ9LA0KICAgIHsieC1hbXotYWxnb3JpdGhtIjogIkFXUzQtSE1BQy1TSEEyNTYifSwNCiAgICB7IngtYW16LWRhdGUiOiAiMjAx"
    "NTEyMjlUMDAwMDAwWiIgfQ0KICBdDQp9"
)
"""The policy of the example in the S3 API reference, with its signature below."""


def test_the_reading_of_s3s_rules_takes_the_example_of_the_documentation() -> None:
    fields = {
        "key": "user/user1/photo.jpg",
        "acl": "public-read",
        "success_action_redirect": "http://sigv4examplebucket.s3.amazonaws.com/successful_upload.html",
        "Content-Type": "image/jpeg",
        "x-amz-meta-uuid": "14365123651274",
        "x-amz-server-side-encryption": "AES256",
        "X-Amz-Credential": "AKIAIOSFODNN7EXAMPLE/20151229/us-east-1/s3/aws4_request",
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Date": "20151229T000000Z",
        "x-amz-meta-tag": "",
        "Policy": AWS_POLICY,
        "X-Amz-Signature": "8afdbf4008c03f22c2cd3cdb72e4afbb1f6a588f3255ac628749a66d7f09699e",
    }
    key = check_form(
        list(fields.items()),
        4,
        bucket="sigv4examplebucket",
        region="us-east-1",
        signatories={"AKIAIOSFODNN7EXAMPLE": Signatory("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")},
        now=datetime(2015, 12, 29, 12, tzinfo=UTC),
    )
    assert key == "user/user1/photo.jpg"
