"""The contract's upload form (section 3) on servers that enforce its policy and signature."""

import base64
import json
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import httpx
import pytest

from tests.conftest import client_of
from tests.support.waiting import PATIENCE
from toolkit import embedded
from toolkit.bucket.client import Bucket, list_objects
from toolkit.embedded import NEVER
from toolkit.errors import BucketError
from toolkit.partner import post_file
from toolkit.settings import AwsSettings

MAX_BYTES = 1000
KEY = "evidences/2026/03/02/01990000-0000-7000-8000-000000000000/contrato João 😀.pdf"
ANOTHER_KEY = KEY.replace("contrato", "outro")
PDF = b"%PDF-1.4\nnot much of a document\n%%EOF\n"


@pytest.fixture(params=["embedded", "gateway"])
def access(request, home):
    """Return the access to each of the servers."""
    if request.param == "embedded":
        return embedded.bucket_access(home)
    return request.getfixturevalue("object_gateway")


@pytest.fixture
def server(access):
    """A fresh bucket."""
    return make_bucket(access)


def make_bucket(access):
    name, url = f"test-{uuid4().hex}", access.s3_endpoint
    with closing(client_of(access)) as client:
        client.create_bucket(Bucket=name)
    keys = (access.access_key_id, access.secret_access_key, access.session_token)
    return Bucket(name, AwsSettings(*keys, session_ends=NEVER, s3_endpoint=url, sts_endpoint=url))


def form_of(bucket, lives=timedelta(minutes=10)):
    return bucket.presign_post(KEY, max_bytes=MAX_BYTES, expires_at=datetime.now(UTC) + lives)


def as_posted(form):
    """All text parts of section 3 of the contract."""
    return {**form.fields, "acl": "private"}


def post(form, fields, content=PDF):
    return httpx.post(form.url, data=fields, files={"file": ("file", content)}, trust_env=False, timeout=PATIENCE)


def keys(bucket):
    return [item.key for page in list_objects(bucket, [""]) for item in page]


def test_the_form_is_accepted_as_it_is(server, tmp_path):
    path = tmp_path / "contract.pdf"
    path.write_bytes(PDF)
    form = form_of(server)
    post_file(form.url, form.fields, path)
    assert keys(server) == [KEY]
    assert server.read(KEY, 0, 100) == PDF


@pytest.mark.parametrize("size", [0, MAX_BYTES + 1, 100 * MAX_BYTES])
def test_an_empty_or_larger_file_is_refused(server, size):
    form = form_of(server)
    assert_refused(server, post(form, as_posted(form), b"x" * size))


def longer(policy):
    document = json.loads(base64.b64decode(policy))
    document["expiration"] = "2099-01-01T00:00:00Z"
    return base64.b64encode(json.dumps(document).encode()).decode()


def swapped(text):
    """Another text of the same letters: the last two change places, or one is doubled."""
    return text[:-2] + text[-1] + text[-2] if text[-1] != text[-2] else text + text[-1]


TAMPERED = {
    "another key": lambda form: form | {"key": ANOTHER_KEY},
    "a key that S3 completes": lambda form: form | {"key": "evidences/${filename}"},
    "another acl": lambda form: form | {"acl": "public-read"},
    "no acl": lambda form: without(form, "acl"),
    "a changed signature": lambda form: form | {"X-Amz-Signature": swapped(form["X-Amz-Signature"])},
    "no signature": lambda form: without(form, "X-Amz-Signature"),
    "a policy that lives longer": lambda form: form | {"Policy": longer(form["Policy"])},
    "no policy": lambda form: without(form, "Policy"),
    "the token left out": lambda form: without(form, "X-Amz-Security-Token"),
    "a changed token": lambda form: form | {"X-Amz-Security-Token": swapped(form["X-Amz-Security-Token"])},
    "another date": lambda form: form | {"X-Amz-Date": "20260101T000000Z"},
    "another credential": lambda form: form | {"X-Amz-Credential": "AKIAX" + form["X-Amz-Credential"]},
    "another algorithm": lambda form: form | {"X-Amz-Algorithm": "AWS4-HMAC-SHA1"},
    "an extra field": lambda form: form | {"Content-Type": "text/html"},
    "extra metadata": lambda form: form | {"x-amz-meta-note": "hello"},
    "a redirection": lambda form: form | {"success_action_redirect": "http://127.0.0.1/"},
}


def without(form, name):
    return {key: value for key, value in form.items() if key != name}


@pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED.keys())
def test_a_form_that_was_tampered_with_is_refused(server, change):
    form = form_of(server)
    assert_refused(server, post(form, change(as_posted(form))))


def test_an_expired_form_is_refused(server):
    form = form_of(server, lives=timedelta(seconds=-1))
    assert_refused(server, post(form, as_posted(form)))


def test_a_form_is_refused_by_another_bucket(server, access):
    another = make_bucket(access)
    form = form_of(server)
    elsewhere = replace(form, url=form.url.replace(server.name, another.name))
    assert_refused(another, post(elsewhere, as_posted(form)))
    assert_refused(another, post(elsewhere, as_posted(form) | {"bucket": another.name}))


def assert_refused(bucket, answer):
    assert 400 <= answer.status_code < 500, answer.text
    assert keys(bucket) == []


def test_what_the_bucket_says_about_one_object(server):
    assert server.head(KEY) is None
    form = form_of(server)
    post(form, as_posted(form))
    seen = server.head(KEY)
    assert [seen] == [
        type(item)(item.key, item.size, item.etag, item.last_modified.replace(microsecond=0))
        for page in list_objects(server, ["evidences/2026/03/"])
        for item in page
    ]
    assert (server.read(KEY, 1, 3), server.read(KEY, len(PDF) - 2, 10), server.read(KEY, 1000, 1)) == (
        b"PDF",
        PDF[-2:],
        b"",
    )
    with pytest.raises(BucketError, match="404 NoSuchKey"):
        server.read(ANOTHER_KEY, 0, 1)
    server.check()
