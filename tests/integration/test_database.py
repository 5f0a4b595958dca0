"""The database: its errors become ours, its schema is upgraded, and it belongs to one bucket and one service."""

import json
import re
import threading
from contextlib import contextmanager
from pathlib import Path
from select import select
from socketserver import BaseRequestHandler, ThreadingTCPServer

import adbc_driver_postgresql.dbapi as adbc
import psycopg
import pyarrow as pa
import pytest
import sqlalchemy as sa

from tests.conftest import fresh_database
from tests.support.uploaded_sales import add_sale, execute, rows
from tests.support.waiting import wait_until
from toolkit.database import schema, tables
from toolkit.database.belonging import check_replica
from toolkit.database.connection import Database, copy_rows, raw
from toolkit.database.errors import ErrorTranslation, as_psycopg
from toolkit.errors import DatabaseError, DatabaseUnavailable, WrongService
from toolkit.log.merkle import append, leaf_hash, root
from toolkit.log.notes import LogSigner, new_key
from toolkit.log.sealing import seal_events

NOWHERE = "postgresql+psycopg://u:pass-word@127.0.0.1:1/db"

REFUSED = {
    "SELECT CAST('Maria 52998224725' AS uuid)": r"refused a value that does not fit \[22P02\]\.",
    "INSERT INTO clients (id, cpf) VALUES (gen_random_uuid(), '52998224725')": "null value in column",
    "SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(300)": "broke off: canceling .* Either its adm",
    "SET statement_timeout = 1; SELECT pg_sleep(300)": "broke off: canceling .* SET statement_timeout allows",
    "SET LOCAL transaction_timeout = 1; SELECT pg_sleep(300)": r"\?options=-ctransaction_timeout%3D10min in",
    "SET TRANSACTION READ ONLY; DELETE FROM clients": "name the primary, and a role that may write",
}
AWAY = {"database": "There is no such database", "username": "refused the login; check DATABASE_URL"}


@pytest.mark.parametrize(
    ("changed", "statement", "words"),
    [*(({}, *each) for each in REFUSED.items()), *(({name: "other"}, "SELECT 1", AWAY[name]) for name in AWAY)],
)
def test_what_the_server_refuses_is_said_and_no_value_quoted(database, changed, statement, words):
    url = database.engine.url.set(**changed).render_as_string(hide_password=False)
    with pytest.raises(DatabaseError, match=words) as refused, Database(url) as asked:
        execute(asked, statement)
    assert "52998224725" not in str(refused.value)


def test_why_the_server_ended_a_session_is_told_though_that_cannot_be_rolled_back(database):
    ended = "SET idle_in_transaction_session_timeout allows"
    with pytest.raises(DatabaseError, match=ended), database.transaction() as connection:
        connection.exec_driver_sql("CREATE TEMPORARY TABLE listed (size int)")
        connection.exec_driver_sql("SET idle_in_transaction_session_timeout = 100")  # milliseconds
        wait_until(lambda: select([raw(connection)], [], [], 0)[0])
        copy_rows(connection, "listed", pa.table({"size": [1]}))


def test_a_connection_that_broke_is_replaced(database):
    with pytest.raises(DatabaseUnavailable), database.transaction() as connection:
        mine = connection.scalar(sa.text("SELECT pg_backend_pid()"))
        with psycopg.connect(raw(connection).info.dsn) as other:
            other.execute("SELECT pg_terminate_backend(%s)", (mine,))
        connection.execute(sa.text("SELECT 1"))
    assert rows(database, "SELECT 1") == [(1,)]


def test_what_the_arrow_driver_says_when_it_cannot_connect_is_told():
    with pytest.raises(adbc.Error) as caught:
        adbc.connect(NOWHERE.replace("+psycopg", ""))
    told = ErrorTranslation("127.0.0.1:1/db", embedded=False, secret="pass-word")
    with pytest.raises(DatabaseUnavailable, match="Connection refused"), told.translated():
        raise as_psycopg(caught.value.sqlstate, str(caught.value))


PASSWORD = "pass-word-7"
CLEARTEXT = b"R" + (8).to_bytes(4, "big") + (3).to_bytes(4, "big")


@contextmanager
def eavesdropper():
    """A server that has no TLS and asks for the password in clear text: its port, and what it was sent."""
    received = bytearray()

    class Session(BaseRequestHandler):
        def handle(self):
            while PASSWORD.encode() not in received and (data := self.request.recv(4096)):
                received.extend(data)
                self.request.sendall(b"N" if len(data) == 8 else CLEARTEXT)

    with ThreadingTCPServer(("127.0.0.1", 0), Session) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], received
        server.shutdown()


@pytest.mark.parametrize(
    ("options", "is_sent"),
    [
        ("", False),
        ("&sslmode=require", False),
        ("&sslmode=prefer", False),
        ("&sslmode=disable", False),
        ("&require_auth=password", False),
        ("&sslmode=disable&require_auth=password", True),
    ],
)
def test_a_password_is_sent_in_clear_only_where_the_address_says_so(options, is_sent):
    with eavesdropper() as (port, received):
        # The name is that of another machine; this one's address stands in for it.
        url = f"postgresql+psycopg://u:{PASSWORD}@db.example.com:{port}/d?hostaddr=127.0.0.1{options}"
        with pytest.raises(DatabaseError) as refused, Database(url).transaction():
            pass
    assert (PASSWORD.encode() in received) is is_sent
    assert PASSWORD not in str(refused.value)
    if not is_sent:
        assert "Another machine is reached by TLS with a verified certificate" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value", "is_local"),
    [
        ("PGHOST", "db.example.com", True),  # the URL's own counts
        ("PGHOSTADDR", "127.0.0.1", True),
        ("PGHOSTADDR", "192.0.2.7", False),
        ("PGHOSTADDR", "127.0.0.1,192.0.2.7", False),
        ("PGSERVICE", "production", False),
    ],
)
def test_where_the_environment_leads_to_another_machine_tls_is_demanded(monkeypatch, name, value, is_local):
    monkeypatch.setenv(name, value)
    asked = Database("postgresql+psycopg://u@localhost/d").engine.url.query
    assert (asked.get("sslmode") != "verify-full") is is_local


def parts(dump):
    """The lines of each statement, in any order; names of constraints that only demand a value may be older."""
    statements = re.sub(r" CONSTRAINT \w+ NOT NULL", " NOT NULL", dump.decode()).split(";\n")
    return {frozenset(line.strip(" ,") for line in each.splitlines()) for each in statements}


@pytest.fixture
def older(empty_database):
    """A database of the oldest schema that is upgraded, with a row in it."""
    with empty_database.transaction() as connection:
        tables.service.create_all(connection)
        raw(connection).execute((Path(__file__).parents[1] / "data" / "schema_0035.sql").read_bytes())
    return empty_database


def test_an_older_database_becomes_like_a_new_one_and_keeps_its_history(older, database, postgres_tool):
    names = "evidence_id, sale_id, evidence_type, requested_at, seen_at, gone_at"
    seen = f"INSERT INTO audit.evidence_observations ({names})"
    execute(
        older,
        f"{seen} SELECT gen_random_uuid(), 'S-1', 'POV', now(), '2026-01-02', '2026-02-01'",
        f"{seen} SELECT evidence_id, 'S-2', 'POV', now(), '2026-02-01', NULL FROM audit.evidence_observations",
        "INSERT INTO audit.withdrawals SELECT evidence_id, 'r', 'a', 'b', '2026-01-09' "
        "FROM audit.evidence_observations WHERE sale_id = 'S-1'",
    )
    schema.upgrade(older)
    assert rows(older, "SELECT sale_id, reason FROM audit.withdrawals") == [("S-1", "r")]
    old, new = (
        parts(postgres_tool("pg_dump", "--schema-only", "--restrict-key=x", of=each)) for each in (older, database)
    )
    assert old - new == set()
    assert new - old == set()
    assert rows(older, "SELECT sale_id FROM audit.sale_observations") == [("S-1",)]


def test_the_chain_of_an_older_log_ends_in_the_first_entry_of_the_tree(older):
    execute(
        older,
        "INSERT INTO audit.custody_seals "
        "(number, sealed_at, events, last_transaction, last_id, digests, previous, hash) "
        "VALUES (3, '2026-03-02T12:00:00Z', 0, 0, 0, '', repeat('0', 64), repeat('ab', 32))",
    )
    schema.upgrade(older)
    signed = seal_events(older, LogSigner.read("evidence.example.com/custody", new_key(), "the key"))
    entries = [bytes(entry) for (entry,) in rows(older, "SELECT entry FROM audit.log_entries ORDER BY index")]
    [(events,)] = rows(older, "SELECT count(*) FROM audit.custody_events")
    ended = {"kind": "CHAIN_ENDED", "id": 0, "detail": {"hash": "ab" * 32, "seal": 3}}
    assert json.loads(entries[0]) == ended | {"at": "2026-03-02T12:00:00.000000+00:00"}
    assert len(entries) == events + 1
    tiles = append(lambda *_: b"", 0, map(leaf_hash, entries))
    assert root(lambda *place: tiles[place], len(entries)).hex() == signed.root


def test_no_function_finds_names_by_the_search_path_of_a_session(database):
    loose = """
        SELECT proname FROM pg_proc JOIN pg_language ON pg_language.oid = prolang
        WHERE pronamespace = 'audit'::regnamespace AND (prosecdef OR lanname = 'plpgsql')
          AND NOT coalesce(proconfig::text, '') ~ 'search_path=pg_catalog'
    """
    assert rows(database, loose) == []


def test_history_is_never_rewritten_or_emptied(database):
    guarded = "SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname IN ('append_only', 'closed_once')"
    history = {table.fullname for table in (*tables.APPEND_ONLY, *tables.CLOSED_ONCE)}
    assert history <= {name for (name,) in rows(database, guarded)}
    for name in history:
        with pytest.raises(DatabaseError, match="are never changed or deleted"):
            execute(database, f"TRUNCATE {name} CASCADE")


def test_another_database_is_no_replica(server, database):
    check_replica(database, database)
    with fresh_database(server) as other, pytest.raises(WrongService, match="is not a replica of the"):
        check_replica(database, other)


def test_a_copy_that_is_older_than_what_was_sealed_is_told_after_it_was_adopted(run, server, database):
    add_sale(database)
    run("bucket", "sync")
    database.dispose()
    with fresh_database(server, database.engine.url.database) as copy:
        run("log", "seal")
        restored = {"DATABASE_URL": copy.engine.url.render_as_string(hide_password=False)}
        assert "run: toolkit db adopt" in run("log", "seal", ends=1, **restored).err
        run("db", "adopt", **restored)
        assert "restored from an older dump" in run("audit", ends=3, **restored).err
        assert "is not sealed" in run("log", "seal", ends=1, **restored).err
        people = ("--by", "Ana", "--approved-by", "Rui")
        run("db", "confirm-restore", "--reason", "disk failure", *people, **restored)
        for _ in range(2):
            run("log", "seal", **restored)


def test_a_dump_restored_in_place_is_told_until_two_people_confirm_it(
    run, database, postgres_tool, add_file, tmp_path
):
    record, _ = add_file(add_sale(database, partner="Sul"), "KYC")
    before = run("-q", "audit", "--json").told["asOf"]
    postgres_tool("pg_dump", "--format=custom", f"--file={tmp_path / 'dump'}")
    people = ["--reason", "of another sale", "--by", "ana", "--approved-by", "bruno"]
    run("evidence", "withdraw", str(record), *people)
    then = run("-q", "audit", "--json", ends=3).told["asOf"]
    postgres_tool("pg_restore", "--clean", "--if-exists", tmp_path / "dump")

    # As after a failover, the same database has another address: the kept seal is filed by its identity.
    url = database.engine.url
    hosts = ["127.0.0.1:1", f"{url.query['host']}:{url.port or 5432}"]  # nobody answers at the first one
    moved = url.update_query_dict({"host": hosts}).render_as_string(hide_password=False)
    assert "restored from an older dump" in run("audit", ends=3, DATABASE_URL=moved).err
    assert "restored from an older dump" in run("audit", ends=3).err
    sealed = run("log", "seal", ends=1)
    assert "is not sealed. The database was restored from an older dump" in sealed.err
    run("report", "--out", tmp_path / "report", "--format", "html,json", "--per-partner")
    for written in (tmp_path / "report").rglob("missing-evidence.*"):
        assert "restored from an older dump" in written.read_text()
    confirm = ("db", "confirm-restore", "--reason", "disk failure", "--by", "Ana")
    assert "two people" in run(*confirm, "--approved-by", "ana", ends=1).err
    run(*confirm, "--approved-by", "Rui")
    assert "no restore to confirm" in run(*confirm, "--approved-by", "Rui", ends=1).err
    run("-q", "audit")
    [(told,)] = rows(database, "SELECT detail FROM audit.custody_events WHERE kind = 'RESTORE_CONFIRMED'")
    assert "Ana" not in str(told)
    assert {"by", "approvedBy", "reason"} <= set(told)
    assert "may be another one than was given then" in run("audit", "--as-of", then, ends=3).err
    assert "may be another one than was given then" in run("changes", "--from", then).err
    assert "restored" not in run("audit", "--as-of", before).err
