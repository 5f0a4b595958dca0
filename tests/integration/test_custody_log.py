"""The custody log: told in the transaction of what it tells, sealed later, proven by files alone."""

import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import Mock

import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.conftest import fresh_database
from tests.support.evidence_files import pdf
from tests.support.request_bodies import UPLOAD
from tests.support.uploaded_sales import add_sale, partner_of, rows, unguarded
from toolkit.contract.events import LogKeys
from toolkit.database import schema
from toolkit.errors import LogDiffers
from toolkit.evidence.contents import verify_contents
from toolkit.evidence.credentials import UploadLimits, request_upload
from toolkit.evidence.records import withdraw
from toolkit.log import export, sealing
from toolkit.log.export import export_tiles
from toolkit.log.merkle import leaf_hash
from toolkit.log.notes import Checkpoint, LogSigner
from toolkit.log.sealing import seal_events

KEYS = LogKeys(("k" * 32,))
SIGNER = LogSigner("evidence.example.com/custody", Ed25519PrivateKey.from_private_bytes(b"\x01" * 32))


@pytest.fixture
def tell(database):
    return lambda count, **event: database.run(_tell, count, **event)


def _tell(connection, count, *, kind="TOLD", day="2026-03-02"):
    connection.exec_driver_sql(
        "INSERT INTO audit.custody_events (kind, happened_at, detail) "
        f"SELECT '{kind}', '{day}', jsonb_build_object('said', n) FROM generate_series(1, {count}) AS n"
    )


@pytest.fixture
def seal(database):
    return lambda: seal_events(database, SIGNER, KEYS)


def entries(database):
    return [json.loads(entry) for (entry,) in rows(database, "SELECT entry FROM audit.log_entries ORDER BY index")]


def test_everything_that_happens_to_a_file_is_told(database, bucket, put, sync, clock):
    access = replace(partner_of(database, add_sale(database)), subject="Rui Lima")
    clock.now = datetime.now(UTC)  # forms are signed for real
    body = UPLOAD | {"fileName": "Ana Souza.pdf"}
    issued = request_upload(database, bucket, "sale-1", body, access, UploadLimits(3600, 1_000_000))
    put(issued.fields["key"], pdf(1))
    sync()
    verify_contents(database, bucket)
    put(issued.fields["key"], pdf(2))
    sync()
    withdraw(database, issued.id, reason="x", withdrawn_by="Ana Souza", approved_by="Rui Lima")
    told = rows(database, "SELECT kind, detail FROM audit.custody_events ORDER BY transaction, id")
    kinds = "ASKED ISSUED SALES_OBSERVED UPLOADED VERIFIED GONE UPLOADED WITHDRAWN"
    assert " ".join(kind for kind, _ in told) == kinds
    details = [detail for _, detail in told]
    assert {details[place]["evidence"] for place in (0, 1, 7)} == {str(issued.id)}
    assert details[3]["key"] == details[5]["key"] == details[6]["key"]
    assert not any(name in json.dumps(told) for name in ("Ana", "Rui", ".pdf", "evidences/"))


def test_an_audit_is_made_and_sealed_in_a_database_of_an_older_encoding(
    run, server, put, bucket_environment, tmp_path
):
    put("evidences/2026/03/02/x/ação ✓.pdf", pdf(1))
    with fresh_database(server, "template0 ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C'") as database:
        schema.upgrade(database, service_tables=True)
        add_sale(database, partner="Conexão")
        url = database.engine.url.render_as_string(hide_password=False)
        around = {**bucket_environment, "TOOLKIT_HOME": str(tmp_path), "DATABASE_URL": url}
        assert "1 of 1 sale lacks evidence" in run("audit", ends=3, within=around).out
        assert "\n— evidence-toolkit/custody " in run("log", "checkpoint", within=around).out
        assert "There is no sale with the id" in run("sale", "show", "V-😀", ends=1, within=around).err


def test_events_are_sealed_once_by_transaction_when_no_older_one_tells_another(database, tell, seal, monkeypatch):
    monkeypatch.setattr(sealing, "BATCH", 1)
    tell(1)
    seal()
    with database.transaction() as slow:
        _tell(slow, 1)
        tell(1)
        assert seal().size == 1  # waits for nobody
        _tell(slow, 1)
    assert seal().size == 4
    assert [each["id"] for each in entries(database)] == [1, 2, 4, 3]


def test_transactions_of_another_database_keep_no_event_out(database, tell, seal):
    address = database.engine.url.set(drivername="postgresql", database="postgres")
    loop = "DO $$ BEGIN FOR n IN 1..100000000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$"

    def work(connection):
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(loop)

    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor())
        for _ in range(3):
            elsewhere = psycopg.connect(address.render_as_string(hide_password=False), autocommit=True)
            stack.callback(pool.submit(work, stack.enter_context(elsewhere)).result)
            stack.callback(elsewhere.cancel)
        for size in range(1, 101):
            tell(1)
            assert seal().size == size


def test_a_tree_that_is_not_what_was_signed_is_sealed_no_more(database, tell, seal):
    tell(3)
    seal()
    unguarded(database, "log_tiles", "UPDATE audit.log_tiles SET hashes = decode(repeat('00', 96), 'hex')")
    tell(1)
    with pytest.raises(LogDiffers, match="not the one that was signed at 3 entries"):
        seal_events(database, SIGNER, KEYS)
    # Nor where another key signed it as it is now.
    other = LogSigner(SIGNER.name, Ed25519PrivateKey.generate())
    note = Checkpoint(SIGNER.name, 3, sealing.root(lambda *_: bytes(96), 3)).signed_by([other])
    unguarded(database, "log_checkpoints", f"UPDATE audit.log_checkpoints SET note = '{note}'")
    with pytest.raises(LogDiffers, match="not the one that was signed at 3 entries"):
        seal_events(database, SIGNER, KEYS)


def test_the_log_is_written_as_tiles_that_others_read(database, tell, seal, tmp_path, monkeypatch):
    tell(600)
    signed = seal()
    with monkeypatch.context() as changed:
        changed.setattr(export, "computed", Mock(side_effect=OSError(28, "No space left on device")))
        with pytest.raises(OSError, match=f"No space left on device: '{tmp_path / 'log'}'"):
            export_tiles(database, tmp_path / "log", KEYS)
    written, misfit = export_tiles(database, tmp_path / "log", KEYS)
    assert (written.root, misfit) == (signed.root, None)
    tile = tmp_path / "log" / "tile"
    files = {path.relative_to(tile).as_posix() for path in tile.rglob("*") if path.is_file()}
    whole = {f"{level}/{number}" for level in ("0", "entries") for number in ("000", "001", "002.p/88")}
    assert files == whole | {"1/000.p/2"}
    framed, found = (tile / "entries" / "001").read_bytes(), []
    while framed:
        length = int.from_bytes(framed[:2], "big")
        found.append(leaf_hash(framed[2 : 2 + length]))
        framed = framed[2 + length :]
    assert b"".join(found) == (tile / "0" / "001").read_bytes()


NOT_SIGNED = "not those that were signed"


@pytest.mark.parametrize(
    ("table", "change", "told"),
    [
        ("custody_events", "SET kind = 'OTHER' WHERE id = 5", "Event 5 (OTHER) is another"),
        ("custody_events", "SET detail = '7' WHERE id = 3", "Event 3 (TOLD) is another"),
        ("custody_events", "SET kind = 'ERASED' WHERE id = 3", "Event 3 (ERASED) is another"),
        ("custody_events", "WHERE id = 2", "Event 2 is in the log, and no more"),
        ("log_entries", "SET entry = '{}' WHERE index = 0", NOT_SIGNED),
        ("log_entries", "SET entry = '\\xff' WHERE index = 3", NOT_SIGNED),
        ("log_entries", f"SET entry = '{'x' * 65536}'", NOT_SIGNED),
        ("log_entries", f"SET entry = '{'[' * 30_000}'", NOT_SIGNED),
        ("log_entries", "WHERE index = 6", NOT_SIGNED),
        ("log_entries", "WHERE true", NOT_SIGNED),
        ("log_checkpoints", "SET note = 'x'", NOT_SIGNED),
    ],
)
def test_a_change_in_the_database_is_named_by_the_next_export(database, tell, seal, tmp_path, table, change, told):
    tell(7)
    seal()
    begins = "UPDATE" if change.startswith("SET") else "DELETE FROM"
    unguarded(database, table, f"{begins} audit.{table} {change}")
    signed, misfit = export_tiles(database, tmp_path / "log", KEYS)
    assert told in str(misfit)
    assert len(signed.root) in {0, 64}


def test_a_clock_that_was_turned_back_is_named_by_the_next_export_and_by_its_files(
    run, database, tell, seal, tmp_path
):
    for day in ("2026-03-03", "2026-03-02"):
        tell(1, kind="REPORTED", day=day)
    seal()
    told = "Event 2 says an earlier time than a report before it"
    log = tmp_path / "log"
    assert told in str(export_tiles(database, log, KEYS)[1])
    check = ("log", "consistency", log / "checkpoint", log / "checkpoint", "--log", log)
    assert told in run(*check, ends=3, within={}).out
    [entries] = (log / "tile" / "entries" / "000.p").iterdir()
    kept = entries.read_bytes()
    for forged in (
        kept.replace(b"2026-03-02", b"2026-03-04"),
        re.sub(rb"2026-03-02T..:..", b"9999-12-31T23:59", kept),
    ):
        entries.write_bytes(forged)
        assert "The entries are not those that were signed" in run(*check, ends=3, within={}).out


def test_after_a_restore_into_another_cluster_the_log_goes_on_in_a_new_epoch(database, tell, seal):
    """The numbers of transactions of the former cluster were higher by a million."""
    tell(1)
    seal()
    unguarded(database, "custody_events", "UPDATE audit.custody_events SET transaction = transaction + 1000000")
    unguarded(database, "log_entries", "UPDATE audit.log_entries SET transaction = transaction + 1000000")
    unguarded(database, "custody_epochs", "UPDATE audit.custody_epochs SET cluster = 1")
    tell(1)
    assert seal().size == 3
    assert [each["kind"] for each in entries(database)] == ["TOLD", "EPOCH_OPENED", "TOLD"]


CUT, TWO = "its end was cut off", "they are of two histories"
REWRITTEN = {
    "edited": (lambda lines: [lines[0].replace(b"TOLD", b"GONE"), *lines[1:]], TWO, "Entry 1 says something else"),
    "inserted": (lambda lines: [*lines[:2], b"{}", *lines[2:]], TWO, "Entry 3 was not there: it was inserted"),
    "deleted": (lambda lines: [*lines[:2], *lines[3:], b"{}"], TWO, "What was entry 3 is gone: it was deleted"),
    "reordered": (lambda lines: [lines[1], lines[0], *lines[2:]], TWO, "What was entry 1 stands behind others"),
    "cut off": (lambda lines: lines[:4], CUT, CUT),
    "begun again": (lambda lines: [b"{}"], CUT, CUT),
}
"""What somebody with the database and the key of the log makes of its entries, and what a stranger is told who
kept a checkpoint, or the log."""


def test_a_history_that_was_written_and_signed_anew_is_named_without_database(run, database, tell, tmp_path):
    """The stranger kept one checkpoint, and was given the log as files."""
    for name, count in (("early", 3), ("kept", 2)):
        tell(count)
        (tmp_path / name).write_text(run("log", "seal", "--json").told["checkpoint"]["note"])
    run("log", "export", tmp_path / "true")
    early, kept, offline = tmp_path / "early", tmp_path / "kept", {"ends": 3, "within": {}}
    true = ("--log", tmp_path / "true")
    assert run("log", "consistency", early, kept, *true, within={}).out.count("=\n") == 4

    lines = [bytes(entry) for (entry,) in rows(database, "SELECT entry FROM audit.log_entries ORDER BY index")]
    key = (Path(run("status", "--json").told["home"]) / "custody-log.pem").read_bytes()
    signer = LogSigner.read("evidence-toolkit/custody", key, "the key")
    for number, (forge, *told) in enumerate(REWRITTEN.values()):
        folder = forged(tmp_path / str(number), forge(lines), signer)
        for state, sentence in zip((kept, tmp_path / "true" / "checkpoint"), told, strict=True):
            said = run("log", "consistency", state, folder / "checkpoint", "--log", folder, **offline).out
            assert sentence in said
    # Entries beside a checkpoint that are not its own accuse nobody.
    beside = forged(tmp_path / "beside", REWRITTEN["edited"][0](lines), signer)
    shutil.copy(tmp_path / "true" / "checkpoint", beside)
    assert "Entry" not in run("log", "consistency", beside / "checkpoint", kept, *true, within={}).out
    # Two histories that are shown to two people, each signed as it is.
    other = forged(tmp_path / "other", [*lines[:4], b"{}"], signer)
    assert TWO in run("log", "consistency", kept, other / "checkpoint", *true, **offline).out
    # Who has no key of the log says in it that another one replaced it.
    thief = LogSigner(signer.name, Ed25519PrivateKey.generate())
    detail = {"old": str(signer.verifier), "new": str(thief.verifier), "signature": thief.signature("x\n")}
    replaced = json.dumps({"kind": "KEY_ROTATED", "detail": detail}).encode()
    for name, entries_of in (("key", lines), ("thief", [*lines, replaced])):
        folder = forged(tmp_path / name, entries_of, thief)
        said = run("log", "consistency", kept, folder / "checkpoint", "--log", folder, ends=1, within={}).err
        assert "kept is no checkpoint that the key of this log signed" in said
    shutil.rmtree(tmp_path / "true" / "tile")
    assert (
        "cannot be read as a part of an exported log" in run("log", "consistency", early, kept, *true, ends=1).err
    )


def forged(folder, lines, signer):
    """Write a log as ``export`` does."""
    entries = folder / "tile" / "entries" / "000.p" / str(len(lines))
    entries.parent.mkdir(parents=True)
    entries.write_bytes(b"".join(len(line).to_bytes(2, "big") + line for line in lines))
    whole, _ = export.computed(folder, write=True)
    (folder / "checkpoint").write_text(Checkpoint(signer.name, len(lines), whole).signed_by([signer]))
    (folder / "log.vkey").write_text(f"{signer.verifier}\n")
    return folder
