"""Withdrawal of evidence records."""

import os
import pwd
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import uuid4

import pytest

from tests.support.uploaded_sales import add_record, add_sale, execute, rows
from tests.support.waiting import PATIENCE, someone_waits, wait_until
from toolkit.database.connection import Lock, take
from toolkit.errors import EvidenceNotFound, WithdrawalRefused
from toolkit.evidence.records import withdraw, withdrawals_at


@pytest.fixture
def evidence_id(database):
    add_sale(database)
    return add_record(database)[0]


def ask(database, clock, evidence_id, **changes):
    people = {"reason": "sent twice", "withdrawn_by": "Ana", "approved_by": "Rui"}
    return withdraw(database, evidence_id, clock=clock, **{**people, **changes})


def test_a_withdrawal_is_kept_with_both_people(database, clock, evidence_id):
    done = ask(database, clock, evidence_id)
    assert done.sale_id == "sale-1"
    assert rows(
        database, "SELECT evidence_id, reason, withdrawn_by, approved_by, withdrawn_at FROM audit.withdrawals"
    ) == [(evidence_id, "sent twice", "Ana", "Rui", clock.now)]


def test_a_withdrawal_is_told_although_the_service_deleted_the_record(database, sync, clock, evidence_id):
    sync()
    ask(database, clock, evidence_id)
    clock.now += timedelta(days=1)
    execute(database, "DELETE FROM evidences")
    sync(confirmed=True)
    clock.now += timedelta(days=1)
    with database.snapshot() as connection:
        [told] = withdrawals_at(connection, clock.now)
        assert (told.sale_id, told.evidence_id, told.approved_by) == ("sale-1", evidence_id, "Rui")
        assert not withdrawals_at(connection, clock.now - timedelta(days=9))


REFUSED = [
    {"reason": "  "},
    {"withdrawn_by": ""},
    {"approved_by": "\u00a0"},
    {"approved_by": "Ana"},
    {"approved_by": "an\u0430"},
    {"withdrawn_by": "Ian.Alvo@example.com", "approved_by": "lan.a1v0@example.com"},
    {"withdrawn_by": "Marisa", "approved_by": "rnarisa"},
    {"withdrawn_by": "Helena", "approved_by": "\u0397el\u0435\u03b7a"},
    {"approved_by": "Нина"},
    {"withdrawn_by": "Jose", "approved_by": "José"},
    {"withdrawn_by": "Ana  Sá", "approved_by": "ana sa\u0301"},
    {"approved_by": "A\u200bna\u00ad"},
    {"approved_by": "\u2060"},
    {"reason": "sent twice\udcff"},
    {"approved_by": "Rui\x00"},
    {"approved_by": "\u202eiuR"},
    {"reason": "sent \u2067twice"},
]


def test_it_needs_a_reason_and_two_people(database, clock, evidence_id):
    for changes in REFUSED:
        with pytest.raises(WithdrawalRefused):
            ask(database, clock, evidence_id, **changes)
            pytest.fail(f"{changes} were accepted")
    for approved_by in ("Anabela", "An", "Ana S.", "Eva", "Łucja Sørensen"):
        other, _ = add_record(database)
        assert ask(database, clock, other, approved_by=approved_by).approved_by == approved_by
    assert rows(database, "SELECT count(*) FROM audit.withdrawals") == [(5,)]


def test_an_unknown_record_and_a_second_withdrawal_are_refused(database, clock, evidence_id):
    with pytest.raises(EvidenceNotFound):
        ask(database, clock, uuid4())
    ask(database, clock, evidence_id)
    with pytest.raises(WithdrawalRefused, match="before, at 2026-03-02T12:00:00"):
        ask(database, clock, evidence_id)


def test_it_waits_for_whoever_holds_the_sale(database, clock, evidence_id):
    with ThreadPoolExecutor(1) as thread:
        with database.transaction() as connection:
            take(connection, Lock.SALE, "sale-1")
            waiting = thread.submit(ask, database, clock, evidence_id)
            wait_until(lambda: someone_waits(database))
            clock.now += timedelta(minutes=1)
        assert waiting.result(PATIENCE).withdrawn_at == clock.now


def test_the_command_withdraws_and_says_what_it_refuses(run, database, evidence_id):
    arguments = ["evidence", "withdraw", str(evidence_id), "--reason", "twice", "--by", "Ana", "--json"]
    assert "somebody else" in run(*arguments, "--approved-by", "ana", ends=1).err
    assert run(*arguments, "--approved-by", "Rui").told["saleId"] == "sale-1"
    assert rows(database, "SELECT account FROM audit.withdrawals") == [(pwd.getpwuid(os.getuid()).pw_name,)]
