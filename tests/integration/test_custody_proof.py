"""The custody log proves tables and reports, across clusters, and without personal data."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from tests.support.evidence_files import pdf
from tests.support.uploaded_sales import add_sale, rows
from toolkit.audit.observe_bucket import sync_bucket
from toolkit.cli import main
from toolkit.contract.events import LogKeys
from toolkit.database.connection import Database
from toolkit.errors import InvalidInput
from toolkit.evidence.contents import verify_contents
from toolkit.evidence.credentials import UploadLimits, request_upload
from toolkit.evidence.records import withdraw
from toolkit.log.sealing import export_log, seal_events
from toolkit.log.verification import verify_log

KEYS = LogKeys(("k" * 32,))
NAME = "390.533.447-05.pdf"


def execute(database: Database, *statements: str) -> None:
    with database.transaction() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))


def unguarded(database: Database, table: str, statement: str) -> None:
    """Execute a statement without the triggers, as an owner of the table can."""
    execute(
        database,
        f"ALTER TABLE audit.{table} DISABLE TRIGGER USER",
        statement,
        f"ALTER TABLE audit.{table} ENABLE TRIGGER USER",
    )


@pytest.fixture
def evidence(database, bucket, s3, clock):
    """A record whose file was uploaded, seen and verified; everything is sealed."""
    add_sale(database)
    add_sale(database, "sale-2")
    clock.now = datetime.now(UTC)
    body = {
        "fileName": NAME,
        "fileFormat": "application/pdf",
        "type": "application/pdf",
        "evidenceType": "DOC_CONTRATANTE",
    }
    limits = UploadLimits(3600, 1_000_000)
    issued = request_upload(database, bucket, "sale-1", body, requested_by="rui", limits=limits, clock=clock)
    s3.put_object(Bucket=bucket.name, Key=issued.fields["key"], Body=pdf())
    sync_bucket(database, bucket, clock=clock)
    verify_contents(database, bucket, clock=clock)
    seal_events(database, clock, KEYS)
    return issued.id


@pytest.fixture
def environ(embedded_environment):
    """The environment of the commands, with the key of the log."""
    return embedded_environment | {"TOOLKIT_LOG_KEY": KEYS.keys[0]}


def test_a_report_is_in_the_log_under_the_seal_that_it_carries(database, evidence, environ, tmp_path):
    out, log = tmp_path / "out", tmp_path / "log.jsonl"
    assert main(["-q", "report", "--out", str(out), "--format", "csv"], environ) == 0
    manifest = json.loads((out / "manifest.json").read_text())
    seal_events(database, lambda: datetime.now(UTC), KEYS)
    assert main(["evidence", "log", "--out", str(log)], environ) == 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    kinds = [line["event"]["kind"] if "event" in line else line["seal"]["hash"] for line in lines]
    (reported,) = [line["event"] for line in lines if "event" in line and line["event"]["kind"] == "REPORTED"]
    assert reported["detail"]["files"] == {each["name"]: each["sha256"] for each in manifest["files"]}
    assert kinds.index("AUDITED") < kinds.index("REPORTED") < kinds.index(manifest["custodySeal"])


def test_hashes_in_the_log_cannot_be_guessed_without_the_key(database, clock, evidence, tmp_path):
    withdraw(database, evidence, reason="twice", withdrawn_by="ana", approved_by="rui", clock=clock)
    export_log(database, tmp_path / "log.jsonl", clock, KEYS)
    assert verify_log(tmp_path / "log.jsonl").misfit is None
    (key,) = rows(database, "SELECT object_key FROM evidences")[0]
    text = (tmp_path / "log.jsonl").read_text()
    for known in (key, "ana", "rui", "twice"):
        assert hashlib.sha256(known.encode()).hexdigest() not in text


def test_a_new_key_seals_what_follows_and_a_lost_one_is_named(database, clock, evidence, tmp_path):
    withdraw(database, evidence, reason="twice", withdrawn_by="ana", approved_by="rui", clock=clock)
    both = LogKeys(("n" * 32, *KEYS.keys))
    seal_events(database, clock, both)
    export_log(database, tmp_path / "log.jsonl", clock, both)
    assert verify_log(tmp_path / "log.jsonl").misfit is None
    assert rows(database, "SELECT count(DISTINCT key_id) FROM audit.custody_seals") == [(2,)]
    with pytest.raises(InvalidInput, match=f"Seal 1 of the custody log was made with the key {KEYS.newest}"):
        export_log(database, tmp_path / "log.jsonl", clock, LogKeys(("n" * 32,)))


def test_after_a_restore_into_another_cluster_the_log_goes_on_in_a_new_epoch(database, clock, evidence, tmp_path):
    """The numbers of transactions of the former cluster were higher by a million."""
    unguarded(database, "custody_events", "UPDATE audit.custody_events SET transaction = transaction + 1000000")
    unguarded(
        database, "custody_seals", "UPDATE audit.custody_seals SET last_transaction = last_transaction + 1000000"
    )
    unguarded(database, "custody_epochs", "UPDATE audit.custody_epochs SET cluster = 1")
    withdraw(database, evidence, reason="twice", withdrawn_by="ana", approved_by="rui", clock=clock)
    assert rows(database, "SELECT kind, epoch FROM audit.custody_events ORDER BY epoch, transaction, id")[-2:] == [
        ("EPOCH_OPENED", 2),
        ("WITHDRAWN", 2),
    ]
    before = rows(database, "SELECT count(*) FROM audit.custody_seals WHERE last_epoch = 1")
    seal_events(database, clock, KEYS)
    export_log(database, tmp_path / "log.jsonl", clock, KEYS)
    assert before != [(0,)]
    assert verify_log(tmp_path / "log.jsonl").misfit is None
    assert '"EPOCH_OPENED"' in (tmp_path / "log.jsonl").read_text()


def test_seals_whose_times_run_backwards_are_named(database, clock, evidence, tmp_path):
    withdraw(database, evidence, reason="twice", withdrawn_by="ana", approved_by="rui", clock=clock)
    clock.now -= timedelta(days=9000)
    seal_events(database, clock, KEYS)
    export_log(database, tmp_path / "log.jsonl", clock, KEYS)
    assert "the clock ran backwards" in str(verify_log(tmp_path / "log.jsonl").misfit)


def test_a_log_that_was_sealed_anew_after_a_report_is_told(database, clock, evidence, tmp_path):
    execute(
        database,
        "INSERT INTO audit.custody_events (kind, happened_at, detail) SELECT 'REPORTED', now(), "
        "jsonb_build_object('files', jsonb_build_object(), 'seal', max(hash)) FROM audit.custody_seals",
    )
    unguarded(database, "custody_seals", "DELETE FROM audit.custody_seals")
    clock.now += timedelta(seconds=1)
    seal_events(database, clock, KEYS)
    export_log(database, tmp_path / "log.jsonl", clock, KEYS)
    assert "the log was sealed anew" in str(verify_log(tmp_path / "log.jsonl").misfit)


def test_a_log_that_was_cut_off_at_a_seal_is_told_by_a_kept_one_and_never_taken_for_whole_without(
    run, database, bucket, clock, evidence, tmp_path, environ
):
    path = tmp_path / "log.jsonl"
    withdraw(database, evidence, reason="twice", withdrawn_by="ana", approved_by="rui", clock=clock)
    seal_events(database, clock, KEYS)
    newest = export_log(database, path, clock, KEYS)
    assert newest is not None
    run("verify", path, "--seal", newest.hash, within=environ)
    assert "not known" in run("verify", path, ends=3, within=environ).out
    # Cut off: the file at its first seal, the tables behind it.
    lines = path.read_text().splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if "seal" in json.loads(line))
    path.write_text("".join(lines[: first + 1]))
    run("verify", path, "--seal", newest.hash, ends=3, within=environ)
    run("verify", path, ends=3, within=environ)
    path.write_text("")
    run("verify", path, ends=3, within=environ)
