"""Contents are verified once per object version, from a real bucket into a real database."""

import hashlib
from dataclasses import replace

import pytest

from tests.support.evidence_files import JPEG, pdf, silence, tone
from tests.support.uploaded_sales import rows
from toolkit.contract.contents import ContentProblem
from toolkit.contract.evidence import FileKind
from toolkit.evidence import inspection
from toolkit.evidence.contents import Failure, Verified, verify_contents
from toolkit.evidence.inspection import Inspector
from toolkit.evidence.kinds import readers_of

FOLDER = "evidences/2026/03/02/0199c0de-0000-7000-8000-00000000000"
FOUND = """
    SELECT right(key, 1), kind, problem, media_type, pages, round(seconds::numeric, 1)::float8, sha256
    FROM audit.object_observations AS seen
    JOIN audit.content_checks ON observation_id = seen.id
    WHERE sha256 IS NOT NULL
    ORDER BY content_checks.id
"""


@pytest.fixture
def put(bucket, s3):
    return lambda name, body: s3.put_object(Bucket=bucket.name, Key=f"{FOLDER}{name}", Body=body)


@pytest.fixture
def verify(database, bucket, clock, sync):
    def sync_and_verify():
        sync()
        return verify_contents(database, bucket, clock=clock)

    return sync_and_verify


def test_each_version_is_verified_once(verify, put, database):
    contract, voice, quiet, broken = pdf(pages=2), tone(2.0), silence(3.0), pdf()[:-30]
    for name, body in enumerate((contract, voice, quiet, broken, JPEG, b"")):
        put(name, body)
    assert verify() == Verified(5, {ContentProblem.SILENT: 1, ContentProblem.DAMAGED: 1}, left=0)
    assert sorted(rows(database, FOUND)) == [
        ("0", "pdf", None, "application/pdf", 2, None, hashlib.sha256(contract).hexdigest()),
        ("1", "audio", None, "audio/mpeg", None, 2.0, hashlib.sha256(voice).hexdigest()),
        ("2", "audio", "SILENT", "audio/mpeg", None, 3.0, hashlib.sha256(quiet).hexdigest()),
        ("3", "pdf", "DAMAGED", "application/pdf", None, None, hashlib.sha256(broken).hexdigest()),
        ("4", "other", None, "image/jpeg", None, None, hashlib.sha256(JPEG).hexdigest()),
    ]
    assert verify() == Verified(0, {}, left=0)
    put(3, contract)
    assert verify() == Verified(1, {}, left=0)
    assert len(rows(database, FOUND)) == 6


class OneReaderOnly(Inspector):
    """An inspector where the second package that reads such a file is not installed."""

    def inspect(self, file):
        found = super().inspect(file)
        return replace(found, readers=found.readers[:1])


def test_what_was_verified_without_a_reader_that_is_there_now_is_verified_again(
    put, verify, sync, database, bucket, clock
):
    for name, body in enumerate((pdf(), tone(2.0), JPEG)):
        put(name, body)
    sync()
    with OneReaderOnly() as fewer:
        assert verify_contents(database, bucket, clock=clock, inspectors=[fewer]).verified == 3
    assert [verify().verified, verify().verified] == [2, 0]
    looked = "SELECT readers FROM audit.content_checks WHERE kind = 'audio' AND sha256 IS NOT NULL ORDER BY id"
    before, after = (each[0] for each in rows(database, looked))
    assert set(before) < set(after) == set(readers_of(FileKind.AUDIO))


def test_a_file_at_which_the_toolkit_failed_is_left_and_told(put, verify, monkeypatch):
    put(1, pdf())
    with monkeypatch.context() as patch:
        patch.setattr(inspection, "_MODULE", "tests.support.broken_inspection")
        assert verify() == Verified(0, {}, left=1, unreadable=1, failures={Failure.NOT_INSPECTED: 1})
    assert verify() == Verified(1, {}, left=0)


def test_the_commands_verify(run, put):
    put(1, pdf())
    assert run("bucket", "sync", "--verify", "--json").told["verified"] == 1
    put(2, silence())
    run("bucket", "sync")
    assert run("evidence", "verify", "--json", ends=3).told == {
        "verified": 1,
        "unusable": 1,
        "problems": {"EMPTY": 0, "DAMAGED": 0, "ENCRYPTED": 0, "TOO_SHORT": 0, "SILENT": 1},
        "wrongKind": 0,
        "left": 0,
        "failures": {},
    }
    assert "0 files verified" in run("evidence", "verify").out
