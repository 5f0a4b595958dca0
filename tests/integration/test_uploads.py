"""Credentials, in bulk or one by one, and uploads with them: all or none are stored, each file is sent once."""

import json
import logging
import signal
import socket
import stat
import unicodedata
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from tests.support.process_pool import start_command
from tests.support.request_bodies import UPLOAD
from tests.support.scripted_server import Answer, scripted
from tests.support.uploaded_sales import (
    MP3,
    PDF,
    add_record,
    add_sale,
    credentials_line,
    execute,
    partner_of,
    rows,
    write_credentials,
)
from tests.support.waiting import PATIENCE, wait_until
from toolkit.bucket.client import Bucket, list_objects
from toolkit.errors import BucketError, BucketUnavailable, InvalidInput
from toolkit.evidence import upload
from toolkit.evidence.credentials import ManifestResult, UploadLimits, request_manifest, request_upload
from toolkit.evidence.upload import CredentialsLine, UploadProblem, destinations, remove_expired, upload_files
from toolkit.partner import FormPolicy
from toolkit.partner import posting as retrying
from toolkit.progress import Progress
from toolkit.settings import AwsSettings, Settings

LIMITS = UploadLimits(ttl_seconds=900, max_bytes=1_000_000)
SECRETS = ("X-Amz-Security-Token", "X-Amz-Signature", "Policy")
NOWHERE = Bucket(
    "evidence", AwsSettings("AKIA", "s", s3_endpoint="http://127.0.0.1:1", sts_endpoint="http://127.0.0.1:1")
)
HEADINGS = "saleId,fileName,fileFormat,type,evidenceType"
CONTRACT = "sale-1,contract.pdf,application/pdf,application/pdf,DOC_CONTRATANTE"
RECORDING = "sale-2,gravação.mp3,audio/mpeg,audio/mpeg,POV"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "credentials.jsonl"


@pytest.fixture
def ask(database, bucket, clock, tmp_path, out):
    clock.now, database.account = datetime.now(UTC).replace(microsecond=0), "night job"
    add_sale(database, "sale-1")
    add_sale(database, "sale-2")

    def ask(*lines, bucket=bucket, out=out):
        manifest = tmp_path / "manifest.csv"
        manifest.write_text("\n".join([HEADINGS, *lines]) + "\n", encoding="utf-8")
        return request_manifest(database, bucket, manifest, out, LIMITS, Progress())

    return ask


def credentials(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def send(line, content):
    fields = {**line["fields"], "acl": "private"}
    answer = httpx.post(line["url"], data=fields, files={"file": content}, timeout=PATIENCE)
    assert answer.status_code == 204, answer.text


def record_ids(database):
    return [str(row[0]) for row in rows(database, "SELECT id FROM evidences ORDER BY id")]


def test_each_row_becomes_a_record_and_a_line_in_the_manifests_order(ask, database, out, clock):
    out.write_text("what was there before")
    out.chmod(0o644)
    assert ask(RECORDING, CONTRACT) == ManifestResult(rows=2, issued=2)
    lines = credentials(out)
    assert [(line["saleId"], line["fileName"], line["evidenceType"]) for line in lines] == [
        ("sale-2", "gravação.mp3", "POV"),
        ("sale-1", "contract.pdf", "DOC_CONTRATANTE"),
    ]
    stored = rows(database, "SELECT id, object_key, requested_by, expires_at FROM evidences")
    expires_at = clock.now + timedelta(seconds=900)
    assert sorted((str(row[0]), *row[1:]) for row in stored) == sorted(
        (line["id"], line["fields"]["key"], "night job", expires_at) for line in lines
    )
    assert {line["expiresAt"] for line in lines} == {expires_at.isoformat()}
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_a_record_that_is_still_valid_gets_a_new_form_and_no_second_record(ask, database, out, clock):
    clock.now -= timedelta(seconds=600)
    ask(CONTRACT)
    first = credentials(out)
    clock.now += timedelta(seconds=600)
    assert ask(CONTRACT, RECORDING) == ManifestResult(rows=2, issued=1, reissued=1)
    again, new = credentials(out)
    assert (again["id"], again["expiresAt"]) == (first[0]["id"], first[0]["expiresAt"])
    assert record_ids(database) == [again["id"], new["id"]]
    send(again, PDF)


@pytest.mark.parametrize("synced", [False, True], ids=["not yet seen", "seen by a sync"])
@pytest.mark.parametrize("minutes", [0, 60], ids=["while valid", "after expiry"])
def test_a_file_is_left_out_and_named_for_as_long_as_it_is_in_the_bucket(
    ask, sync, out, clock, delete, synced, minutes
):
    ask(CONTRACT, RECORDING)
    uploaded, missing = credentials(out)
    send(uploaded, PDF)
    if synced:
        sync()
    clock.now += timedelta(minutes=minutes)
    result = ask(CONTRACT, RECORDING)
    assert [(line, str(each)) for line, each in result.skipped] == [(2, uploaded["id"])]
    (line,) = credentials(out)
    assert line["saleId"] == "sale-2"
    assert (line["id"] == missing["id"]) is (minutes == 0)
    delete(uploaded["fields"]["key"])
    assert ask(CONTRACT).skipped == ()


def test_an_expired_an_unusable_and_a_withdrawn_record_make_room_for_a_new_one(ask, database, sync, out, clock):
    clock.now -= timedelta(minutes=12)  # the form is still valid, and the end of its time is nearly now
    gone = clock.now - timedelta(hours=2)
    add_record(database, "sale-2", file_name="gravação.mp3", requested_at=gone)
    ask(CONTRACT)
    send(credentials(out)[0], b"not a PDF")
    sync()
    clock.now += timedelta(minutes=16)
    third = "sale-1,id.pdf,application/pdf,application/pdf,KYC"
    assert ask(CONTRACT, RECORDING, third) == ManifestResult(rows=3, issued=3)
    withdrawn = credentials(out)[2]["id"]
    execute(database, f"INSERT INTO audit.withdrawals VALUES ('{withdrawn}', '', 'wrong', 'ana', 'rui', now())")
    assert ask(CONTRACT, RECORDING, third) == ManifestResult(rows=3, issued=1, reissued=2)
    assert credentials(out)[2]["id"] != withdrawn


def test_a_record_without_a_key_makes_room_for_a_new_one(ask, database):
    ask(CONTRACT)
    without = "ALTER TABLE evidences ALTER object_key DROP NOT NULL", "UPDATE evidences SET object_key = NULL"
    execute(database, *without)
    assert ask(CONTRACT).issued == 1


def test_what_cannot_be_written_or_signed_stores_nothing(ask, database, tmp_path, out):
    for impossible in (tmp_path, tmp_path / "no" / "folder.jsonl", Path("/dev/null")):
        with pytest.raises(InvalidInput):
            ask(CONTRACT, out=impossible)
    with pytest.raises(BucketUnavailable):
        ask(CONTRACT, bucket=NOWHERE)
    assert (record_ids(database), out.exists()) == ([], False)


def test_what_was_stored_before_a_kill_is_reissued(ask, database, out, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            ask(CONTRACT)
    stored = record_ids(database)
    assert (len(stored), out.exists()) == (1, False)
    assert ask(CONTRACT).reissued == 1
    assert [line["id"] for line in credentials(out)] == record_ids(database) == stored


@pytest.fixture
def ask_one(database):
    access = partner_of(database, add_sale(database, "VND-1"))
    return lambda bucket: request_upload(database, bucket, "VND-1", UPLOAD, access, LIMITS)


def test_nothing_is_stored_where_no_form_can_be_signed(ask_one, database):
    with pytest.raises(BucketUnavailable):
        ask_one(NOWHERE)
    with pytest.raises(BucketError, match="has ended; sign in again"):
        ask_one(Bucket("evidence", AwsSettings("AKIA", "s", "token", session_ends=datetime.now(UTC))))
    assert rows(database, "SELECT FROM evidences") == []


def test_credentials_are_in_no_repr_and_no_log(ask_one, bucket, caplog):
    with caplog.at_level(logging.DEBUG, "toolkit"), caplog.at_level(logging.DEBUG, "sqlalchemy"):
        issued = ask_one(bucket)
    shown = repr(issued) + caplog.text
    assert not [each for each in SECRETS if issued.fields[each] in shown]


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "files"
    path.mkdir()
    return path


def write(folder, name, content=PDF):
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
    write(folder, "sale-1/contract.pdf", PDF + b"1")
    write(folder, "sale-2/contract.pdf", PDF + b"2")
    write(folder, unicodedata.normalize("NFD", "voice ção.mp3"), MP3)  # as a Mac names it
    uploaded = upload_files(write_credentials(tmp_path / "c.jsonl", lines), folder)
    assert (uploaded.files, uploaded.sent, uploaded.skipped, uploaded.failures) == (3, 3, 0, ())
    sent = [bucket.read(line["fields"]["key"], 10_000) for line in lines]
    assert sent == [PDF + b"1", PDF + b"2", MP3]


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
        (credentials_line(bucket, "s", "late.pdf", lives=-timedelta(seconds=1)), UploadProblem.EXPIRED),
        (changed := credentials_line(bucket, "s", "changed.pdf"), UploadProblem.REFUSED),
    ]
    changed["fields"]["key"] += ".other"
    more, expected = zip(*bad, strict=True)
    lines = [credentials_line(bucket, "s", "good.pdf"), *more]
    for name in ("good.pdf", "large.pdf", "twin.pdf", "late.pdf", "changed.pdf"):
        write(folder, name)
    write(folder, "empty.pdf", b"")
    write(folder, "photo.pdf", b"\xff\xd8\xff\xe0 a photograph")
    write(folder, "text.mp3", b"hello")
    write(folder, "notes", b"SECRET=1")
    write(tmp_path, "outside.pdf")
    (folder / "secret.pdf").symlink_to(tmp_path / "outside.pdf")
    uploaded = upload_files(write_credentials(tmp_path / "c.jsonl", lines), folder)
    assert uploaded.sent == 1
    assert [(failure.line, failure.problem) for failure in uploaded.failures] == [*enumerate(expected, 2)]
    assert keys(bucket) == {lines[0]["fields"]["key"]}
    assert not [line for line in lines if line["fields"]["X-Amz-Signature"] in str(uploaded)]


@pytest.fixture
def upload_to(bucket, folder, tmp_path):
    """Upload twenty files to a server that answers like this; what became of them, and the server."""

    def upload_to(*answers):
        with scripted(*answers) as server:
            lines = [credentials_line(bucket, "s", f"{number}.pdf") | {"url": server.url} for number in range(20)]
            for line in lines:
                write(folder, line["fileName"])
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


def test_a_killed_upload_goes_on_where_it_was(bucket, folder, tmp_path):
    lines = [credentials_line(bucket, "s", f"{number}.pdf") for number in range(150)]
    for number in range(150):
        write(folder, f"{number}.pdf", PDF + str(number).encode())
    done = tmp_path / "c.jsonl.done"
    (tmp_path / "link").symlink_to("c.jsonl")  # as /dev/stdin is one
    assert upload.journal_of(tmp_path / "link") == done
    with socket.create_server(("127.0.0.1", 0)) as silent:
        nowhere = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        stuck = [*lines[:140], *({**line, "url": nowhere} for line in lines[140:])]  # so it cannot end too soon
        credentials = write_credentials(tmp_path / "c.jsonl", stuck)
        words = ["evidence", "upload", str(credentials), "--from", str(folder)]
        started = start_command({}, *words)
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


def test_a_credentials_file_is_used_by_one_upload_at_a_time(folder, tmp_path):
    credentials = write_credentials(tmp_path / "c.jsonl", [])
    with upload.journal(credentials), pytest.raises(InvalidInput, match="is under way"):
        upload_files(credentials, folder)


AMAZON = {"EVIDENCE_BUCKET": "sales"}
OWN = AMAZON | {"AWS_ENDPOINT_URL": "https://s3.example:8443"}


@pytest.mark.parametrize(
    ("settings", "url", "allowed"),
    [
        ({}, "http://127.0.0.1:9000/evidence", True),
        ({}, "https://files.example/evidence", False),
        (AMAZON, "https://sales.s3.amazonaws.com/", True),
        (AMAZON | {"AWS_REGION": "sa-east-1"}, "https://sales.s3.sa-east-1.amazonaws.com/", True),
        (AMAZON, "https://other.s3.amazonaws.com/", False),
        (OWN, "https://s3.example:8443/sales", True),
        (OWN, "https://s3.example/sales", False),
        (OWN, "https://s3.example:8443@files.example/sales", False),
    ],
)
def test_files_go_to_the_bucket_that_is_set_and_to_no_other_of_the_same_server(settings, url, allowed):
    assert destinations(Settings.from_environment(settings))(CredentialsLine.model_construct(url=url)) is allowed


def test_expired_credentials_do_not_stay_in_the_home(bucket, tmp_path):
    line = credentials_line(bucket, "s", "a.pdf")
    ends = FormPolicy.of(line["fields"]).expires_at
    write_credentials(tmp_path / "manifest.jsonl", [line])
    (tmp_path / "notes.jsonl").write_text("no credentials")
    remove_expired(tmp_path, ends)
    assert (tmp_path / "manifest.jsonl").exists()
    remove_expired(tmp_path, ends + timedelta(seconds=1))
    assert [path.name for path in tmp_path.iterdir()] == ["notes.jsonl"]
