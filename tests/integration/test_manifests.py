"""Credentials, in bulk or one by one: all or none are stored, a second call makes no second record."""

import json
import logging
import os
import pwd
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from tests.support.request_bodies import UPLOAD
from tests.support.uploaded_sales import MP3, PDF, add_record, add_sale, execute, rows
from tests.support.waiting import PATIENCE
from toolkit.bucket.client import Bucket, list_objects
from toolkit.errors import BucketError, BucketUnavailable, InvalidInput
from toolkit.evidence.credentials import ManifestResult, Order, UploadLimits, request_manifest, request_upload
from toolkit.settings import AwsSettings

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
    clock.now = datetime.now(UTC).replace(microsecond=0)
    add_sale(database, "sale-1")
    add_sale(database, "sale-2")

    def ask(*lines, headings=HEADINGS, bucket=bucket, out=out):
        manifest = tmp_path / f"for-{out.stem}.csv"
        manifest.write_text("\n".join([headings, *lines]) + "\n", encoding="utf-8")
        return request_manifest(database, bucket, manifest, out, Order("night job", LIMITS, clock))

    return ask


def credentials(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def upload(line, content):
    fields = {**line["fields"], "acl": "private"}
    answer = httpx.post(line["url"], data=fields, files={"file": content}, timeout=PATIENCE)
    assert answer.status_code == 204, answer.text


def record_ids(database):
    return [str(row[0]) for row in rows(database, "SELECT id FROM evidences ORDER BY id")]


def test_each_row_becomes_a_record_and_a_line_in_the_manifests_order(ask, database, out, clock):
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


def test_the_file_is_its_owners_only_and_its_forms_are_accepted(ask, out, bucket):
    out.write_text("what was there before")
    out.chmod(0o644)
    ask(CONTRACT, RECORDING)
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert [path.name for path in out.parent.iterdir() if path.name.startswith(".")] == []
    for line, content in zip(credentials(out), (PDF, MP3), strict=True):
        upload(line, content)
    assert {item.key for page in list_objects(bucket, [""]) for item in page} == {
        line["fields"]["key"] for line in credentials(out)
    }


def test_one_wrong_row_and_nothing_is_issued(ask, database, out):
    out.write_text("what was there before")
    result = ask(
        CONTRACT,
        "",
        "sale-1,,application/pdf,audio/mpeg,DOC_CONTRATANTE",
        "nobody,contract.pdf,application/pdf,application/pdf,KYC",
        RECORDING,
        CONTRACT,
        "sale-1,${filename}.pdf,application/pdf,application/pdf,",
    )
    assert (result.rows, result.issued) == (6, 0)
    assert [(row.line, [(item.field, item.message) for item in row.invalid]) for row in result.rejected] == [
        (4, [("fileName", "Required"), ("type", "Must be application/pdf for DOC_CONTRATANTE")]),
        (5, [("saleId", "No sale has this id")]),
        (7, [("fileName", "The sale, the type and the file name stand in line 2 already")]),
        (
            8,
            [
                ("evidenceType", "Required"),
                ("fileName", "Must be a plain file name, without path, ${ or text-direction characters"),
            ],
        ),
    ]
    assert record_ids(database) == []
    assert out.read_text() == "what was there before"
    assert [path.name for path in out.parent.iterdir() if path.name.startswith(".")] == []


def test_a_record_that_is_still_valid_gets_a_new_form_and_no_second_record(ask, database, out, clock):
    ask(CONTRACT)
    first = credentials(out)
    clock.now += timedelta(seconds=600)
    assert ask(CONTRACT, RECORDING) == ManifestResult(rows=2, issued=1, reissued=1)
    again, new = credentials(out)
    assert (again["id"], again["expiresAt"]) == (first[0]["id"], first[0]["expiresAt"])
    assert record_ids(database) == [again["id"], new["id"]]
    upload(again, PDF)


@pytest.mark.parametrize("synced", [False, True], ids=["not yet seen", "seen by a sync"])
@pytest.mark.parametrize("minutes", [0, 60], ids=["while valid", "after expiry"])
def test_a_file_that_is_in_the_bucket_is_left_out_and_named(ask, sync, out, clock, synced, minutes):
    ask(CONTRACT, RECORDING)
    uploaded, missing = credentials(out)
    upload(uploaded, PDF)
    if synced:
        sync()
    clock.now += timedelta(minutes=minutes)
    result = ask(CONTRACT, RECORDING)
    assert [(line, str(each)) for line, each in result.skipped] == [(2, uploaded["id"])]
    (line,) = credentials(out)
    assert line["saleId"] == "sale-2"
    assert (line["id"] == missing["id"]) is (minutes == 0)


def test_an_expired_an_unusable_and_a_withdrawn_record_make_room_for_a_new_one(ask, database, sync, out, clock):
    gone = clock.now - timedelta(hours=2)
    add_record(database, "sale-2", file_name="gravação.mp3", requested_at=gone)
    ask(CONTRACT)
    upload(credentials(out)[0], b"not a PDF")
    sync()
    clock.now += timedelta(minutes=16)
    third = "sale-1,id.pdf,application/pdf,application/pdf,KYC"
    assert ask(CONTRACT, RECORDING, third) == ManifestResult(rows=3, issued=3)
    withdrawn = credentials(out)[2]["id"]
    execute(database, f"INSERT INTO audit.withdrawals VALUES ('{withdrawn}', 'wrong', 'ana', 'rui', now())")
    assert ask(CONTRACT, RECORDING, third) == ManifestResult(rows=3, issued=1, reissued=2)
    assert credentials(out)[2]["id"] != withdrawn


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
def manifest(database, tmp_path):
    add_sale(database, "sale-1")
    path = tmp_path / "manifest.csv"
    path.write_text(f"{HEADINGS}\n{CONTRACT}\n")
    return path


def test_the_command_says_what_it_did_and_shows_no_credentials(run, manifest, out):
    command = ["credentials", "request", str(manifest), "--out", str(out)]
    shown = run(*command)
    assert "1 row: 1 issued, 0 issued again, 0 already uploaded" in shown.out
    (line,) = credentials(out)
    assert not [each for each in SECRETS if line["fields"][each] in shown.out + shown.err]

    upload(line, PDF)
    summary = run(*command, "--json").told
    assert [summary[name] for name in ("rows", "issued", "reissued", "skipped", "rejected")] == [1, 0, 0, 1, 0]
    assert summary["skippedRows"][0]["id"] == line["id"]


def test_the_command_keeps_who_asked(run, manifest, out, database):
    command = ["credentials", "request", str(manifest), "--out", str(out), "--requested-by"]
    run(*command, "  ", ends=2)
    run(*command, "ana@example.com")
    assert rows(database, "SELECT requested_by FROM evidences") == [("ana@example.com",)]
    signed_in = pwd.getpwuid(os.getuid()).pw_name
    assert rows(database, "SELECT account, partner FROM audit.evidence_requests") == [(signed_in, None)]


@pytest.fixture
def ask_one(database, clock):
    add_sale(database, "VND-1")
    how = {"requested_by": "night job", "limits": LIMITS, "clock": clock}
    return lambda bucket: request_upload(database, bucket, "VND-1", UPLOAD, **how)


def test_nothing_is_stored_where_no_form_can_be_signed(ask_one, database):
    with pytest.raises(BucketUnavailable):
        ask_one(NOWHERE)
    with pytest.raises(BucketError):
        ask_one(Bucket("evidence", AwsSettings("AKIA", "s", "token", session_ends=datetime.now(UTC))))
    assert rows(database, "SELECT FROM evidences") == []


def test_credentials_are_in_no_repr_and_no_log(ask_one, bucket, caplog):
    with caplog.at_level(logging.DEBUG, "toolkit"), caplog.at_level(logging.DEBUG, "sqlalchemy"):
        issued = ask_one(bucket)
    shown = repr(issued) + caplog.text
    assert not [each for each in SECRETS if issued.fields[each] in shown]
