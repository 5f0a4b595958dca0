"""Errors of the database become ours at one boundary; none quotes data, and no password goes where it is read."""

import re
import socket
import threading
from contextlib import contextmanager, suppress

import psycopg
import pytest
import sqlalchemy as sa

from tests.support.waiting import PATIENCE
from toolkit.database.connection import Database, raw
from toolkit.errors import DatabaseError, DatabaseUnavailable


def reason(database, statement):
    with pytest.raises(DatabaseError) as caught, database.transaction() as connection:
        connection.execute(sa.text(statement))
    return f"{type(caught.value).__name__}: {caught.value}"


NOWHERE = "postgresql+psycopg://u:pass-word@127.0.0.1:1/db"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            "",
            r"DatabaseUnavailable: .* 127.0.0.1:1/db does not answer \(conn.*\). Check DATABASE_URL and that the",
        ),
        ("?sslmode=bogus", 'DatabaseError: .* invalid sslmode value: "bogus"'),
        ("?sslmod=require", 'DatabaseError: .* invalid connection option "sslmod"'),
    ],
)
def test_a_server_that_cannot_be_reached_is_named_without_the_password(options, words):
    said = reason(Database(NOWHERE + options), "SELECT 1")
    assert re.match(words, said)
    assert "pass-word" not in said


@pytest.mark.parametrize(
    ("changed", "statement", "words"),
    [
        ({"database": "nowhere"}, "SELECT 1", "There is no such database"),
        ({"username": "stranger"}, "SELECT 1", "refused the login; check DATABASE_URL"),
        ({}, "SELECT CAST('Maria 52998224725' AS uuid)", r"refused a value that does not fit \[22P02\]\."),
        (
            {},
            "INSERT INTO clients (id, cpf) VALUES ('00000000-0000-7000-8000-000000000000', '52998224725')",
            "null value in column",
        ),
        (
            {},
            "SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(300)",
            "broke off: canceling .* Either its adm",
        ),
        ({}, "SET statement_timeout = 1; SELECT pg_sleep(300)", "broke off: canceling .* or it took longer than"),
    ],
)
def test_what_the_server_refuses_is_said_and_no_value_quoted(database, changed, statement, words):
    asked = Database(database.engine.url.set(**changed).render_as_string(hide_password=False))
    said = reason(asked, statement)
    asked.dispose()
    assert re.search(words, said)
    assert "52998224725" not in said


def test_a_connection_that_broke_is_replaced(database):
    with pytest.raises(DatabaseUnavailable), database.transaction() as connection:
        mine = connection.scalar(sa.text("SELECT pg_backend_pid()"))
        with psycopg.connect(raw(connection).info.dsn) as other:
            other.execute("SELECT pg_terminate_backend(%s)", (mine,))
        connection.execute(sa.text("SELECT 1"))
    with database.transaction() as connection:
        assert connection.scalar(sa.text("SELECT 1")) == 1


def test_a_replica_that_is_gone_is_named_by_its_own_variable(run, embedded_environment):
    gone = embedded_environment | {"DATABASE_READ_URL": "postgresql://u:pass-word@127.0.0.1:1/db"}
    for command, ends in (("audit", 1), ("status", 3)):
        said = run(command, ends=ends, within=gone)
        assert "DATABASE_READ_URL" in said.out + said.err
        assert "pass-word" not in said.out + said.err


PASSWORD = "pass-word-7"
CLEARTEXT = b"R" + (8).to_bytes(4, "big") + (3).to_bytes(4, "big")


@contextmanager
def eavesdropper():
    """A server that has no TLS and asks for the password in clear text: its port, and what it was sent."""
    received = bytearray()
    listening = socket.create_server(("127.0.0.1", 0))

    def serve():
        with suppress(OSError):
            while True:
                peer, _ = listening.accept()
                with peer, suppress(OSError):
                    peer.settimeout(PATIENCE)
                    while data := peer.recv(4096):
                        received.extend(data)
                        if PASSWORD.encode() in received:
                            break
                        peer.sendall(b"N" if len(data) == 8 else CLEARTEXT)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listening.getsockname()[1], received
    finally:
        listening.close()


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
