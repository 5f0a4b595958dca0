"""Listings and upload forms, whatever the keys and the names."""

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

import pytest
from botocore.credentials import ReadOnlyCredentials
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.support.buckets import MemoryBucket
from tests.support.request_bodies import UPLOAD
from toolkit.bucket.client import list_objects
from toolkit.bucket.sessions import signed_fields
from toolkit.contract.evidence import EvidenceRequest
from toolkit.contract.fields import parse
from toolkit.errors import InvalidFields


@settings(max_examples=25)
@given(wanted=st.lists(st.integers(0, 10**6), min_size=1, max_size=3))
def test_folders_side_by_side_show_the_keys_of_their_prefixes_and_no_others(wanted):
    bucket = MemoryBucket(page_size=1 + wanted[0] % 5)
    for number in (*wanted, 10**7):
        drawn = Random(number)
        letters = drawn.choice(("ab", "a/~", "a/b/c/", "0123456789abcdef", "aé\ue000😀", "a\\\t\n\r% +&"))
        for _ in range(90):
            bucket.put(f"{number}/{''.join(drawn.choices(letters, k=drawn.randrange(9)))}", b"")
    pages = list_objects(bucket, [f"{number}/" for number in wanted])
    found = {item.key for page in pages for item in page}
    assert found == {key for key in bucket.contents if not key.startswith("10000000/")}


NOW = datetime(2026, 3, 2, 1, 0, 5, tzinfo=UTC).astimezone(ZoneInfo("America/Sao_Paulo"))  # the day before, there
SESSION = ReadOnlyCredentials("ASIAEXAMPLE", "a secret", "a token")


def form(key, max_bytes=1000, ends_at=NOW):
    named = {"bucket": "evidence", "key": key, "max_bytes": max_bytes, "signed_at": NOW, "expires_at": ends_at}
    return signed_fields(SESSION, "sa-east-1", **named)


@st.composite
def file_names(draw):
    try:
        return parse(EvidenceRequest, UPLOAD | {"fileName": draw(st.text())}).file_name
    except InvalidFields:
        assume(False)
        raise


@given(file_names(), st.integers(1, 10**10), st.integers(0, 12 * 3600))
@example("emoji 😀 ção \u2028.pdf", 1, 0)
def test_the_policy_binds_every_field_of_a_form_its_size_and_its_end(name, size, seconds):
    ends_at = NOW + timedelta(seconds=seconds)
    fields = form(f"evidences/2026/03/02/id/{name}", size, ends_at + timedelta(microseconds=1))
    policy = json.loads(base64.b64decode(fields["Policy"], validate=True))
    posted = [{field.lower(): fields[field]} for field in fields if field not in {"Policy", "X-Amz-Signature"}]
    assert policy["conditions"] == [*posted, {"acl": "private"}, ["content-length-range", 1, size]]
    assert datetime.fromisoformat(policy["expiration"]) == ends_at
    signature = b"AWS4a secret"  # by "Authenticating Requests: Browser-Based Uploads" of the S3 API reference
    for step in ("20260302", "sa-east-1", "s3", "aws4_request", fields["Policy"]):
        signature = hmac.digest(signature, step.encode(), hashlib.sha256)
    assert fields["X-Amz-Credential"] == "ASIAEXAMPLE/20260302/sa-east-1/s3/aws4_request"
    assert fields["X-Amz-Signature"] == signature.hex()


def test_a_key_never_holds_what_s3_would_replace():
    with pytest.raises(ValueError, match="filename"):
        form("evidences/2026/03/02/id/${filename}")
