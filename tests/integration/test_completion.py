"""A sale is completed only when the files that lie in the bucket at that moment satisfy the rules; withdrawals."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from hashlib import md5, sha256

import pytest

from tests.support.audits import audited, made_audit
from tests.support.evidence_files import pdf, tone
from tests.support.uploaded_sales import MONDAY, PDF, Story, add_record, add_sale, execute, partner_of, rows
from tests.support.waiting import PATIENCE, sessions_waiting, wait_until
from toolkit.audit.sale_case import sale_case
from toolkit.contract.evidence import FileKind
from toolkit.contract.findings import Reason
from toolkit.database.connection import Lock, take
from toolkit.errors import DatabaseError
from toolkit.evidence.completion import complete_sale
from toolkit.evidence.contents import verify_contents
from toolkit.evidence.gate import sale_gate
from toolkit.evidence.records import records_of, withdraw, withdrawals_at

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
def complete(database, bucket, sale):
    return lambda: complete_sale(database, bucket, sale)


def missing(refused):
    """Return what a refused sale lacks, and why."""
    assert refused.completed_at is None
    return [(piece.evidence_type, piece.reason) for piece in refused.verdict.missing]


def test_two_callers_at_once_complete_a_sale_once(database, upload, complete):
    upload("KYC")
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: complete(), range(4)))
    assert sorted(answer.already for answer in answers) == [False, True, True, True]
    assert rows(database, "SELECT count(*) FROM audit.sale_observations") == [(1,)]


@pytest.fixture
def at_head(bucket, monkeypatch):
    """Lets something happen each time when the bucket is asked for the file: before it is read, and after that."""

    def at_head(*events):
        head, waiting = bucket.head, iter(events)

        def interrupted(key):
            next(waiting, lambda: None)()
            return head(key)

        monkeypatch.setattr(bucket, "head", interrupted)

    return at_head


def test_a_record_that_is_withdrawn_while_the_bucket_is_read_does_not_count(database, upload, complete, at_head):
    only, _ = upload("KYC")
    with ThreadPoolExecutor(1) as pool:

        def withdraw_it():
            done = pool.submit(withdraw, database, only, **PEOPLE)
            wait_until(lambda: done.done() or sessions_waiting(database))

        at_head(withdraw_it)
        assert complete().completed_at is None


@pytest.mark.parametrize(
    ("kind", "beside", "content"),
    [
        ("DOC_CONTRATANTE", "POV", b"%PDF-1.4 truncated rubbish"),
        ("POV", "DOC_CONTRATANTE", pdf()),
    ],
    ids=["damaged", "another kind"],
)
def test_a_file_that_cannot_be_used_does_not_complete_a_sale(kind, beside, content, upload, complete):
    upload(beside)
    upload(kind, content)
    assert missing(complete()) == [(kind, "UNUSABLE")]


@pytest.mark.parametrize("deleted", [True, False])
def test_a_file_that_is_deleted_or_replaced_after_it_was_read_does_not_complete_a_sale(
    deleted, delete, put, upload, complete, at_head
):
    _, key = upload("KYC")
    at_head(lambda: None, lambda: delete(key) if deleted else put(key, b"%PDF-1.4 rubbish"))
    assert complete().completed_at is None


def test_the_custody_log_keeps_the_versions_that_allowed_a_completion(database, upload, complete, sync, sale):
    evidence_id, _ = upload("KYC")
    complete()
    [(detail,)] = rows(database, "SELECT detail FROM audit.custody_events WHERE kind = 'COMPLETED'")
    etag = md5(PDF, usedforsecurity=False).hexdigest()
    version = {"sha256": sha256(PDF).hexdigest(), "size": len(PDF), "etag": etag}
    assert detail["sale"] == sha256(sale.encode()).hexdigest()
    assert detail["files"] == [{"evidence": str(evidence_id), **version}]
    sync()
    case = sale_case(database, sale)
    assert [record for event, record in case.timeline if event.kind == "COMPLETED"] == [evidence_id]


@pytest.mark.parametrize(("versions", "completed"), [("D", False), ("D?", True), ("DD", False)])
def test_damage_counts_against_the_version_that_it_was_found_in(
    versions, completed, database, put, upload, complete, sync, clock
):
    """Each version of the file is damaged (D), or not verified yet."""
    _, key = upload("KYC")
    for number, version in enumerate(versions):
        if number:
            put(key, pdf(number + 1))
        sync()
        if version == "D":
            [(now,)] = rows(database, "SELECT id FROM audit.object_observations WHERE gone_at IS NULL")
            Story(database).check(now, FileKind.PDF, at=clock.now, problem="DAMAGED", media_type="application/pdf")
        clock.now += timedelta(minutes=1)
    assert (complete().completed_at == clock.now) is completed
    if not completed:  # a newer version that nobody has seen yet is judged by itself
        put(key, pdf(9))
        assert complete().completed_at == clock.now


@pytest.fixture
def gate(database, bucket, sale):
    return lambda: sale_gate(database, bucket, sale, partner_of(database, sale))


def reasons(found):
    return {piece["evidence_type"]: piece["reason"] for piece in found["missing"]}


def test_a_file_that_was_found_unusable_does_not_count_and_a_new_version_does(
    gate, upload, put, sync, database, bucket, delete
):
    upload("POV", tone())
    _, key = upload("DOC_CONTRATANTE", pdf()[:200])
    assert reasons(gate()) == {}  # nobody has looked at them yet
    assert [each.not_examined for each in gate()["evidences"] if each.files] == [1, 1]

    sync()
    verify_contents(database, bucket)
    found = gate()
    assert reasons(found) == {"DOC_CONTRATANTE": Reason.UNUSABLE}
    assert not found["may_be_completed"]
    assert [each.not_examined for each in found["evidences"] if each.files] == [0]

    put(key)
    assert gate()["may_be_completed"]
    delete(key)
    assert reasons(gate()) == {"DOC_CONTRATANTE": Reason.VANISHED}


def test_the_gate_and_the_completion_agree(gate, upload, database, bucket):
    pov, _ = upload("POV", tone())
    upload("DOC_CONTRATANTE", pdf())
    withdraw(database, pov, **PEOPLE)
    assert reasons(gate()) == {"POV": Reason.WITHDRAWN}
    verdict, told = complete_sale(database, bucket, "S-1").verdict, gate()
    assert reasons(told) == {piece.evidence_type: piece.reason for piece in verdict.missing}
    assert (told["status"], told["problems"]) == (verdict.status, list(verdict.problems))

    upload("POV", tone())
    assert gate()["may_be_completed"]
    completed = complete_sale(database, bucket, "S-1").completed_at
    after = gate()
    assert (after["completed_at"], after["may_be_completed"]) == (completed, False)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE sales SET created_at = NULL",
        "UPDATE evidences SET requested_at = NULL WHERE evidence_type = 'POV'",
        "UPDATE evidences SET id = NULL WHERE evidence_type = 'POV'",
        'INSERT INTO evidences SELECT (jsonb_populate_record(one, \'{"object_key": "x", "sale_id": "S-2"}\')).* '
        "FROM evidences AS one LIMIT 1",
    ],
)
def test_no_sale_is_completed_by_rows_that_an_audit_sets_aside(database, upload, gate, complete, statement):
    upload("POV")
    upload("DOC_CONTRATANTE")
    execute(
        database,
        "ALTER TABLE evidences DROP CONSTRAINT evidences_pkey CASCADE, ALTER requested_at DROP NOT NULL",
        "ALTER TABLE evidences ALTER id DROP NOT NULL, DROP CONSTRAINT evidences_sale_id_fkey",
        "ALTER TABLE sales ALTER created_at DROP NOT NULL",
        statement,
    )
    for ask in (gate, complete, lambda: sale_case(database.at(lambda: MONDAY), "S-1")):
        with pytest.raises(DatabaseError, match="is set aside: others have its id, or it has no"):
            ask()


def test_a_record_without_a_key_has_no_file(database, sale, gate, complete):
    add_record(database, sale, "POV", requested_at=MONDAY)
    execute(
        database, "ALTER TABLE evidences ALTER object_key DROP NOT NULL", "UPDATE evidences SET object_key = NULL"
    )
    refused = missing(complete())
    assert refused == [*reasons(gate()).items()]
    assert ("POV", Reason.NOT_UPLOADED) in refused


@pytest.fixture
def evidence_id(database):
    add_sale(database)
    return add_record(database)[0]


def test_a_withdrawal_is_told_although_the_service_deleted_the_record(database, sync, clock, evidence_id):
    sync()
    withdraw(database, evidence_id, **PEOPLE)
    clock.now += timedelta(days=1)
    execute(database, "DELETE FROM evidences")
    sync(confirmed=True)
    clock.now += timedelta(days=1)
    with database.snapshot() as connection:
        [told] = withdrawals_at(connection, clock.now)
        assert (told.sale_id, told.evidence_id, told.approved_by) == ("sale-1", evidence_id, "b")
        assert not withdrawals_at(connection, clock.now - timedelta(days=9))


def test_a_withdrawal_stays_with_the_file_in_another_sale_and_the_past_with_what_was_seen(
    database, sync, clock, evidence_id
):
    add_sale(database, "sale-2")
    withdraw(database, evidence_id, **PEOPLE)  # nobody had read the record before
    reasons, told = [], []
    for moved in ("sale_id = 'sale-2'", "object_key = 'another'", "sale_id = 'sale-1'"):
        clock.now += timedelta(days=1)
        execute(database, f"UPDATE evidences SET {moved}")
        sync()
        reasons.append(max(audited(database).rows["reasons"], key=lambda each: "|N" not in each))
        told.append(database.run(withdrawals_at, clock.now)[0].sale_id)
    assert reasons == [f"NEVER_REQUESTED|{each}" for each in ("WITHDRAWN", "EXPIRED", "WITHDRAWN")]
    assert reasons[1] in {*audited(database, as_of=clock.now - timedelta(days=1)).rows["reasons"]}
    assert told == ["sale-2", "sale-2", "sale-1"]


def test_a_record_that_was_withdrawn_in_two_sales_stands_once(database, sync, clock, evidence_id, tmp_path):
    [(key,)] = rows(database, "SELECT object_key FROM evidences")
    add_sale(database, "sale-2")
    withdraw(database, evidence_id, **PEOPLE)
    for other in ("another", key):
        execute(database, f"UPDATE evidences SET sale_id = 'sale-2', object_key = '{other}'")
        if other != key:
            withdraw(database, evidence_id, **PEOPLE)
        clock.now += timedelta(days=1)
        sync()
    assert [each.sale_id for each in database.run(withdrawals_at, clock.now)] == ["sale-2"]
    assert [each.sale_id for each in records_of(database, "sale-2")] == ["sale-2"]
    assert len(made_audit(database, tmp_path).sql("FROM records")) == 1


@pytest.mark.parametrize("completing", [True, False])
def test_it_waits_for_whoever_holds_the_sale(completing, database, clock, sale, upload, complete):
    only, _ = upload("KYC")

    def told_at():
        return complete().completed_at if completing else withdraw(database, only, **PEOPLE).withdrawn_at

    with ThreadPoolExecutor(1) as thread:
        with database.transaction() as connection:
            take(connection, Lock.SALE, sale)
            waiting = thread.submit(told_at)
            wait_until(lambda: waiting.done() or sessions_waiting(database))
            clock.now += timedelta(minutes=1)
        assert waiting.result(PATIENCE) == clock.now
