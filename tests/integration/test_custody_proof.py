"""The custody log proves tables and reports, across clusters, and without personal data."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.conftest import Run
from tests.integration.evidence_bytes import pdf
from tests.integration.uploaded_sales import add_sale, rows
from toolkit.domain.custody_events import CustodyEvent
from toolkit.domain.log_keys import LogKeys
from toolkit.entrypoints.cli import main
from toolkit.errors import InvalidInput
from toolkit.operations.judge.withdrawal import withdraw
from toolkit.operations.observe.bucket_sync import sync_bucket
from toolkit.operations.prove.custody_log.export import export_log
from toolkit.operations.prove.custody_log.live import verify_live
from toolkit.operations.prove.custody_log.sealing import seal_events
from toolkit.operations.prove.custody_log.verification import verify_log
from toolkit.operations.request.single import UploadLimits, request_upload
from toolkit.operations.verify.contents.verification import verify_contents
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database

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
def evidence(database: Database, bucket: Bucket, s3: Any, clock: Any) -> Any:
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
def environ(embedded_environment: dict[str, str]) -> dict[str, str]:
    """The environment of the commands, with the key of the log."""
    return embedded_environment | {"TOOLKIT_LOG_KEY": KEYS.keys[0]}


def differences(database: Database) -> list[tuple[str, str]]:
    return [(difference.what, difference.id) for difference in verify_live(database, KEYS).differences]


def test_the_enumeration_holds_exactly_the_kinds_that_python_and_the_triggers_record(database: Database) -> None:
    sources = [
        source
        for (source,) in rows(
            database, "SELECT prosrc FROM pg_proc WHERE pronamespace = 'audit'::regnamespace AND prokind = 'f'"
        )
        if "custody_events" in source
    ]
    recorded = set(re.findall(r"'([A-Z]{4,}(?:_[A-Z]+)*)'", " ".join(sources))) - {"UTF8"}
    assert recorded <= set(CustodyEvent)
    by_python = {"ASKED", "ISSUED", "REISSUED", "COMPLETED", "REPORTED", "UNMASKED"}
    assert set(CustodyEvent) == recorded | by_python


def test_tables_that_are_as_they_were_told_of_agree(database: Database, evidence: Any) -> None:
    assert differences(database) == []


def test_a_record_that_was_moved_to_another_sale_is_found(
    database: Database, bucket: Bucket, clock: Any, evidence: Any
) -> None:
    execute(database, "UPDATE evidences SET sale_id = 'sale-2'")
    assert differences(database) == [("record", str(evidence))]
    sync_bucket(database, bucket, clock=clock)  # which observes the change, and does not mend it
    assert differences(database) == [("record", str(evidence))]


@pytest.mark.parametrize(
    ("table", "change", "what"),
    [
        ("object_observations", "UPDATE {} SET gone_at = NULL WHERE gone_at IS NOT NULL", "file"),
        ("object_observations", "UPDATE {} SET gone_at = gone_at + interval '1 day'", "file"),
        ("object_observations", "UPDATE {} SET seen_at = seen_at - interval '1 day'", "file"),
        (
            "object_observations",
            "INSERT INTO {} (key, size, etag, last_modified, seen_at) "
            "SELECT 'a', 1, '', now(), max(seen_at) FROM {}",
            "file",
        ),
        ("audit_runs", "UPDATE {} SET compliant = 1", "audit"),
        ("audit_runs", "INSERT INTO {} SELECT gen_random_uuid(), as_of, ran_at, 0, 0, 0, 0 FROM {}", "audit"),
        ("evidence_observations", "UPDATE {} SET sale_id = 'sale-2' WHERE gone_at IS NOT NULL", "record"),
        ("evidence_observations", "UPDATE {} SET seen_at = seen_at - interval '1 day'", "record"),
        ("sale_observations", "UPDATE {} SET utility_group = 'B' WHERE sale_id = 'sale-3'", "sales"),
        ("sale_observations", "UPDATE {} SET gone_at = seen_at WHERE sale_id = 'sale-2'", "sales"),
        ("sale_observations", "UPDATE {} SET gone_at = NULL WHERE sale_id = 'sale-3'", "sales"),
        ("sale_observations", "DELETE FROM {} WHERE sale_id = 'sale-2'", "sales"),
        (
            "sale_observations",
            "INSERT INTO {} (sale_id, utility_group, created_at, seen_at, gone_at) "
            "SELECT 'sale-4', 'A', now(), max(seen_at), max(seen_at) FROM {}",
            "sales",
        ),
    ],
)
def test_a_history_that_was_changed_is_found(
    database: Database, bucket: Bucket, s3: Any, clock: Any, evidence: Any, table: str, change: str, what: str
) -> None:
    execute(database, "UPDATE evidences SET evidence_type = 'AUT'")  # so that it was changed twice
    add_sale(database, "sale-3")
    sync_bucket(database, bucket, clock=clock)
    clock.now += timedelta(seconds=1)
    execute(database, "UPDATE evidences SET evidence_type = 'KYC'", "DELETE FROM sales WHERE id = 'sale-3'")
    for (key,) in rows(database, "SELECT object_key FROM evidences"):
        s3.delete_object(Bucket=bucket.name, Key=key)
    sync_bucket(database, bucket, clock=clock)
    execute(database, "INSERT INTO audit.audit_runs SELECT gen_random_uuid(), now(), now(), 1, 0, 1, 0")
    assert {name for name, _ in differences(database)} <= {"record"}  # of which the log holds another type
    before = verify_live(database, KEYS).differences
    unguarded(database, table, change.format(*[f"audit.{table}"] * 2))
    assert {each.what for each in verify_live(database, KEYS).differences if each not in before} == {what}


def test_contents_withdrawals_and_completions_that_were_changed_are_found(
    database: Database, clock: Any, evidence: Any
) -> None:
    withdraw(database, evidence, reason="twice", withdrawn_by="ana", approved_by="rui", clock=clock)
    assert differences(database) == []
    unguarded(database, "withdrawals", "UPDATE audit.withdrawals SET approved_by = 'eva'")
    assert {what for what, _ in differences(database)} == {"withdrawal"}
    unguarded(database, "withdrawals", "DELETE FROM audit.withdrawals")
    assert differences(database) == [("withdrawal", str(evidence))]
    unguarded(
        database, "content_checks", "UPDATE audit.content_checks SET problem = 'EMPTY' WHERE sha256 IS NOT NULL"
    )
    assert {what for what, _ in differences(database)} == {"withdrawal", "content"}
    execute(
        database,
        "INSERT INTO audit.custody_events (kind, happened_at, detail) VALUES ('COMPLETED', now(), "
        "jsonb_build_object('sale', encode(sha256('sale-1'), 'hex')))",
    )
    assert "sale" in {what for what, _ in differences(database)}


def test_a_sale_that_was_changed_is_found_until_it_is_observed(
    database: Database, bucket: Bucket, clock: Any, evidence: Any
) -> None:
    execute(database, "UPDATE sales SET is_client_financial_responsible = NOT is_client_financial_responsible")
    assert differences(database) == [("sale", "sale-1"), ("sale", "sale-2")]
    sync_bucket(database, bucket, clock=clock)
    assert differences(database) == []


def test_a_record_whose_events_were_cut_off_is_found(database: Database, evidence: Any) -> None:
    unguarded(database, "custody_events", "DELETE FROM audit.custody_events WHERE detail ? 'evidence'")
    unguarded(database, "custody_seals", "DELETE FROM audit.custody_seals")
    assert differences(database) == [("record", str(evidence))]


def test_an_event_or_a_seal_that_was_changed_is_found(database: Database, evidence: Any) -> None:
    unguarded(
        database, "custody_events", "UPDATE audit.custody_events SET happened_at = '2001-01-01' WHERE id = 1"
    )
    assert ("event", "1") in differences(database)


def test_the_command_ends_with_3_where_the_tables_differ(
    run: Run, database: Database, evidence: Any, environ: dict[str, str], tmp_path: Path
) -> None:
    said = run("verify", "--live", ends=3, within=environ).out
    assert "not known   whether the log was cut off at a seal" in said
    run("evidence", "log", "--out", tmp_path / "log.jsonl", within=environ)
    run("verify", "--live", within=environ)
    execute(database, "UPDATE evidences SET sale_id = 'sale-2'")
    said = run("verify", "--live", ends=3, within=environ).out
    assert f"record      {evidence}: is not as it was issued" in said
    run("verify", ends=2, within=environ)


def test_a_report_is_in_the_log_under_the_seal_that_it_carries(
    database: Database, evidence: Any, environ: dict[str, str], tmp_path: Path
) -> None:
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


def test_hashes_in_the_log_cannot_be_guessed_without_the_key(
    database: Database, clock: Any, evidence: Any, tmp_path: Path
) -> None:
    withdraw(database, evidence, reason="twice", withdrawn_by="ana", approved_by="rui", clock=clock)
    export_log(database, tmp_path / "log.jsonl", clock, KEYS)
    assert verify_log(tmp_path / "log.jsonl").misfit is None
    (key,) = rows(database, "SELECT object_key FROM evidences")[0]
    text = (tmp_path / "log.jsonl").read_text()
    for known in (key, "ana", "rui", "twice"):
        assert hashlib.sha256(known.encode()).hexdigest() not in text


def test_a_new_key_seals_what_follows_and_a_lost_one_is_named(
    database: Database, clock: Any, evidence: Any, tmp_path: Path
) -> None:
    withdraw(database, evidence, reason="twice", withdrawn_by="ana", approved_by="rui", clock=clock)
    both = LogKeys(("n" * 32, *KEYS.keys))
    seal_events(database, clock, both)
    export_log(database, tmp_path / "log.jsonl", clock, both)
    assert verify_log(tmp_path / "log.jsonl").misfit is None
    assert rows(database, "SELECT count(DISTINCT key_id) FROM audit.custody_seals") == [(2,)]
    with pytest.raises(InvalidInput, match=f"Seal 1 of the custody log was made with the key {KEYS.newest}"):
        export_log(database, tmp_path / "log.jsonl", clock, LogKeys(("n" * 32,)))


def test_after_a_restore_into_another_cluster_the_log_goes_on_in_a_new_epoch(
    database: Database, clock: Any, evidence: Any, tmp_path: Path
) -> None:
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
    assert differences(database) == []


def test_seals_whose_times_run_backwards_are_named(
    database: Database, clock: Any, evidence: Any, tmp_path: Path
) -> None:
    withdraw(database, evidence, reason="twice", withdrawn_by="ana", approved_by="rui", clock=clock)
    clock.now -= timedelta(days=9000)
    seal_events(database, clock, KEYS)
    export_log(database, tmp_path / "log.jsonl", clock, KEYS)
    assert "the clock ran backwards" in str(verify_log(tmp_path / "log.jsonl").misfit)
    assert ("seal", "2") in differences(database)


def test_a_log_that_was_sealed_anew_after_a_report_is_told(
    database: Database, clock: Any, evidence: Any, tmp_path: Path
) -> None:
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
    assert [how for how in verify_live(database, KEYS).differences if "sealed anew since" in how.how]


def test_a_log_that_was_cut_off_at_a_seal_is_told_by_a_kept_one_and_never_taken_for_whole_without(
    run: Run,
    database: Database,
    bucket: Bucket,
    clock: Any,
    evidence: Any,
    tmp_path: Path,
    environ: dict[str, str],
) -> None:
    path = tmp_path / "log.jsonl"
    withdraw(database, evidence, reason="twice", withdrawn_by="ana", approved_by="rui", clock=clock)
    seal_events(database, clock, KEYS)
    newest = export_log(database, path, clock, KEYS)
    assert newest is not None
    for whole, command in ((0, [str(path)]), (0, ["--live"])):
        run("verify", *command, "--seal", newest.hash, ends=whole, within=environ)
    assert "not known" in run("verify", path, ends=3, within=environ).out
    # Cut off: the file at its first seal, the tables behind it.
    lines = path.read_text().splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if "seal" in json.loads(line))
    path.write_text("".join(lines[: first + 1]))
    run("verify", path, "--seal", newest.hash, ends=3, within=environ)
    run("verify", path, ends=3, within=environ)
    unguarded(database, "custody_seals", "DELETE FROM audit.custody_seals WHERE number > 1")
    run("verify", "--live", "--seal", newest.hash, ends=3, within=environ)
    unguarded(database, "custody_seals", "DELETE FROM audit.custody_seals")
    assert "the log holds no seal yet" in run("verify", "--live", ends=3, within=environ).out
    # The next export seals anew, and the seal that was kept here shows it all the same.
    run("evidence", "log", "--out", path, within=environ)
    assert f"{newest.hash}: is not here" in run("verify", "--live", ends=3, within=environ).out
    run("verify", "--live", "--seal", path.read_text()[-68:-4], within=environ)
    run("verify", "--live", within=environ)
    path.write_text("")
    run("verify", path, ends=3, within=environ)
