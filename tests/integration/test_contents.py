"""Contents are verified once per version, before an audit judges, which says how far the files were looked at."""

import hashlib
import json
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest

from tests.support.audit_results import csv_rows
from tests.support.audits import made_audit
from tests.support.evidence_files import JPEG, pdf, silence, tone
from tests.support.report_figures import wrong_figures
from tests.support.uploaded_sales import Story, add_sale, rows
from toolkit.audit.folder import open_audit
from toolkit.bucket.client import Bucket
from toolkit.contract.contents import LOOK, ContentProblem, IntegrityProblem
from toolkit.contract.evidence import FileKind
from toolkit.errors import BucketUnavailable
from toolkit.evidence import contents, inspection
from toolkit.evidence.contents import Failure, Verified, in_batches, verify_contents, waiting
from toolkit.evidence.inspection import Inspector
from toolkit.evidence.kinds import readers_of
from toolkit.reports.notices import notices
from toolkit.reports.reading import read_audited
from toolkit.reports.report import Report

FOLDER = "evidences/2026/03/02/0199c0de-0000-7000-8000-00000000000"
FOUND = """
    SELECT right(key, 1), kind, problem, media_type, pages, round(seconds::numeric, 1)::float8, sha256
    FROM audit.object_observations AS seen
    JOIN audit.content_checks ON observation_id = seen.id
    WHERE sha256 IS NOT NULL
    ORDER BY content_checks.id
"""


@pytest.fixture
def verify(database, bucket, sync):
    def sync_and_verify():
        sync()
        return verify_contents(database, bucket)

    return sync_and_verify


def test_each_version_is_verified_once(verify, put, database):
    contract, voice, quiet, broken = pdf(pages=2), tone(2.0), silence(3.0), pdf()[:-30]
    for name, body in enumerate((contract, voice, quiet, broken, JPEG, b"")):
        put(f"{FOLDER}{name}", body)
    assert verify() == Verified(5, {ContentProblem.SILENT: 1, ContentProblem.DAMAGED: 1}, left=0)
    assert sorted(rows(database, FOUND)) == [
        ("0", "pdf", None, "application/pdf", 2, None, hashlib.sha256(contract).hexdigest()),
        ("1", "audio", None, "audio/mpeg", None, 2.0, hashlib.sha256(voice).hexdigest()),
        ("2", "audio", "SILENT", "audio/mpeg", None, 3.0, hashlib.sha256(quiet).hexdigest()),
        ("3", "pdf", "DAMAGED", "application/pdf", None, None, hashlib.sha256(broken).hexdigest()),
        ("4", "other", None, "image/jpeg", None, None, hashlib.sha256(JPEG).hexdigest()),
    ]
    assert verify() == Verified(0, {}, left=0)
    put(f"{FOLDER}3", contract)
    assert verify() == Verified(1, {}, left=0)
    assert len(rows(database, FOUND)) == 6


def test_an_answer_that_was_cut_is_no_damaged_file(verify, put, database, monkeypatch):
    put(f"{FOLDER}0")
    whole = Bucket.download

    @contextmanager
    def cut(*args, **options):
        with whole(*args, **options) as (chunks, stored_type):
            yield [next(chunks)[:9]], stored_type

    with monkeypatch.context() as patch:
        patch.setattr(Bucket, "read", lambda *_: b"")
        patch.setattr(Bucket, "download", cut)
        verify()
    assert rows(database, "SELECT kind, problem FROM audit.content_checks") == []
    assert verify() == Verified(1, {}, left=0)


def test_what_was_verified_without_a_reader_that_is_there_now_is_verified_again(
    put, verify, database, monkeypatch
):
    for name, body in enumerate((pdf(), tone(2.0), JPEG)):
        put(f"{FOLDER}{name}", body)
    inspect = Inspector.inspect

    def inspect_by_one(*args):
        found = inspect(*args)
        return replace(found, readers=found.readers[:1])

    with monkeypatch.context() as patch:
        patch.setattr(Inspector, "inspect", inspect_by_one)
        assert verify().verified == 3
    assert [verify().verified, verify().verified] == [2, 0]
    looked = "SELECT readers FROM audit.content_checks WHERE kind = 'audio' AND sha256 IS NOT NULL ORDER BY id"
    before, after = (each[0] for each in rows(database, looked))
    assert set(before) < set(after) == set(readers_of(FileKind.AUDIO))


def test_a_file_at_which_the_toolkit_failed_is_left_and_told(put, verify, monkeypatch):
    put(f"{FOLDER}1")
    with monkeypatch.context() as patch:
        patch.setattr(inspection, "_MODULE", "tests.support.broken_inspection")
        assert verify() == Verified(0, {}, left=1, unreadable=1, failures={Failure.NOT_INSPECTED: 1})
    assert verify() == Verified(1, {}, left=0)


UNUSABLE = {"recording as document": {"DOC_CONTRATANTE": tone()}, "silent recording": {"POV": silence(3.0)}}
"""Files of sales; the first bytes tell what the one is, and only its end that the other is silent."""
NOTHING = {"verified": 0, "firstBytes": 0, "never": 0, "unreadable": 0}


@pytest.fixture
def uploaded(database, add_file):
    """A sound sale, and those with a file that is unusable."""
    for sale_id, files in ({"sound": {}} | UNUSABLE).items():
        add_sale(database, sale_id)
        for evidence_type, body in ({"POV": tone(), "DOC_CONTRATANTE": pdf()} | files).items():
            add_file(sale_id, evidence_type, body)


def reported(run, out, *options):
    """What is missing and why, of each sale that the report names; its JSON; what the command said."""
    said = run("--quiet", "report", "--out", out, *options).err
    rows = {row["saleId"]: f"{row['missing']} {row['reasons']}" for row in csv_rows(out)}
    return rows, json.loads((out / "missing-evidence.json").read_text(encoding="utf-8")), said


def test_files_that_are_unusable_change_the_verdict_of_the_report_itself(run, uploaded, tmp_path):
    rows, document, said = reported(run, tmp_path, "--no-verify")
    assert rows == {"recording as document": "DOC_CONTRATANTE UNUSABLE"}
    assert "were not verified before this report" in said
    assert (document["compliant"], document["compliantVerified"], len(document["unverified"])) == (2, 0, 2)
    assert document["coverage"] == NOTHING | {"firstBytes": 5}
    assert wrong_figures(tmp_path) == []

    rows, document, said = reported(run, tmp_path)
    assert rows == {sale_id: f"{evidence_type} UNUSABLE" for sale_id, [evidence_type] in UNUSABLE.items()}
    assert (document["compliant"], document["compliantVerified"]) == (1, 1)
    assert document["coverage"] == NOTHING | {"verified": 4}
    assert "verified before" not in said


def test_what_the_time_leaves_is_counted_and_verified_by_the_next_audit(run, uploaded):
    def audit(**limits):
        return run("--quiet", "audit", "--json", ends=None, **limits).told

    nothing = audit(TOOLKIT_VERIFY_SECONDS="0")
    assert (nothing["coverage"]["verified"], nothing["compliantVerified"]) == (0, 0)
    assert audit()["coverage"] == NOTHING | {"verified": 4}


def test_the_files_that_decide_a_verdict_come_first_and_those_that_failed_last(
    database, bucket, put, add_file, sync
):
    add_sale(database, "S-1")
    _, unreadable = add_file("S-1", "KYC")
    sync()
    put(unreadable, b"%PDF-other")
    failed = verify_contents(database, bucket)
    assert (failed.verified, failed.unreadable, failed.left) == (0, 1, 1)
    stray = "evidences/2026/03/02/0199c0de-0000-7000-8000-000000000001/stray.pdf"
    put(stray)
    _, wrong = add_file("S-1", "POV", pdf())
    _, decisive = add_file("S-1", "DOC_CONTRATANTE")
    sync()
    keys = [item.key for batch in in_batches(database, waiting(database)) for item in batch]
    assert set(keys[:2]) == {unreadable, decisive}  # written again, it is a new version
    assert set(keys[2:]) == {stray, wrong}


def test_sales_whose_findings_are_all_waived_still_lack_their_evidence(run, database, tmp_path):
    add_sale(database)
    end = (datetime.now(UTC) + timedelta(days=30)).date()
    people = ["--owner", "ana", "--approved-by", "bruno", "--reason", "abroad", "--end", end]
    run("waiver", "add", "--sale", "sale-1", *people)
    _, document, said = reported(run, tmp_path, "--format", "html,xlsx,csv,json,pdf")
    assert "1 of 1 sale lacks evidence" in said
    assert document["findingCounts"]["open"] == document["findingCounts"]["overdue"] == 0
    assert document["findingCounts"]["waived"] == 3
    assert wrong_figures(tmp_path) == []


def test_a_file_that_goes_between_listing_and_reading_is_never_taken_for_verified(
    run, database, add_file, tmp_path, delete, monkeypatch
):
    add_sale(database)
    (_, key), _ = (add_file("sale-1", each) for each in ("POV", "DOC_CONTRATANTE"))
    verify = contents.verify_contents

    def late(*args, **options):
        delete(key)
        return verify(*args, **options)

    monkeypatch.setattr(contents, "verify_contents", late)
    _, document, said = reported(run, tmp_path)
    assert document["coverage"]["verified"] == 1
    assert "rests on files that are not fully verified" in said
    assert document["compliantVerified"] == 0
    _, document, said = reported(run, tmp_path)
    assert document["rows"][0]["missing"] == [{"evidenceType": "POV", "reason": "VANISHED"}]


@pytest.mark.usefixtures("uploaded")
@pytest.mark.parametrize("reading", ["read", "download"])
def test_a_bucket_that_goes_in_the_middle_of_an_audit_is_no_verdict(reading, run, tmp_path, monkeypatch):
    monkeypatch.setattr(Bucket, reading, Mock(side_effect=BucketUnavailable("The bucket does not answer.")))
    said = run("--quiet", "report", "--out", tmp_path / "none", ends=1)
    assert "The bucket does not answer." in said.err
    assert not (tmp_path / "none").exists()


HEARD = {"kind": "audio", "media_type": "audio/mpeg", "sha256": "a", "depth": "DECODED", "look": LOOK}
DRAWN = {"kind": "pdf", "media_type": "application/pdf", "sha256": "b", "depth": "DRAWN", "look": LOOK}
READERS = readers_of(FileKind.AUDIO)
BOTH = {"readers": [*READERS], "speech_seconds": 3.5}


@pytest.fixture
def audit(database, add_file, sync, clock, tmp_path):
    """Note looks at a recording and at a document, one after the other, and make an audit."""
    clock.now = datetime.now(UTC).replace(microsecond=0)

    def made(*looks):
        add_sale(database)
        for each in ("POV", "DOC_CONTRATANTE"):
            add_file("sale-1", each)
        sync()
        numbers = dict(rows(database, "SELECT kind, observation_id FROM audit.content_checks"))
        for look in looks:
            Story(database).check(numbers[look["kind"]], at=clock(), **look)
        return read_audited(made_audit(database, tmp_path))

    return made


def test_it_names_readers_and_depth_and_keeps_them_of_each_file(audit, tmp_path):
    looks = audit(HEARD | BOTH, DRAWN | {"readers": [*readers_of(FileKind.PDF)]}).facts.files
    assert looks.readers == dict.fromkeys((*READERS, *readers_of(FileKind.PDF)), 1)
    assert looks.depth == {"DECODED": 1, "DRAWN": 1}
    assert (looks.older_look, looks.without_speech) == (0, 0)
    [folder] = (tmp_path / "audits").glob("2*")
    kept = open_audit(folder)
    assert kept.facts.files == looks
    told = "depth, readers, speech_seconds, look"
    for table in ("files", "objects"):
        [row] = kept.sql(f"SELECT {told} FROM {table} WHERE sha256 = 'a'").to_pylist()
        assert tuple(row.values()) == ("DECODED", "|".join(READERS), 3.5, LOOK)


def test_it_says_that_files_were_verified_by_an_older_way_of_looking(audit):
    result = audit(HEARD | BOTH | {"look": None}, DRAWN | {"readers": ["pypdf 1.0"]})
    assert result.facts.files.older_look == 2
    [told] = [each for each in notices(Report(result)) if "toolkit evidence verify" in each]
    assert told.startswith("2 ")


def test_it_says_that_nothing_looked_for_speech(audit):
    result = audit(HEARD | {"readers": ["av 18.1.0"]}, DRAWN)
    assert result.facts.files.without_speech == 1
    assert [each for each in notices(Report(result)) if "`speech`" in each]


def test_a_better_reader_corrects_what_an_older_one_called_damaged(audit):
    result = audit(HEARD | {"problem": "DAMAGED"}, HEARD | BOTH)
    assert result.faults.empty
    assert result.facts.files.depth == {"DECODED": 1}


def test_a_fault_stands_since_the_first_look_that_found_it(audit):
    result = audit(HEARD, HEARD | {"problem": "SILENT"}, HEARD | {"problem": "DAMAGED"})
    assert list(result.faults["code"]) == ["SILENT"]


def test_a_recording_without_speech_is_a_finding(audit):
    result = audit(HEARD | BOTH | {"active_parts": ["NO_SPEECH"]})
    assert IntegrityProblem.NO_SPEECH in {each["problem"] for each in result.file_findings}
