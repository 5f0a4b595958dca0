"""The custody log: told in the transaction of what it tells, sealed later, verified without a database."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.support.evidence_files import pdf
from tests.support.request_bodies import UPLOAD
from tests.support.uploaded_sales import add_sale, rows
from toolkit.audit.observe_bucket import sync_bucket
from toolkit.contract.events import BEGINNING, Seal
from toolkit.evidence.contents import verify_contents
from toolkit.evidence.credentials import UploadLimits, request_upload
from toolkit.evidence.records import withdraw
from toolkit.log import sealing
from toolkit.log.sealing import export_log, newest_seal, seal_events
from toolkit.log.verification import verify_log

LIMITS = UploadLimits(3600, 1_000_000)
BODY = {**UPLOAD, "fileName": "Ana Souza.pdf"}


@pytest.fixture
def tell(database):
    def tell_events(count: int) -> None:
        with database.transaction() as connection:
            _tell(connection, count)

    return tell_events


def _tell(connection: sa.Connection, count: int) -> None:
    statement = sa.text(
        "INSERT INTO audit.custody_events (kind, happened_at, detail) "
        "SELECT 'TOLD', '2026-03-02', jsonb_build_object('number', n) FROM generate_series(1, :count) AS n"
    )
    connection.execute(statement, {"count": count})


@pytest.fixture
def seal(database, clock):
    def sealed() -> Seal:
        seal_events(database, clock)
        newest = newest_seal(database)
        assert newest is not None
        return newest

    return sealed


@pytest.fixture
def exported(database, clock, tmp_path, tell, seal, monkeypatch):
    """A log of seven events under three seals."""
    monkeypatch.setattr(sealing, "BATCH", 3)
    tell(7)
    seal()
    export_log(database, tmp_path / "log.jsonl", clock)
    return tmp_path / "log.jsonl"


def test_everything_that_happens_to_a_file_is_told(database, bucket, s3, clock, tmp_path):
    add_sale(database)
    clock.now = datetime.now(UTC)  # forms are signed for real
    issued = request_upload(database, bucket, "sale-1", BODY, requested_by="Rui Lima", limits=LIMITS, clock=clock)
    s3.put_object(Bucket=bucket.name, Key=issued.fields["key"], Body=pdf(1))
    sync_bucket(database, bucket, clock=clock)
    verify_contents(database, bucket, clock=clock)
    s3.put_object(Bucket=bucket.name, Key=issued.fields["key"], Body=pdf(2))
    sync_bucket(database, bucket, clock=clock)
    withdraw(database, issued.id, reason="x", withdrawn_by="Ana Souza", approved_by="Rui Lima", clock=clock)
    told = rows(database, "SELECT kind, detail FROM audit.custody_events ORDER BY transaction, id")
    assert [kind for kind, _ in told] == [
        "ASKED",
        "ISSUED",
        "SALES_OBSERVED",
        "UPLOADED",
        "VERIFIED",
        "GONE",
        "UPLOADED",
        "WITHDRAWN",
    ]
    details = [detail for _, detail in told]
    assert {details[place]["evidence"] for place in (0, 1, 7)} == {str(issued.id)}
    assert details[3]["key"] == details[5]["key"] == details[6]["key"]
    assert not any(name in json.dumps(told) for name in ("Ana", "Rui", ".pdf", "evidences/"))


def test_seals_are_chained_and_cover_every_event_once(database, clock, tell, seal, tmp_path, monkeypatch):
    monkeypatch.setattr(sealing, "BATCH", 3)
    tell(4)
    first = seal()
    tell(5)
    clock.now += timedelta(days=1)
    seal()
    newest = export_log(database, tmp_path / "log.jsonl", clock)
    assert seal_events(database, clock) == newest == newest_seal(database)
    assert rows(database, "SELECT number, events FROM audit.custody_seals ORDER BY 1") == [
        (1, 3),
        (2, 1),
        (3, 3),
        (4, 2),
    ]
    assert newest is not None
    verdict = verify_log(tmp_path / "log.jsonl", kept_seal=first.hash)
    assert (verdict.events, verdict.seals, verdict.newest, verdict.misfit) == (9, 4, newest.hash, None)


def test_an_event_is_sealed_only_when_no_older_transaction_can_tell_another(database, clock, tell, seal):
    tell(1)
    seal()
    with database.transaction() as slow:
        _tell(slow, 1)
        tell(1)
        seal_events(database, clock)  # waits for nobody
        assert rows(database, "SELECT sum(events) FROM audit.custody_seals") == [(1,)]
    seal()
    assert rows(database, "SELECT sum(events) FROM audit.custody_seals") == [(3,)]


def test_an_event_of_an_older_transaction_with_a_later_number_is_sealed_once(
    database, clock, tell, seal, monkeypatch
):
    monkeypatch.setattr(sealing, "BATCH", 1)
    with database.transaction() as older:
        older.exec_driver_sql("SELECT pg_current_xact_id()")
        tell(1)
        _tell(older, 1)
    seal()
    assert rows(database, "SELECT events FROM audit.custody_seals ORDER BY number") == [(1,), (1,)]


def edited(path: Path, change: Callable[[list[dict[str, Any]]], None]) -> Path:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda lines: lines[5]["event"]["detail"].update(number=99), "line 6: event 5 (TOLD) was changed"),
        (lambda lines: lines[0]["event"].update(at="2025"), "line 1: event 1 (TOLD) was changed"),
        (lambda lines: lines.pop(4), "line 5: event 5 (TOLD) was changed, put in or moved, or follows a gap"),
        (lambda lines: lines.insert(1, lines[2]), "line 2: event 3 (TOLD)"),
        (lambda lines: lines.pop(2), "line 3: seal 1 does not fit"),
        (lambda lines: lines.pop(3), "line 4: event 4"),
        (lambda lines: lines.pop(), "the end is missing: 1 events have no seal"),
        (lambda lines: lines[3]["seal"].update(sealedAt="2025"), "line 4: seal 1 does not fit"),
        (lambda lines: lines.insert(0, {"note": "x"}), "line 1: no event and no seal"),
    ],
)
def test_the_first_line_that_does_not_fit_is_named(exported, change, reason):
    assert verify_log(exported).misfit is None
    misfit = verify_log(edited(exported, change)).misfit
    assert misfit is not None
    assert misfit.startswith(reason)


@pytest.mark.parametrize(
    ("told", "forged"),
    [
        ('{"event": {', '{"event": {"kind": "WITHDRAWN", '),
        ('"digest"', '"note": "nobody hashed this", "digest"'),
        ('"digest"', '"seal": {}, "digest"'),
        ('{"event": {', "[" * 100_000),
    ],
)
def test_a_line_says_nothing_beside_what_is_hashed(exported, told, forged):
    lines = exported.read_text().splitlines(keepends=True)
    exported.write_text("".join([lines[0], lines[1].replace(told, forged), *lines[2:]]))
    assert verify_log(exported).misfit == "line 2: no event and no seal"


def test_the_hash_that_every_log_begins_with_is_no_kept_seal(exported):
    assert "forged as a whole, or cut off" in str(verify_log(exported, BEGINNING).misfit)


def test_a_change_in_the_database_shows_in_the_next_export(exported, database, clock):
    with database.transaction() as connection:
        connection.execute(sa.text("SET LOCAL session_replication_role = replica"))
        connection.execute(sa.text("UPDATE audit.custody_events SET kind = 'OTHER' WHERE id = 5"))
    export_log(database, exported, clock)
    assert str(verify_log(exported).misfit).startswith("line 6: event 5 (OTHER) was changed")


def test_the_commands_export_and_verify(run, tell, seal, tmp_path):
    path = tmp_path / "log.jsonl"
    tell(2)
    seal()
    newest = run("evidence", "log", "--out", path, "--json").told["newestSeal"]["hash"]
    assert "2 events under 1 seal" in run("verify", path, "--seal", newest, within={}).out
    edited(path, lambda lines: lines[0]["event"].update(kind="x"))
    assert "line 1: event 1 (x) was changed" in run("verify", path, ends=3, within={}).out
    (tmp_path / "noise").write_bytes(b"\xff\xfe")
    run("verify", tmp_path / "noise", ends=1, within={})
