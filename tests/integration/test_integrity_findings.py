"""Findings about the origin of evidence files, from a real bucket and database."""

import re
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest

from tests.support.evidence_files import page, pdf, voice
from tests.support.request_bodies import UPLOAD
from tests.support.uploaded_sales import WHEN, add_record, add_sale, execute, rows
from toolkit.audit.duckdb_session import duckdb_session
from toolkit.audit.extract import extract
from toolkit.audit.file_findings import file_findings
from toolkit.contract.contents import IntegrityProblem
from toolkit.contract.findings import file_finding
from toolkit.contract.people import PartnerAccess, UnassignedSales
from toolkit.database.observation_clock import final_moment
from toolkit.evidence.contents import verify_contents
from toolkit.evidence.credentials import UploadLimits, request_upload
from toolkit.evidence.records import withdraw


@pytest.fixture
def look(database, bucket, sync):
    def sync_verify_and_find():
        sync()
        verify_contents(database, bucket)
        return integrity_findings(database)

    return sync_verify_and_find


def integrity_findings(database):
    with TemporaryDirectory() as scratch, database.snapshot() as snapshot, duckdb_session(scratch) as session:
        extract(snapshot, final_moment(database), session, Path(scratch))
        return [SimpleNamespace(**each) for each in file_findings(session)]


def folders(*keys):
    return [f"{key.rpartition('/')[0]}/" for key in keys]


@pytest.fixture
def add(add_file):
    """Puts a file whose credentials are still valid; its record and its key."""
    return lambda *file, **record: add_file(*file, **WHEN | record)


def test_a_record_that_another_partner_requested_is_named_until_it_is_withdrawn(database, bucket, look):
    def request(sale_id, partner):
        access = PartnerAccess("crm-7", partner, UnassignedSales.ANY, 20)
        return request_upload(database, bucket, sale_id, UPLOAD, access, UploadLimits(600, 1000)).id

    for sale_id in ("sale-1", "sale-2", "sale-3"):
        add_sale(database, sale_id)
    stranger = request("sale-1", "Vento")
    by_operator, _ = add_record(database, "sale-1")
    execute(database, f"INSERT INTO audit.evidence_requests VALUES ('{by_operator}', 'test', NULL)")
    request("sale-2", "Luz")
    request("sale-3", "Vento")
    add_record(database, "sale-1")
    assert look() == []

    execute(database, "UPDATE sales SET partner = 'Luz' WHERE id <> 'sale-3'")
    [finding] = look()
    assert (finding.problem, finding.evidence_ids) == (IntegrityProblem.REQUESTED_BY_OTHER, [str(stranger)])
    assert (finding.sale_ids, finding.detail) == (["sale-1"], "requested for Vento")

    withdraw(database, stranger, reason="r", withdrawn_by="a", approved_by="b")
    assert integrity_findings(database) == []


def test_the_same_file_for_two_sales_names_them_until_one_is_withdrawn(database, add, look):
    sales = [add_sale(database, sale_id) for sale_id in ("sale-2", "sale-1")]
    ids, keys = zip(*(add(sale_id, "POV", voice()) for sale_id in sales), strict=True)
    [finding] = look()
    assert finding.problem == IntegrityProblem.CONTENT_REUSED
    assert finding.sale_ids == ["sale-1", "sale-2"]
    assert (finding.evidence_ids, finding.folders) == (sorted(map(str, ids)), folders(*sorted(keys)))
    withdraw(database, ids[0], reason="not his voice", withdrawn_by="Ana", approved_by="Rui")
    assert look() == []


def test_one_object_of_several_records_is_found_before_anybody_verified_it(database, bucket, add, sync):
    # A service that is read by other statements may have no such rule.
    execute(database, "ALTER TABLE evidences DROP CONSTRAINT evidences_object_key_key")
    _, key = add(add_sale(database), "POV", voice())
    add_record(database, "sale-1", "AUT", key=key, **WHEN)
    add("sale-1", "KYC")
    sync()
    [finding] = integrity_findings(database)
    assert (finding.problem, finding.detail) == (IntegrityProblem.CONTENT_REPEATED, "AUT and POV")
    add_record(database, add_sale(database, "sale-2"), "POV", key=key, **WHEN)
    sync()
    [reused, repeated] = integrity_findings(database)
    assert (reused.problem, reused.sale_ids) == (IntegrityProblem.CONTENT_REUSED, ["sale-1", "sale-2"])
    assert (reused.detail, repeated) == ("one object of several records", finding)
    verified = verify_contents(database, bucket)
    assert (verified.verified, verified.left) == (2, 0), "each object is read once, whatever its records"


def test_the_same_file_as_two_types_of_one_sale(database, add, look):
    sale_id = add_sale(database)
    for evidence_type in ("DOC_RESPONSAVEL_FINANCEIRO", "DOC_CONTRATANTE"):
        add(sale_id, evidence_type)
    [finding] = look()
    assert finding.problem == IntegrityProblem.CONTENT_REPEATED
    assert finding.sale_ids == ["sale-1"]
    assert finding.detail == f"DOC_CONTRATANTE and DOC_RESPONSAVEL_FINANCEIRO, SHA-256 {sha256(pdf()).hexdigest()}"
    add(sale_id, "KYC")
    [again] = look()
    assert again.detail.startswith("DOC_CONTRATANTE and DOC_RESPONSAVEL_FINANCEIRO and KYC")
    assert again.finding_ids == finding.finding_ids


def test_a_file_written_long_after_its_credentials_ran_out(database, add, look, clock):
    clock.now = now = datetime.now(UTC)
    add_sale(database)
    add(body=pdf(1), expires_at=now - timedelta(minutes=5))
    _, late = add(body=pdf(2), expires_at=now - timedelta(hours=2))
    [finding] = look()
    assert (finding.problem, finding.folders) == (IntegrityProblem.WRITTEN_LATE, folders(late))
    assert re.fullmatch("written at [^ ]+, credentials ran out at [^ ]+", finding.detail)


def test_a_file_that_a_backup_brought_back_was_not_written_late(database, put, delete, add_file, look, clock):
    add_sale(database)
    _, key = add_file(body=pdf(1))
    assert look() == []
    clock.now += timedelta(days=2)
    delete(key)
    assert look() == []
    put(key, pdf(1))
    assert look() == []
    put(key, pdf(2))
    assert {finding.problem for finding in look()} == {IntegrityProblem.OVERWRITTEN, IntegrityProblem.WRITTEN_LATE}


def test_a_file_replaced_after_it_was_verified(database, put, add, look):
    add_sale(database)
    _, key = add("sale-1", "KYC", pdf(1))
    assert look() == []
    put(key, pdf(1))
    assert look() == []  # another version of the same bytes
    put(key, pdf(2))
    [finding] = look()
    assert (finding.problem, finding.folders) == (IntegrityProblem.OVERWRITTEN, folders(key))
    assert finding.detail == "replaced at 2026-03-02T12:00:00+00:00"
    put(key, pdf(1))
    assert [finding.problem for finding in look()] == [IntegrityProblem.OVERWRITTEN]  # the first one again


def test_what_lay_under_a_key_before_a_record_came_to_it_was_not_replaced(database, put, look):
    add_record(database, add_sale(database), **WHEN)
    for number in (1, 2):
        put("shared.pdf", pdf(number))
        look()
    execute(database, "UPDATE evidences SET object_key = 'shared.pdf'")
    assert look() == []


def test_a_record_whose_key_leads_to_another_file(database, put, delete, add, look):
    def moved(key, other, body):
        put(other, body)
        delete(key)
        execute(database, f"UPDATE evidences SET object_key = '{other}'")
        return [(finding.problem, finding.folders) for finding in look()]

    add_sale(database)
    _, key = add("sale-1", "KYC", pdf(1))
    assert look() == []
    assert moved(key, "moved.pdf", pdf(1)) == []
    assert moved("moved.pdf", "other.pdf", pdf(2)) == [(IntegrityProblem.OVERWRITTEN, folders("other.pdf"))]
    assert moved("other.pdf", "first.pdf", pdf(1)) == [(IntegrityProblem.OVERWRITTEN, folders("first.pdf"))]
    execute(database, "UPDATE evidences SET evidence_type = 'DOC_CONTRATANTE'")
    assert [finding.problem for finding in look()] == [IntegrityProblem.OVERWRITTEN]


def test_one_recording_under_two_sales_with_a_byte_and_a_tag_added(database, add, look):
    spoken = voice()
    tag = b"ID3\x04\x00\x00\x00\x00\x00\x0a" + bytes(10)
    for sale_id, content in (("sale-1", spoken), ("sale-2", tag + spoken + b"x"), ("sale-3", voice(number=2))):
        add(add_sale(database, sale_id), "POV", content)
    [finding] = [each for each in look() if each.problem != IntegrityProblem.TYPE_DIFFERS]
    assert (finding.problem, finding.sale_ids) == (IntegrityProblem.CONTENT_ALIKE, ["sale-1", "sale-2"])
    add(add_sale(database, "sale-0"), "POV", tag + spoken + b"y")
    [again] = [each for each in look() if each.problem == IntegrityProblem.CONTENT_ALIKE]
    assert again.sale_ids == ["sale-0", "sale-1", "sale-2"]
    assert set(finding.finding_ids) < set(again.finding_ids)  # those of the others stay what they were


def test_a_wav_declared_as_mpeg(database, add, look):
    add_sale(database)
    for declared, content in (
        ("audio/mpeg", voice("WAV")),
        ("audio/x-wav", voice("WAV", 2)),
        ("AUDIO/MP3", voice("MP3")),
    ):
        add("sale-1", "POV", content, media_type=declared)
    add("sale-1", "DOC_CONTRATANTE", b"PK\x03\x04" + bytes(300))  # of another kind
    [finding] = look()
    assert finding.problem == IntegrityProblem.TYPE_DIFFERS
    assert finding.detail == "declared audio/mpeg, is audio/wav"


@pytest.mark.parametrize(
    ("named", "lies"),
    [
        ("s3://evidence/a/1.pdf", "a/1.pdf"),
        ("https://s3.example.com/evidence/a/Ana%20Lima+1.pdf?versionId=7", "a/Ana Lima 1.pdf"),
        ("https://evidence.example.com/a/1.pdf", "a/1.pdf"),
        ("/a/1.pdf", "a/1.pdf"),
        ("a/São%FF.pdf", "a/Sa\u0303o%FF.PDF"),
        ("a/1.pdf", "b/1.pdf"),
    ],
)
def test_a_file_under_a_key_that_its_record_writes_otherwise(database, put, look, named, lies):
    evidence_id, _ = add_record(database, add_sale(database), key=named)
    put(lies, pdf(1))
    found = [each for each in look() if each.problem == IntegrityProblem.KEY_DIFFERS]
    alike = file_finding(IntegrityProblem.KEY_DIFFERS, (named, lies), (evidence_id,), ("sale-1",))
    assert [*map(vars, found)] == ([] if lies == "b/1.pdf" else [alike])


def test_any_number_of_foreign_objects_is_one_finding_and_those_of_records_are_none(database, put, look):
    add_sale(database)
    add_record(database, key="sales/S-1/contract.pdf", **WHEN)
    stray = "evidences/2026/03/02/0199c0de-0000-7000-8000-000000000001/a.pdf"
    for key in (stray, "sales/S-1/contract.pdf", *(f"backup/{number}" for number in range(7))):
        put(key, pdf())
    without_record, finding = look()
    assert vars(without_record) == file_finding(IntegrityProblem.OBJECT_WITHOUT_RECORD, (stray,))
    assert (finding.problem, len(finding.folders)) == (IntegrityProblem.KEY_OUTSIDE_LAYOUT, 5)
    assert finding.detail == "7 objects, of which the first 5 are named"
    put("another/1", pdf())
    _, again = look()
    assert again.folders[0] == "another/"
    assert again.finding_ids == finding.finding_ids


def test_a_blank_document_with_a_script_a_link_and_the_type_of_a_page_is_found_and_counts(
    database, bucket, s3, look
):
    link = b"/Annots [<< /Type /Annot /Subtype /Link /Rect [0 0 9 9] /A << /S /URI /URI (a:b) >> >>]"
    content = page(b"", page=link, catalog=b"/OpenAction << /S /JavaScript /JS (x) >>")
    _, key = add_record(database, add_sale(database))
    s3.put_object(Bucket=bucket.name, Key=key, Body=content, ContentType="text/html")
    found = {each.problem: each.detail for each in look()}
    assert found == {
        "ACTIVE_CONTENT": "javascript",
        "STORED_TYPE_DIFFERS": "declared application/pdf, stored as text/html",
        "EXTERNAL_LINK": "",
        "BLANK_DOCUMENT": "",
    }
    assert rows(database, "SELECT problem FROM audit.content_checks WHERE sha256 IS NOT NULL") == [(None,)]
    execute(database, "ALTER TABLE evidences ALTER type DROP NOT NULL", "UPDATE evidences SET type = NULL")
    execute(database, "UPDATE evidences SET evidence_type = 'POV'")  # what is no recording is unusable anyway
    assert {each.problem for each in look()} == found.keys() - {"STORED_TYPE_DIFFERS", "BLANK_DOCUMENT"}
