"""A sale is completed only when the files that lie in the bucket at that moment satisfy the rules."""

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from hashlib import md5, sha256

import pytest
import sqlalchemy as sa

from tests.support.evidence_files import pdf, silence
from tests.support.uploaded_sales import MONDAY, PDF, add_record, add_sale, rows
from tests.support.waiting import someone_waits, wait_until
from toolkit.audit.sale_case import sale_case
from toolkit.contract.evidence import EvidenceType, FileKind
from toolkit.database.tables import content_checks
from toolkit.errors import SaleNotFound
from toolkit.evidence.completion import complete_sale
from toolkit.evidence.records import withdraw

ISSUED = MONDAY - timedelta(hours=2)
PEOPLE = {"reason": "sent twice", "withdrawn_by": "a", "approved_by": "b"}


@pytest.fixture
def sale(database):
    return add_sale(database, "S-1")


@pytest.fixture
def upload(add_file, sale):
    """Puts a file of this type for the sale."""
    return lambda kind, body=None: add_file(sale, kind, body, file_name="file", requested_at=ISSUED)


@pytest.fixture
def complete(database, bucket, sale, clock):
    return lambda through=bucket: complete_sale(database, through, sale, clock)


def missing(refused):
    """Return what a refused sale lacks, and why."""
    assert refused.completed_at is None
    return [(piece.evidence_type, piece.reason) for piece in refused.verdict.missing]


def test_a_sale_with_its_evidence_is_completed_and_seen_as_completed(database, upload, complete, clock):
    upload(EvidenceType.POV)
    upload(EvidenceType.DOC_CONTRATANTE)
    assert complete().completed_at == clock.now
    query = "SELECT completed_at FROM sales UNION ALL SELECT completed_at FROM audit.sale_observations"
    assert rows(database, query) == [(clock.now,)] * 2


def test_a_record_without_its_object_does_not_count(database, upload, complete, sale):
    upload(EvidenceType.POV)
    add_record(database, sale, EvidenceType.DOC_CONTRATANTE, requested_at=ISSUED)
    assert missing(complete()) == [("DOC_CONTRATANTE", "EXPIRED")]
    assert rows(database, "SELECT completed_at FROM sales") == [(None,)]


def test_a_withdrawn_record_does_not_count_and_mends_a_conflict(database, upload, complete, clock):
    upload(EvidenceType.KYC)
    beside, _ = upload(EvidenceType.POV)
    assert complete().verdict.problems == ("KYC_NOT_ALONE",)
    withdraw(database, beside, **PEOPLE, clock=clock)
    assert complete().completed_at == clock.now


def test_two_callers_at_once_complete_a_sale_once(database, upload, complete):
    upload(EvidenceType.KYC)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: complete(), range(4)))
    assert sorted(answer.already for answer in answers) == [False, True, True, True]
    assert rows(database, "SELECT count(*) FROM audit.sale_observations") == [(1,)]


class Interrupted:
    """A bucket during whose first reading something else happens."""

    def __init__(self, bucket, meanwhile):
        self._bucket, self._meanwhile = bucket, [meanwhile]
        self.address = bucket.address

    def head(self, key):
        while self._meanwhile:
            self._meanwhile.pop()()
        return self._bucket.head(key)

    def download(self, key, *, etag):
        return self._bucket.download(key, etag=etag)


def test_a_record_that_is_withdrawn_while_the_bucket_is_read_does_not_count(
    database, bucket, upload, complete, clock
):
    only, _ = upload(EvidenceType.KYC)
    with ThreadPoolExecutor(1) as pool:

        def withdraw_it():
            done = pool.submit(withdraw, database, only, **PEOPLE, clock=clock)
            wait_until(lambda: done.done() or someone_waits(database))

        assert complete(Interrupted(bucket, withdraw_it)).completed_at is None


@pytest.mark.parametrize(
    ("kind", "beside", "content"),
    [
        (EvidenceType.DOC_CONTRATANTE, EvidenceType.POV, b"%PDF-1.4 truncated rubbish"),
        (EvidenceType.DOC_CONTRATANTE, EvidenceType.POV, pdf(password="secret")),
        (EvidenceType.POV, EvidenceType.DOC_CONTRATANTE, silence()),
        (EvidenceType.POV, EvidenceType.DOC_CONTRATANTE, pdf()),
    ],
    ids=["damaged", "encrypted", "silent", "another kind"],
)
def test_a_file_that_cannot_be_used_does_not_complete_a_sale(kind, beside, content, upload, complete):
    upload(beside)
    upload(kind, content)
    assert missing(complete()) == [(kind, "UNUSABLE")]


@pytest.mark.parametrize("deleted", [True, False])
def test_a_file_that_is_deleted_or_replaced_after_it_was_read_does_not_complete_a_sale(
    deleted, bucket, delete, put, upload, complete
):
    upload(EvidenceType.KYC)

    class Changing(Interrupted):
        @contextmanager
        def download(self, key, *, etag):
            with self._bucket.download(key, etag=etag) as opened:
                yield opened
            if deleted:
                delete(key)
            else:
                put(key, b"%PDF-1.4 rubbish")

    assert complete(Changing(bucket, lambda: None)).completed_at is None


def test_the_custody_log_keeps_the_versions_that_allowed_a_completion(
    database, upload, complete, sync, sale, clock
):
    evidence_id, _ = upload(EvidenceType.KYC)
    complete()
    [(detail,)] = rows(database, "SELECT detail FROM audit.custody_events WHERE kind = 'COMPLETED'")
    etag = md5(PDF, usedforsecurity=False).hexdigest()
    version = {"sha256": sha256(PDF).hexdigest(), "size": len(PDF), "etag": etag}
    assert detail["sale"] == sha256(sale.encode()).hexdigest()
    assert detail["files"] == [{"evidence": str(evidence_id), **version}]
    sync()
    case = sale_case(database, sale, clock=clock)
    assert [record for event, record in case.timeline if event.kind == "COMPLETED"] == [evidence_id]


@pytest.mark.parametrize(("versions", "completed"), [("D", False), ("D?", True), ("DD", False)])
def test_damage_counts_against_the_version_that_it_was_found_in(
    versions, completed, database, put, upload, complete, sync, clock
):
    """Each version of the file is damaged (D), or not verified yet."""
    _, key = upload(EvidenceType.KYC)
    found = {"kind": FileKind.PDF, "problem": "DAMAGED", "media_type": "application/pdf", "checked_at": clock.now}
    for number, version in enumerate(versions):
        if number:
            put(key, pdf(number + 1))
        sync()
        if version == "D":
            [(now,)] = rows(database, "SELECT id FROM audit.object_observations WHERE gone_at IS NULL")
            with database.transaction() as connection:
                connection.execute(sa.insert(content_checks).values(observation_id=now, **found))
        clock.now += timedelta(minutes=1)
    assert (complete().completed_at == clock.now) is completed
    if not completed:  # a newer version that nobody has seen yet is judged by itself
        put(key, pdf(9))
        assert complete().completed_at == clock.now


@pytest.mark.parametrize("sale_id", ["S-9", "", "S-9\udcff", "S-9\x00", "9" * 101])
def test_an_unknown_sale_is_named(database, bucket, clock, sale_id):
    with pytest.raises(SaleNotFound, match=re.escape(repr(sale_id))):
        complete_sale(database, bucket, sale_id, clock)


def test_the_command_says_what_stands_in_the_way(run, sale):
    assert run("sales", "complete", sale, ends=1).err == (
        "toolkit: S-1 cannot be completed, its status is incomplete\n"
        "  POV is missing: NEVER_REQUESTED\n"
        "  DOC_CONTRATANTE is missing: NEVER_REQUESTED\n"
    )
