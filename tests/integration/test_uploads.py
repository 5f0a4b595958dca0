"""Uploads with a credentials file, into a bucket that checks policies and signatures."""

import json
import os
import signal
import socket
from base64 import b64encode
from datetime import timedelta

import pytest

from tests.support.process_pool import start_command
from tests.support.scripted_server import Answer, scripted
from tests.support.uploaded_sales import MP3, PDF, credentials_line, write_credentials
from tests.support.waiting import wait_until
from toolkit.bucket.client import list_objects
from toolkit.errors import UnreadableFile
from toolkit.evidence import upload
from toolkit.evidence.upload import CredentialsLine, UploadProblem, destinations, remove_expired, upload_files
from toolkit.partner import FormPolicy
from toolkit.partner import posting as retrying
from toolkit.settings import Settings

ENDLESS = b64encode(
    b'{"expiration": "2030-01-01T00:00:00Z", "conditions": [["content-length-range", 0, 1e999]]}'
).decode()
"""A policy with a size that is no number of bytes."""


SOUND = b64encode(b'{"expiration": "2030-01-01T00:00:00Z", "conditions": []}').decode()
FORM = {"id": "0199c0de-0000-7000-8000-000000000001", "saleId": "s", "fileName": "b", "fields": {"Policy": SOUND}}


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "files"
    path.mkdir()
    return path


def put(folder, name, content=PDF):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return path


def keys(bucket):
    return {item.key for page in list_objects(bucket, [""]) for item in page}


def test_files_are_found_by_sale_or_by_a_name_that_is_unique(bucket, folder, tmp_path):
    lines = [
        credentials_line(bucket, "sale-1", "contract.pdf"),
        credentials_line(bucket, "sale-2", "contract.pdf"),
        credentials_line(bucket, "sale-2", "voice ção.mp3", "POV"),
    ]
    put(folder, "sale-1/contract.pdf", PDF + b"1")
    put(folder, "sale-2/contract.pdf", PDF + b"2")
    put(folder, "voice ção.mp3", MP3)
    uploaded = upload_files(write_credentials(tmp_path / "c.jsonl", lines), folder)
    assert (uploaded.files, uploaded.sent, uploaded.skipped, uploaded.failures) == (3, 3, 0, ())
    assert bucket.read(lines[0]["fields"]["key"], 0, 1000) == PDF + b"1"
    assert bucket.read(lines[1]["fields"]["key"], 0, 1000) == PDF + b"2"
    assert bucket.read(lines[2]["fields"]["key"], 0, 10_000) == MP3


def test_each_reason_not_to_send_is_told_and_the_others_are_sent(bucket, folder, tmp_path):
    long = ("\U0001f600" * 100, "n" * 300 + ".pdf")  # longer than a name of a file may be
    bad = [
        (credentials_line(bucket, "s", "missing.pdf"), UploadProblem.NOT_FOUND),
        (credentials_line(bucket, "s", "empty.pdf"), UploadProblem.EMPTY),
        (credentials_line(bucket, "s", "large.pdf", max_bytes=10), UploadProblem.TOO_LARGE),
        (credentials_line(bucket, "s", "photo.pdf"), UploadProblem.WRONG_KIND),
        (credentials_line(bucket, "s", "text.mp3", "POV"), UploadProblem.WRONG_KIND),
        (credentials_line(bucket, "s", "secret.pdf"), UploadProblem.OUTSIDE),
        (credentials_line(bucket, "s", "twin.pdf"), UploadProblem.AMBIGUOUS),
        (credentials_line(bucket, "t", "twin.pdf"), UploadProblem.AMBIGUOUS),
        (credentials_line(bucket, "s", "x.pdf") | {"fileName": "../outside.pdf"}, UploadProblem.OUTSIDE),
        (credentials_line(bucket, "..", "outside.pdf"), UploadProblem.NOT_FOUND),
        (credentials_line(bucket, "s", "notes") | {"evidenceType": None}, UploadProblem.WRONG_KIND),
        (credentials_line(bucket, *long), UploadProblem.NOT_FOUND),
    ]
    more, expected = zip(*bad, strict=True)
    lines = [credentials_line(bucket, "s", "good.pdf"), *more]
    for name in ("good.pdf", "large.pdf", "twin.pdf"):
        put(folder, name)
    put(folder, "empty.pdf", b"")
    put(folder, "photo.pdf", b"\xff\xd8\xff\xe0 a photograph")
    put(folder, "text.mp3", b"hello")
    put(folder, "notes", b"SECRET=1")
    put(tmp_path, "outside.pdf")
    (folder / "secret.pdf").symlink_to(tmp_path / "outside.pdf")
    uploaded = upload_files(write_credentials(tmp_path / "c.jsonl", lines), folder)
    assert uploaded.sent == 1
    assert [(failure.line, failure.problem) for failure in uploaded.failures] == [*enumerate(expected, 2)]
    assert keys(bucket) == {lines[0]["fields"]["key"]}


def test_expired_and_changed_credentials_fail_alone(bucket, folder, tmp_path):
    expired = credentials_line(bucket, "s", "a.pdf", lives=-timedelta(seconds=1))
    changed = credentials_line(bucket, "s", "b.pdf")
    changed["fields"]["key"] += ".other"
    for name in ("a.pdf", "b.pdf", "c.pdf"):
        put(folder, name)
    lines = [expired, changed, credentials_line(bucket, "s", "c.pdf")]
    uploaded = upload_files(write_credentials(tmp_path / "c.jsonl", lines), folder)
    assert uploaded.sent == 1
    assert [failure.problem for failure in uploaded.failures] == [UploadProblem.EXPIRED, UploadProblem.REFUSED]
    assert expired["fields"]["X-Amz-Signature"] not in str(uploaded)


@pytest.fixture
def upload_to(bucket, folder, tmp_path):
    """Upload twenty files to a server that answers like this; what became of them, and the server."""

    def upload_to(*answers):
        with scripted(*answers) as server:
            lines = [credentials_line(bucket, "s", f"{number}.pdf") | {"url": server.url} for number in range(20)]
            for line in lines:
                put(folder, line["fileName"])
            return upload_files(write_credentials(tmp_path / "c.jsonl", lines), folder), server

    return upload_to


def test_a_bucket_that_fails_now_and_then_is_not_given_up(upload_to, monkeypatch):
    monkeypatch.setattr(retrying, "ATTEMPTS", 1)
    monkeypatch.setattr(upload, "CONCURRENCY", 3)
    uploaded, server = upload_to(*(Answer(204 if number % 6 else 503) for number in range(20)))
    assert (uploaded.sent, len(server.requests)) == (16, 20)


def test_a_bucket_that_stays_away_is_given_up_soon(upload_to, monkeypatch):
    monkeypatch.setattr(retrying, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(upload, "CONCURRENCY", 2)
    uploaded, server = upload_to(Answer(503))
    assert {failure.problem for failure in uploaded.failures} == {UploadProblem.UNAVAILABLE}
    assert len(uploaded.failures) == 20
    assert len(server.requests) <= 4 * retrying.ATTEMPTS


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("not json", "line 2: this is not JSON"),
        ("[]", "line 2: this is not JSON"),
        ("[" * 200_000, "line 2: this is not JSON"),
        ('{"saleId": "\\ud800"}', "line 2: this is not JSON"),
        ("{}", "line 2: id: Required; saleId: Required"),
        (json.dumps(FORM | {"fields": {}}), "fields: The upload fields hold no Policy"),
        (json.dumps(FORM | {"fields": {"Policy": ENDLESS}}), "fields: The Policy among .* cannot be read"),
        *(
            (json.dumps(FORM | {"url": url}), "line 2: url: Must be an http or https address")
            for url in ("http://[", "http://host:99999/", "file:///etc/passwd", "http:///x")
        ),
    ],
    ids=lambda text: text[:40],
)
def test_a_bad_credentials_file_names_the_line_and_sends_nothing(bucket, folder, tmp_path, text, reason):
    credentials = write_credentials(tmp_path / "c.jsonl", [credentials_line(bucket, "s", "a.pdf")])
    put(folder, "a.pdf")
    with credentials.open("a", encoding="utf-8") as file:
        file.write(text + "\n")
    with pytest.raises(UnreadableFile, match=reason):
        upload_files(credentials, folder)
    assert keys(bucket) == set()


def test_a_killed_upload_goes_on_where_it_was(bucket, folder, tmp_path):
    lines = [credentials_line(bucket, "s", f"{number}.pdf") for number in range(150)]
    for number in range(150):
        put(folder, f"{number}.pdf", PDF + str(number).encode())
    done = tmp_path / "c.jsonl.done"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        nowhere = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        stuck = [*lines[:140], *({**line, "url": nowhere} for line in lines[140:])]  # so it cannot end too soon
        credentials = write_credentials(tmp_path / "c.jsonl", stuck)
        words = ["evidence", "upload", str(credentials), "--from", str(folder), "--allow-host", "127.0.0.1"]
        started = start_command(os.environ, *words)
        wait_until(lambda: started.exitcode is not None or (done.exists() and done.stat().st_size >= 37 * 20))
        started.kill()
        started.join()
        assert started.exitcode == -signal.SIGKILL
    noted = len(done.read_bytes()) // 37
    assert noted <= 140
    with done.open("ab") as file:
        file.write(b"\n0199c0de-torn")
    write_credentials(credentials, lines)
    resumed = upload_files(credentials, folder)
    assert (resumed.skipped, resumed.sent, resumed.failures) == (noted, 150 - noted, ())
    assert keys(bucket) == {line["fields"]["key"] for line in lines}
    assert upload_files(credentials, folder).skipped == 150


def test_the_command_tells_what_failed_and_sends_the_rest_once(run, bucket, folder, tmp_path):
    lines = [credentials_line(bucket, "s", "a.pdf"), credentials_line(bucket, "s", "b.pdf")]
    credentials = write_credentials(tmp_path / "c.jsonl", lines)
    put(folder, "a.pdf")
    arguments = ["evidence", "upload", str(credentials), "--from", str(folder)]
    document = run(*arguments, "--json", ends=3, within={}).told
    assert (document["files"], document["sent"], document["failed"]) == (2, 1, 1)
    failed = {"line": 2, "saleId": "s", "fileName": "b.pdf", "problem": "NOT_FOUND"}
    assert document["failures"][0] | failed == document["failures"][0]
    put(folder, "b.pdf")
    assert "1 sent, 1 sent before, 0 failed" in run(*arguments, within={}).out
    assert keys(bucket) == {line["fields"]["key"] for line in lines}
    run("evidence", "upload", tmp_path / "none", "--from", folder, ends=1, within={})
    run("evidence", "upload", credentials, "--from", tmp_path / "none", ends=1, within={})


def test_files_go_to_the_host_of_the_bucket_or_to_one_that_somebody_allows(
    run, bucket, folder, tmp_path, bucket_environment
):
    line = credentials_line(bucket, "s", "a.pdf")
    strange = write_credentials(
        tmp_path / "c.jsonl", [line | {"url": line["url"].replace("127.0.0.1", "localhost")}]
    )
    put(folder, "a.pdf")
    command = ["evidence", "upload", str(strange), "--from", str(folder)]
    said = run(*command, ends=1, within=bucket_environment).err
    assert "sends files to localhost, not to the bucket that is set; nothing was sent" in said
    assert keys(bucket) == set()
    run(*command, "--allow-host", "localhost", within=bucket_environment)
    assert keys(bucket) == {line["fields"]["key"]}


OWN = {"EVIDENCE_BUCKET": "sales", "AWS_ENDPOINT_URL": "https://s3.example:8443"}


@pytest.mark.parametrize(
    ("settings", "url", "allowed"),
    [
        ({}, "http://127.0.0.1:9000/evidence", True),
        ({}, "https://files.example/evidence", False),
        ({"EVIDENCE_BUCKET": "sales"}, "https://sales.s3.amazonaws.com/", True),
        (
            {"EVIDENCE_BUCKET": "sales", "AWS_REGION": "sa-east-1"},
            "https://sales.s3.sa-east-1.amazonaws.com/",
            True,
        ),
        ({"EVIDENCE_BUCKET": "sales"}, "https://other.s3.amazonaws.com/", False),
        ({"EVIDENCE_BUCKET": "sales"}, "http://127.0.0.1/sales", False),
        (OWN, "https://s3.example:8443/sales", True),
        (OWN, "https://s3.example/sales", False),
        (OWN, "https://s3.example:8443@files.example/sales", False),
    ],
)
def test_files_go_to_the_bucket_that_is_set_and_to_no_other_of_the_same_server(settings, url, allowed):
    line = CredentialsLine.model_validate(FORM | {"url": url}, by_alias=True)
    assert destinations(Settings.from_environment(settings))(line) is allowed


def test_expired_credentials_do_not_stay_in_the_home(bucket, tmp_path):
    line = credentials_line(bucket, "s", "a.pdf")
    ends = FormPolicy.of(line["fields"]).expires_at
    write_credentials(tmp_path / "manifest.jsonl", [line])
    (tmp_path / "notes.jsonl").write_text("no credentials")
    remove_expired(tmp_path, ends)
    assert (tmp_path / "manifest.jsonl").exists()
    remove_expired(tmp_path, ends + timedelta(seconds=1))
    assert [path.name for path in tmp_path.iterdir()] == ["notes.jsonl"]
