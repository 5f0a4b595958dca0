"""The partner client against a server that refuses, hangs up and answers late."""

import base64
import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.scripted_server import HANG_UP, Answer, scripted
from tests.unit.test_jobs import Mailbox, certificate, mail_server  # noqa: F401  # a fixture
from toolkit.errors import (
    AlreadyThere,
    CredentialsExpired,
    SaleNotFound,
    ServiceError,
    ServiceUnavailable,
    SettingsError,
    UnreadableFile,
    UploadRefused,
)
from toolkit.partner import PartnerClient, post_file
from toolkit.partner import posting as retrying

TAKEN = Answer(204)
SLOW_DOWN = Answer(503, b"<Error><Code>SlowDown</Code></Error>")
TOO_SLOW = Answer(400, b"<Error><Code>RequestTimeout</Code></Error>")
EVIDENCE_ID = "0199aa00-0000-7000-8000-000000000001"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setattr(retrying, "FIRST_PAUSE", 0.001)


@pytest.fixture
def document(tmp_path):
    path = tmp_path / 'the "contract".pdf'
    path.write_bytes(b"%PDF-1.4\n" + b"x" * 200_000)
    return path


def form(*, lives=timedelta(hours=1), **policy):
    document = {"expiration": (datetime.now(UTC) + lives).isoformat(), "conditions": [], **policy}
    return {"key": "evidences/a/b.pdf", "Policy": base64.b64encode(json.dumps(document).encode()).decode()}


def refusal(code, message=""):
    return Answer(403, f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode())


def test_the_parts_are_those_of_the_contract_with_the_file_last(document):
    fields = form()
    with scripted(TAKEN) as server:
        post_file(server.url, fields, document)
    [request] = server.requests
    assert request.parts == [
        ("key", None, fields["key"].encode()),
        ("Policy", None, fields["Policy"].encode()),
        ("acl", None, b"private"),
        ("file", "the %22contract%22.pdf", document.read_bytes()),
    ]
    assert int(request.headers["Content-Length"]) == len(request.body)
    assert request.headers["Transfer-Encoding"] is None


@pytest.mark.parametrize("fault", [SLOW_DOWN, TOO_SLOW, HANG_UP, Answer(500)])
def test_a_passing_fault_is_tried_again(document, fault):
    with scripted(fault, fault, TAKEN) as server:
        post_file(server.url, form(), document)
    assert len(server.requests) == 3
    assert server.requests[2].parts[-1][2] == document.read_bytes()


def test_a_file_that_is_longer_than_it_was_is_not_sent_as_a_whole_one():
    with scripted(TAKEN) as server, pytest.raises(UnreadableFile, match="changed while it was sent"):
        post_file(server.url, form(), Path("/dev/zero"))


def test_trying_again_ends_when_the_credentials_run_out(document, monkeypatch):
    monkeypatch.setattr(retrying, "FIRST_PAUSE", 60)
    with scripted(SLOW_DOWN) as server, pytest.raises(CredentialsExpired):
        post_file(server.url, form(lives=timedelta(seconds=1)), document)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer", [refusal("ExpiredToken"), refusal("AccessDenied", "Invalid according to Policy: Policy expired.")]
)
def test_the_bucket_may_be_the_one_that_says_that_credentials_ran_out(document, answer):
    with scripted(answer) as server, pytest.raises(CredentialsExpired):
        post_file(server.url, form(), document)


def test_a_refusal_is_told_with_its_code_and_without_any_field(document):
    fields = form() | {"X-Amz-Security-Token": "secret-token"}
    answer = refusal("SignatureDoesNotMatch", fields["Policy"])
    with scripted(answer) as server, pytest.raises(UploadRefused, match="403 SignatureDoesNotMatch") as refused:
        post_file(server.url, fields, document)
    assert len(server.requests) == 1
    assert not any(value in str(refused.value) for value in fields.values())


REGISTERED = Answer(
    200, json.dumps({"message": "Client created", "clientId": EVIDENCE_ID, "addressId": EVIDENCE_ID}).encode()
)
UNAVAILABLE = Answer(503, b'{"message": "later"}', {"Retry-After": "1"})


def test_a_registration_is_tried_again_after_503_only_and_when_the_service_asks_for_it(monkeypatch):
    waits = []
    monkeypatch.setattr("urllib3.util.retry.time.sleep", waits.append)
    with scripted(UNAVAILABLE, UNAVAILABLE, REGISTERED) as server:
        registration = PartnerClient(server.url, "the-token\n").register_client({"birthdate": date(1990, 2, 1)})
    assert registration.client_id == UUID(EVIDENCE_ID)
    assert len(server.requests) == 3
    request = server.requests[-1]
    assert (request.method, request.path) == ("POST", "/clients")
    assert json.loads(request.body) == {"birthdate": "1990-02-01"}
    assert request.headers["Authorization"] == "Bearer the-token"
    assert waits == [1, 1]
    with scripted(HANG_UP) as server, pytest.raises(ServiceUnavailable, match="may have been done"):
        PartnerClient(server.url, "t").register_client({})
    assert len(server.requests) == 1


def test_a_certificate_that_is_not_trusted_is_told_and_nothing_is_sent(certificate, document):  # noqa: F811
    with mail_server(Mailbox(), certificate) as known:
        url = f"https://127.0.0.1:{known['TOOLKIT_SMTP_PORT']}"
        with pytest.raises(ServiceError, match="is not trusted here: nothing was sent"):
            PartnerClient(url, "t").completion("sale-1")
        with pytest.raises(UploadRefused, match="is not trusted here: nothing was sent"):
            post_file(url, form(), document)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(401, b'{"message": "no"}'), ServiceError),
        (Answer(409, b'{"message": "there already", "code": 409}'), AlreadyThere),
        (Answer(409, b"not json"), AlreadyThere),
        (Answer(400, b"not json"), ServiceError),
        (Answer(200, b'{"id": 5, "url": "", "fields": {}}'), ServiceError),
    ],
)
def test_other_answers_become_errors(answer, error):
    with scripted(answer) as server, pytest.raises(error) as raised:
        PartnerClient(server.url, "t").request_upload("sale 1", {})
    assert ("there already" in str(raised.value)) is (b"there already" in answer.body)


def test_an_address_without_the_service_is_told():
    with scripted(Answer(404)) as server, pytest.raises(ServiceError, match="answered 404, which was not"):
        PartnerClient(server.url, "t").register_client({})
    with scripted(Answer(200, b"<html>")) as server, pytest.raises(ServiceError, match="is not the contract's"):
        PartnerClient(server.url, "t").completion("sale-1")
    for address in ("http://", "http://[::1", "https://sales.example.com:99999", "sales.example.com"):
        with pytest.raises(SettingsError, match="must look like"):
            PartnerClient(address, "t")


def test_nothing_is_asked_for_a_file_that_is_not_there(tmp_path):
    with scripted() as server, pytest.raises(UnreadableFile, match="No such file"):
        PartnerClient(server.url, "t").upload("S-1", tmp_path / "x", evidence_type="POV", media_type="audio/mpeg")
    assert server.requests == []


@pytest.mark.parametrize(
    ("sale_id", "path"),
    [("sale 1/é", "/sales/sale%201%2F%C3%A9/evidences"), ("..", "/sales/%2E%2E/evidences")],
)
def test_a_sale_id_is_one_segment_of_the_path(sale_id, path):
    with scripted(Answer(404)) as server, pytest.raises(SaleNotFound):
        PartnerClient(server.url, "t").request_upload(sale_id, {})
    assert server.requests[0].path == path
