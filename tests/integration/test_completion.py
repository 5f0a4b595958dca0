"""A sale is completed only when the files that lie in the bucket at that moment satisfy the rules."""

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from hashlib import md5, sha256

import pytest
import sqlalchemy as sa

from tests.support.evidence_files import pdf, silence, tone
from tests.support.uploaded_sales import MONDAY, add_record, add_sale
from tests.support.waiting import someone_waits, wait_until
from toolkit.audit.observe_bucket import sync_bucket
from toolkit.audit.sale_case import sale_case
from toolkit.bucket.client import list_objects
from toolkit.contract.evidence import KIND_OF, EvidenceType, FileKind, object_key
from toolkit.database.tables import (
    content_checks,
    custody_events,
    object_observations,
    sale_observations,
    sales,
    withdrawals,
)
from toolkit.errors import SaleNotFound
from toolkit.evidence.completion import complete_sale
from toolkit.evidence.records import withdraw

CONTENT = {FileKind.PDF: pdf(), FileKind.AUDIO: tone()}
ISSUED = MONDAY - timedelta(hours=2)


@pytest.fixture
def sale(database):
    return add_sale(database, "S-1")


def upload(s3, bucket, database, sale, kind, content=b""):
    evidence_id, key = add_record(database, sale, kind, file_name="file", requested_at=ISSUED)
    s3.put_object(Bucket=bucket.name, Key=key, Body=content or CONTENT[KIND_OF[kind]])
    return evidence_id


def missing(database, bucket, sale, clock):
    """Return what a refused sale lacks, and why."""
    refused = complete_sale(database, bucket, sale, clock)
    assert refused.completed_at is None
    return [(piece.evidence_type, piece.reason) for piece in refused.verdict.missing]


def test_a_sale_with_its_evidence_is_completed_and_seen_as_completed(database, bucket, s3, sale, clock):
    upload(s3, bucket, database, sale, EvidenceType.POV)
    upload(s3, bucket, database, sale, EvidenceType.DOC_CONTRATANTE)
    assert complete_sale(database, bucket, sale, clock).completed_at == clock.now
    with database.transaction() as connection:
        assert connection.scalar(sa.select(sales.c.completed_at)) == clock.now
        assert connection.scalar(sa.select(sale_observations.c.completed_at)) == clock.now


def test_a_record_without_its_object_does_not_count(database, bucket, s3, sale, clock):
    upload(s3, bucket, database, sale, EvidenceType.POV)
    add_record(database, sale, EvidenceType.DOC_CONTRATANTE, requested_at=ISSUED)
    assert missing(database, bucket, sale, clock) == [("DOC_CONTRATANTE", "EXPIRED")]
    with database.transaction() as connection:
        assert connection.scalar(sa.select(sales.c.completed_at)) is None


def test_a_withdrawn_record_does_not_count_and_mends_a_conflict(database, bucket, s3, sale, clock):
    upload(s3, bucket, database, sale, EvidenceType.KYC)
    beside = upload(s3, bucket, database, sale, EvidenceType.POV)
    refused = complete_sale(database, bucket, sale, clock)
    assert refused.verdict.problems == ("KYC_NOT_ALONE",)
    with database.transaction() as connection:
        connection.execute(
            sa.insert(withdrawals).values(
                evidence_id=beside, reason="sent twice", withdrawn_by="a", approved_by="b", withdrawn_at=clock.now
            )
        )
    assert complete_sale(database, bucket, sale, clock).completed_at == clock.now


def test_two_callers_at_once_complete_a_sale_once(database, bucket, s3, sale, clock):
    upload(s3, bucket, database, sale, EvidenceType.KYC)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: complete_sale(database, bucket, sale, clock), range(4)))
    assert sorted(answer.already for answer in answers) == [False, True, True, True]
    with database.transaction() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(sale_observations)) == 1


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


def test_a_record_that_is_withdrawn_while_the_bucket_is_read_does_not_count(database, bucket, s3, sale, clock):
    only = upload(s3, bucket, database, sale, EvidenceType.KYC)
    with ThreadPoolExecutor(1) as pool:

        def withdraw_it():
            people = {"withdrawn_by": "a", "approved_by": "b"}
            done = pool.submit(withdraw, database, only, reason="sent twice", **people, clock=clock)
            wait_until(lambda: done.done() or someone_waits(database))

        meanwhile = Interrupted(bucket, withdraw_it)
        assert complete_sale(database, meanwhile, sale, clock).completed_at is None


@pytest.mark.parametrize(
    ("evidence_type", "content"),
    [
        (EvidenceType.KYC, b"%PDF-1.4 truncated rubbish"),
        (EvidenceType.KYC, pdf(password="secret")),
        (EvidenceType.POV, silence()),
        (EvidenceType.POV, pdf()),
    ],
    ids=["damaged", "encrypted", "silent", "another kind"],
)
def test_a_file_that_cannot_be_used_does_not_complete_a_sale(
    evidence_type, content, database, bucket, s3, sale, clock
):
    if evidence_type is EvidenceType.POV:
        upload(s3, bucket, database, sale, EvidenceType.DOC_CONTRATANTE)
    upload(s3, bucket, database, sale, evidence_type, content)
    reasons = [reason for _, reason in missing(database, bucket, sale, clock)]
    assert ("UNUSABLE" in reasons) or evidence_type is EvidenceType.KYC


@pytest.mark.parametrize("deleted", [True, False])
def test_a_file_that_is_deleted_or_replaced_after_it_was_read_does_not_complete_a_sale(
    deleted, database, bucket, s3, sale, clock
):
    upload(s3, bucket, database, sale, EvidenceType.KYC)
    [key] = [item.key for page in list_objects(bucket, [""]) for item in page]

    class Changing(Interrupted):
        @contextmanager
        def download(self, key, *, etag):
            with self._bucket.download(key, etag=etag) as opened:
                yield opened
            if deleted:
                s3.delete_object(Bucket=bucket.name, Key=key)
            else:
                s3.put_object(Bucket=bucket.name, Key=key, Body=b"%PDF-1.4 rubbish")

    changing = Changing(bucket, lambda: None)
    assert complete_sale(database, changing, sale, clock).completed_at is None
    assert key


def test_the_custody_log_keeps_the_versions_that_allowed_a_completion(database, bucket, s3, sale, clock):
    evidence_id = upload(s3, bucket, database, sale, EvidenceType.KYC)
    complete_sale(database, bucket, sale, clock)
    query = sa.select(custody_events.c.detail).where(custody_events.c.kind == "COMPLETED")
    with database.transaction() as connection:
        detail = connection.execute(query).scalar_one()
    content = CONTENT[FileKind.PDF]
    assert detail["sale"] == sha256(sale.encode()).hexdigest()
    assert detail["files"] == [
        {
            "evidence": str(evidence_id),
            "sha256": sha256(content).hexdigest(),
            "size": len(content),
            "etag": md5(content, usedforsecurity=False).hexdigest(),
        }
    ]
    sync_bucket(database, bucket, clock=clock)
    case = sale_case(database, sale, clock=clock)
    assert [record for event, record in case.timeline if event.kind == "COMPLETED"] == [evidence_id]


@pytest.mark.parametrize(("versions", "completed"), [("D", False), ("D?", True), ("DD", False)])
def test_damage_counts_against_the_version_that_it_was_found_in(
    versions, completed, database, bucket, s3, sale, clock
):
    """Each version of the file is damaged (D), or not verified yet."""
    key = object_key(upload(s3, bucket, database, sale, EvidenceType.KYC), "file", ISSUED)
    found = {"kind": FileKind.PDF, "problem": "DAMAGED", "media_type": "application/pdf", "checked_at": clock.now}
    for number, version in enumerate(versions):
        if number:
            s3.put_object(Bucket=bucket.name, Key=key, Body=pdf(number + 1))
        sync_bucket(database, bucket, clock=clock)
        if version == "D":
            seen = object_observations.c
            with database.transaction() as connection:
                now = connection.scalar(sa.select(seen.id).where(seen.key == key, seen.gone_at.is_(None)))
                connection.execute(sa.insert(content_checks).values(observation_id=now, **found))
        clock.now += timedelta(minutes=1)
    assert (complete_sale(database, bucket, sale, clock).completed_at == clock.now) is completed
    if not completed:  # a newer version that nobody has seen yet is judged by itself
        s3.put_object(Bucket=bucket.name, Key=key, Body=pdf(9))
        assert complete_sale(database, bucket, sale, clock).completed_at == clock.now


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
