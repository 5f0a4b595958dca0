"""The bucket where servers and credentials misbehave: what is raised, what it says, how sessions are renewed."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Event
from urllib.parse import parse_qs

import pytest

from tests.support.scripted_server import HANG_UP, Answer, scripted
from tests.support.waiting import PATIENCE
from toolkit.bucket import sessions as aws_sessions
from toolkit.bucket.client import Bucket
from toolkit.errors import BucketError, BucketUnavailable, ObjectDenied
from toolkit.settings import AwsSettings, Settings

SECRET = "a-secret-that-no-text-may-show"
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def refusal(status, code, around="{}"):
    body = f"<Error><Code>{code}</Code><Message>key AKIAEXAMPLE and {SECRET}</Message></Error>"
    return Answer(status, around.format(body).encode(), {"Content-Type": "application/xml"})


of_sts = partial(refusal, around="<ErrorResponse>{}</ErrorResponse>")


def session(token, ends_at, action="GetSessionToken"):
    body = (
        f"<{action}Response><{action}Result><Credentials><AccessKeyId>ASIA{token}</AccessKeyId>"
        f"<SecretAccessKey>{SECRET}</SecretAccessKey><SessionToken>{token}</SessionToken>"
        f"<Expiration>{ends_at:%Y-%m-%dT%H:%M:%SZ}</Expiration></Credentials></{action}Result></{action}Response>"
    )
    return Answer(200, body.encode(), {"Content-Type": "text/xml"})


def bucket_at(url, **aws):
    keys = {"access_key_id": "AKIAEXAMPLE", "secret_access_key": SECRET}
    named = AwsSettings(**keys | {"s3_endpoint": url, "sts_endpoint": url} | aws)
    return Bucket("evidence", named, clock=lambda: NOW)


def form(bucket, expires_at=NOW + HOUR):
    return bucket.presign_post("evidences/k", max_bytes=10, expires_at=expires_at)


@pytest.fixture
def serve(monkeypatch):
    monkeypatch.setattr(aws_sessions, "ATTEMPTS", 1)
    with ExitStack() as running:
        yield lambda *answers: running.enter_context(scripted(*answers))


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (refusal(503, "SlowDown"), BucketUnavailable, "overloaded or failing (503 SlowDown)"),
        (refusal(429, "TooManyRequests"), BucketUnavailable, "overloaded or failing"),
        (HANG_UP, BucketUnavailable, "does not answer"),
        (refusal(404, "NoSuchBucket"), BucketUnavailable, "does not exist; check EVIDENCE_BUCKET"),
        (refusal(403, "AccessDenied"), ObjectDenied, "the credentials are wrong, or lack s3:GetObject"),
        (refusal(403, "InvalidAccessKeyId"), BucketUnavailable, "does not know the access key; check AWS_ACCESS"),
        (refusal(403, "SignatureDoesNotMatch"), BucketUnavailable, "refused the signature; check AWS_ACCESS"),
        (refusal(400, "ExpiredToken"), BucketUnavailable, "the AWS session has ended; sign in again"),
        (refusal(403, "RequestTimeTooSkewed"), BucketUnavailable, "set the clock"),
        (refusal(400, "AuthorizationHeaderMalformed"), BucketUnavailable, "is in another region; set AWS_REGION"),
        (refusal(404, "NoSuchKey"), BucketError, "refused GetObject: 404 NoSuchKey"),
    ],
)
def test_what_a_server_answers_becomes_a_text_that_says_what_to_do(serve, answer, kind, says):
    server = serve(answer)
    with pytest.raises(BucketError) as raised:
        bucket_at(server.url).read("a key with a name in it", 1)
    text = str(raised.value)
    assert type(raised.value) is kind
    assert says in text
    assert f"bucket evidence at {server.url}" in text
    assert not any(word in text for word in (SECRET, "AKIAEXAMPLE", "a name in it"))


@pytest.mark.parametrize("broken", [refusal(500, "InternalError"), HANG_UP])
def test_an_object_that_the_bucket_lost_is_not_a_bucket_that_is_away(serve, broken):
    bucket = bucket_at(serve(lambda request: Answer(200) if request.path == "/evidence" else broken).url)
    with pytest.raises(BucketError, match=r"500 InternalError|does not answer") as read:
        bucket.read("k", 1)
    with pytest.raises(BucketError) as downloaded, bucket.download("k", etag="e"):
        pass
    assert {type(read.value), type(downloaded.value)} == {BucketError}


@pytest.mark.parametrize("answer", [Answer(200, b"<html>a page</html>"), Answer(204), Answer(301)])
@pytest.mark.parametrize("ask", [lambda bucket: bucket.page(""), lambda bucket: bucket.head("k"), form])
def test_a_server_of_another_kind_is_told(serve, answer, ask):
    with pytest.raises(BucketError, match=r"check AWS_ENDPOINT_URL|set AWS_REGION"):
        ask(bucket_at(serve(answer).url))


@pytest.mark.parametrize(
    "part",
    [
        b"<IsTruncated>true</IsTruncated>",  # of an older kind of server, which knows no tokens
        b"<IsTruncated>true</IsTruncated><NextContinuationToken>same</NextContinuationToken>",
        b"<IsTruncated>false</IsTruncated><Contents><Key>k</Key></Contents>",
        b"<IsTruncated>false</IsTruncated><Contents><Key>k</Key><Size>ten</Size></Contents>",
    ],
)
def test_a_page_that_lacks_a_part_is_not_the_whole_listing(serve, part):
    answer = Answer(200, b"<ListBucketResult>" + part + b"</ListBucketResult>")
    with pytest.raises(BucketError, match="check AWS_ENDPOINT_URL"):
        bucket_at(serve(answer).url).page("", "same")


@pytest.mark.parametrize(("status", "says"), [(403, "lack s3:ListBucket"), (404, "does not exist")])
def test_a_check_tells_a_missing_bucket_from_a_forbidden_one(serve, status, says):
    with pytest.raises(BucketError, match=says):
        bucket_at(serve(Answer(status)).url).check()


def test_credentials_that_are_nowhere(monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    bucket = Bucket("evidence", AwsSettings(s3_endpoint="http://127.0.0.1:1"))
    for use in (bucket.check, lambda: form(bucket)):
        with pytest.raises(BucketError, match=r"no AWS credentials .* set AWS_ACCESS_KEY_ID"):
            use()
    with pytest.raises(BucketError, match="AWS_PROFILE names a profile"):
        Bucket("evidence", AwsSettings(profile="nobody"))


class TestSessions:
    def test_a_user_signs_with_a_session_that_serves_all_forms(self, serve):
        server = serve(session("one", NOW + 12 * HOUR))
        bucket = bucket_at(server.url)
        with ThreadPoolExecutor(8) as threads:
            forms = list(threads.map(lambda _: form(bucket), range(40)))
        assert {item.fields["X-Amz-Security-Token"] for item in forms} == {"one"}
        assert forms[0].expires_at == NOW + HOUR
        (request,) = server.requests
        assert parse_qs(request.body.decode())["Action"] == ["GetSessionToken"]

    def test_a_role_signs_where_one_is_named(self, serve):
        server = serve(session("role", NOW + HOUR, "AssumeRole"))
        role = "arn:aws:iam::123456789012:role/uploads"
        keys = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": SECRET}
        named = {"EVIDENCE_BUCKET": "evidence", "EVIDENCE_ROLE_ARN": role, "AWS_ENDPOINT_URL": server.url}
        settings = Settings.from_environment(keys | named)
        assert form(Bucket.open(settings, lambda: NOW)).fields["X-Amz-Security-Token"] == "role"
        asked = parse_qs(server.requests[0].body.decode())
        assert (asked["Action"], asked["RoleArn"]) == (["AssumeRole"], [role])

    def test_a_session_that_cannot_be_renewed_yet_signs_to_its_end(self, serve, monkeypatch):
        monkeypatch.setattr(aws_sessions, "RENEWAL_PAUSE", timedelta(0))
        ends_at = NOW + timedelta(minutes=30)
        bucket = bucket_at(serve(session("first", ends_at), HANG_UP).url)
        assert [form(bucket).expires_at for _ in range(3)] == [ends_at] * 3

    def test_who_renews_a_session_keeps_nobody_else_waiting(self, serve, monkeypatch):
        monkeypatch.setattr(aws_sessions, "RENEWAL_PAUSE", timedelta(0))
        asked, answered = Event(), Event()
        second = session("second", NOW + 12 * HOUR)
        slow = lambda _: asked.set() or (answered.wait(PATIENCE) and second)  # noqa: E731
        bucket = bucket_at(serve(session("first", NOW + timedelta(minutes=30)), slow).url)
        with ThreadPoolExecutor(1) as thread:
            tokens = [form(bucket).fields["X-Amz-Security-Token"]]
            renewed = thread.submit(form, bucket)
            assert asked.wait(PATIENCE)
            tokens.append(form(bucket).fields["X-Amz-Security-Token"])
            answered.set()
        assert tokens == ["first", "first"]
        assert renewed.result().fields["X-Amz-Security-Token"] == "second"

    def test_a_session_that_cuts_forms_short_is_renewed_after_a_pause(self, serve, monkeypatch):
        server = serve(session("first", NOW + timedelta(minutes=30)), session("second", NOW + 12 * HOUR))
        bucket = bucket_at(server.url)
        assert [form(bucket).fields["X-Amz-Security-Token"] for _ in range(3)] == ["first"] * 3
        monkeypatch.setattr(aws_sessions, "RENEWAL_PAUSE", timedelta(0))
        monkeypatch.setattr(bucket._sessions, "_renew_from", NOW)
        assert [form(bucket).fields["X-Amz-Security-Token"] for _ in range(3)] == ["second"] * 3

    def test_ambient_credentials_with_a_token_need_no_session(self, serve):
        server = serve(HANG_UP)
        ends_at = NOW + timedelta(minutes=10)
        bucket = bucket_at(server.url, session_token="ambient", session_ends=ends_at)
        issued = form(bucket)
        assert (issued.fields["X-Amz-Security-Token"], issued.expires_at) == ("ambient", ends_at)
        assert server.requests == []

    def test_a_form_of_a_session_of_unknown_end_lives_a_quarter_of_an_hour_with_a_warning(self, caplog):
        bucket = bucket_at("http://127.0.0.1:1", session_token="ambient")
        issued, _ = (form(bucket) for _ in range(2))
        assert issued.expires_at == NOW + timedelta(minutes=15)
        [warning] = [record.getMessage() for record in caplog.records]
        assert "upload forms live at most 15 minutes" in warning

    @pytest.mark.parametrize(
        ("answer", "kind", "says"),
        [
            (of_sts(403, "AccessDenied"), BucketError, "lack sts:GetSessionToken, or EVIDENCE_ROLE_ARN"),
            (of_sts(403, "InvalidClientTokenId"), BucketError, "does not know the access key"),
            (of_sts(400, "Throttling"), BucketUnavailable, "overloaded"),
            (HANG_UP, BucketUnavailable, "does not answer"),
        ],
    )
    def test_a_token_service_that_says_no(self, serve, answer, kind, says):
        server = serve(answer)
        with pytest.raises(BucketError, match=says) as raised:
            form(bucket_at(server.url))
        assert type(raised.value) is kind
        assert f"token service at {server.url}" in str(raised.value)
        assert SECRET not in str(raised.value)
