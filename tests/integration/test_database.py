"""Errors of the database become ours at one boundary, and none of them quotes data or a password."""

import psycopg
import pytest
import sqlalchemy as sa

from toolkit.database.connection import Database, raw
from toolkit.database.errors import ErrorTranslation
from toolkit.errors import DatabaseError, DatabaseUnavailable


def reason(database: Database, statement: str) -> str:
    with pytest.raises(DatabaseError) as caught, database.transaction() as connection:
        connection.execute(sa.text(statement))
    return f"{type(caught.value).__name__}: {caught.value}"


def test_nobody_at_the_address():
    said = reason(Database("postgresql+psycopg://u:pass-word@127.0.0.1:1/db"), "SELECT 1")
    assert said.startswith(
        "DatabaseUnavailable: The database at 127.0.0.1:1/db does not answer (connection failed: "
    )
    assert said.endswith("). Check DATABASE_URL and that the server is up.")
    assert "pass-word" not in said


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("sslmode=bogus", 'invalid sslmode value: "bogus"'),
        ("sslmod=require", 'invalid connection option "sslmod"'),
    ],
)
def test_an_option_that_libpq_refuses_is_named(option, words):
    said = reason(Database(f"postgresql+psycopg://u:pass-word@127.0.0.1:1/db?{option}"), "SELECT 1")
    assert said.startswith("DatabaseError: ")
    assert words in said
    assert "pass-word" not in said


def test_a_database_that_is_not_there(database):
    elsewhere = Database(database.engine.url.set(database="nowhere").render_as_string(hide_password=False))
    assert "There is no such database" in reason(elsewhere, "SELECT 1")


def test_a_login_that_is_refused(database):
    stranger = Database(database.engine.url.set(username="stranger").render_as_string(hide_password=False))
    assert "refused the login; check DATABASE_URL" in reason(stranger, "SELECT 1")


def test_a_table_of_another_server_that_does_not_answer(empty_database):
    said = reason(
        empty_database,
        "CREATE EXTENSION postgres_fdw; CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw OPTIONS (port '1');"
        "CREATE USER MAPPING FOR PUBLIC SERVER far OPTIONS (password 'pass-word');"
        "CREATE FOREIGN TABLE far_away (id int) SERVER far; SELECT id FROM far_away",
    )
    assert said.startswith("DatabaseUnavailable: The database at ")
    assert (
        'answers, but not the other server that a table of it stands in: could not connect to server "far"' in said
    )
    assert "pass-word" not in said


def test_a_refused_row_is_not_quoted(database):
    statement = "INSERT INTO clients (id, cpf) VALUES ('00000000-0000-7000-8000-000000000000', '52998224725')"
    refused = reason(database, statement)
    assert "null value in column" in refused
    assert "52998224725" not in refused


def test_a_value_that_does_not_fit_is_not_quoted(database):
    refused = reason(database, "SELECT CAST('Maria 52998224725' AS uuid)")
    assert "refused a value that does not fit [22P02]." in refused
    assert "Maria" not in refused


def test_a_connection_that_broke_is_replaced(database):
    with pytest.raises(DatabaseUnavailable), database.transaction() as connection:
        mine = connection.scalar(sa.text("SELECT pg_backend_pid()"))
        with psycopg.connect(raw(connection).info.dsn) as other:
            other.execute("SELECT pg_terminate_backend(%s)", (mine,))
        connection.execute(sa.text("SELECT 1"))
    with database.transaction() as connection:
        assert connection.scalar(sa.text("SELECT 1")) == 1


def test_a_cancelled_statement_is_told_apart_from_one_that_took_too_long(database):
    told = reason(database, "SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(300)")
    assert "canceling statement due to user request. Its administrator, or another session" in told
    assert "time" not in told
    told = reason(database, "SET statement_timeout = 1; SELECT pg_sleep(300)")
    assert "its administrator allows them by ALTER ROLE ... SET statement_timeout" in told
    other_language = pytest.raises(
        DatabaseError, match="Either somebody cancelled the statement, or it took longer"
    )
    with other_language, ErrorTranslation("example/db", embedded=False, secret=None).translated():
        raise psycopg.errors.QueryCanceled


def test_a_replica_that_is_gone_is_named_by_its_own_variable(run, embedded_environment):
    gone = embedded_environment | {"DATABASE_READ_URL": "postgresql://u:pass-word@127.0.0.1:1/db"}
    for command, ends in (("audit", 1), ("status", 3)):
        said = run(command, ends=ends, within=gone)
        assert "DATABASE_READ_URL" in said.out + said.err
        assert "pass-word" not in said.out + said.err
