"""The HTTP interface while its database or bucket is killed, away, or holds its threads; and how it ends."""

import os
import queue
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from unittest.mock import Mock

import pytest

from tests.contract.conftest import issue, partner_of
from tests.support.raw_http import in_process
from tests.support.request_bodies import CLIENT, UPLOAD
from tests.support.served_process import SECRET, serving
from tests.support.uploaded_sales import add_record, add_sale, execute, rows
from tests.support.waiting import PATIENCE, listens, sessions_waiting, wait_until
from toolkit import embedded
from toolkit.bucket.client import Bucket
from toolkit.database import schema
from toolkit.database.connection import Database
from toolkit.errors import DatabaseError, DatabaseUnavailable
from toolkit.http import app, logs
from toolkit.kit.services import Services

END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'"
RENAME = "ALTER DATABASE {} RENAME TO {}"
KEY = {"TOOLKIT_JWT_SECRET": SECRET, "TOOLKIT_QUOTA_OPEN_FORMS": "1000000"}


@pytest.fixture
def environ(embedded_environment):
    """A fresh database, a fresh bucket, and a key for tokens."""
    return {**embedded_environment, **KEY}


def is_away(answer):
    """Tell whether it is a complete 503."""
    if answer.status_code != 503:
        return False
    assert int(answer.headers["retry-after"]) > 0
    assert answer.json()["code"] == 503
    return True


@contextmanager
def asking(partner, callers):
    """Some callers at once who register a client; the answers as they come, all of them at the end."""
    answers = []
    with ThreadPoolExecutor(callers) as threads:
        for _ in range(callers):
            threads.submit(lambda: answers.append(partner.post("/clients", json=CLIENT)))
        yield answers


def test_a_registration_that_a_killed_database_breaks_off_is_answered_as_not_done(own_home, bucket_environment):
    own = {"TOOLKIT_HOME": str(own_home), "DATABASE_URL": embedded.database_url(own_home)}
    environ = {**bucket_environment, **KEY, **own}
    with Database(environ["DATABASE_URL"]) as database:
        schema.upgrade(database, service_tables=True)
        with serving(environ) as server, partner_of(server.url, issue(environ)) as partner:
            with pytest.raises(DatabaseUnavailable), locked(database), asking(partner, 3) as answers:
                wait_until(lambda: sessions_waiting(database) == 3)
                os.kill(embedded.running(own_home)[0].process.pid, signal.SIGKILL)
            assert [is_away(answer) for answer in answers] == [True] * 3
            embedded.database_url(own_home)
            wait_until(lambda: partner.post("/clients", json=CLIENT).status_code == 200)
        addressed = "SELECT count(*), count(client_id) FROM clients LEFT JOIN addresses ON client_id = clients.id"
        assert rows(database, addressed) == [(1, 1)]


def test_the_services_may_be_away_at_the_start_and_killed_and_started_under_a_running_server(own_home):
    environ = {**KEY, "TOOLKIT_HOME": str(own_home)}
    application = Services(environ)
    add_sale(application.database, "VND-1")
    application.close()
    bucket = embedded.bucket_access(own_home)
    environ |= {"DATABASE_URL": embedded.database_url(own_home)}
    embedded.stop(own_home)
    with serving(environ) as server, partner_of(server.url, issue(environ)) as partner:

        def upload():
            return partner.put("/sales/VND-1/evidences", json=UPLOAD)

        def not_ready(database, bucket):
            answer = partner.get("/ready")
            assert is_away(answer)
            assert (answer.json()["database"], answer.json()["bucket"]) == (database, bucket)

        assert server.logged("away")["error"] == "DatabaseUnavailable"
        assert partner.get("/health").status_code == 200
        assert is_away(upload())
        embedded.database_url(own_home)
        wait_until(lambda: upload().status_code == 200)
        assert partner.get("/ready").status_code == 200
        assert server.logged("request", status=503, method="PUT")["reason"] == "DatabaseUnavailable"

        os.kill(embedded.running(own_home)[1].process.pid, signal.SIGKILL)
        wait_until(lambda: is_away(upload()))
        assert partner.post("/clients", json=CLIENT).status_code == 200
        not_ready("ok", "unavailable")
        embedded.stop(own_home)
        wait_until(lambda: is_away(partner.post("/clients", json=CLIENT)))
        assert not any(embedded.running(own_home))
        embedded.database_url(own_home)
        assert embedded.bucket_access(own_home) == bucket
        wait_until(lambda: upload().status_code == 200)


def test_who_finds_no_room_behind_those_that_wait_is_told_at_once(environ, database, monkeypatch):
    for name, value in {"THREADS": 2, "WAITING": 2, "OPERATION_SECONDS": PATIENCE}.items():
        monkeypatch.setattr(app, name, value)
    with in_process(environ) as server, partner_of(server.url, issue(environ)) as partner:
        with locked(database) as lock, asking(partner, 5) as answers:
            wait_until(lambda: answers)
            assert [is_away(answer) for answer in answers] == [True]  # two are served, and two wait
            assert partner.get("/health").status_code == 200
            assert partner.get("/ready").status_code == 200
            lock.close()
        assert [answer.status_code for answer in answers] == [503, 200, 200, 200, 200]


def test_a_database_that_hangs_holds_callers_for_a_while_only(environ, database, monkeypatch):
    for name, value in {"THREADS": 1, "WAITING": 1, "OPERATION_SECONDS": 1}.items():
        monkeypatch.setattr(app, name, value)
    with in_process(environ) as server, partner_of(server.url, issue(environ)) as partner:
        with locked(database), asking(partner, 2) as answers:
            pass
        assert [is_away(answer) for answer in answers] == [True, True]
        wait_until(lambda: partner.post("/clients", json=CLIENT).status_code == 200)
        assert len(rows(database, "SELECT FROM clients")) <= 2  # one had begun; the one in line never ran


def test_an_object_that_the_bucket_does_not_answer_for_holds_no_registration(environ, database, monkeypatch):
    monkeypatch.setattr(app, "THREADS", 1)
    asked, answered = threading.Event(), threading.Event()
    monkeypatch.setattr(Bucket, "head", lambda *_: asked.set() or (answered.wait(PATIENCE) and None))
    add_sale(database)
    add_record(database)
    with in_process(environ) as server, partner_of(server.url, issue(environ)) as partner:
        with ThreadPoolExecutor(1) as thread:
            told = thread.submit(partner.get, "/sales/sale-1/completion")
            assert asked.wait(PATIENCE)
            assert partner.post("/clients", json=CLIENT).status_code == 200
            answered.set()
        assert told.result().json()["mayBeCompleted"] is False


def test_a_sale_that_is_deleted_while_credentials_are_asked_for_is_not_found(environ, database):
    add_sale(database)
    with in_process(environ) as server, partner_of(server.url, issue(environ)) as partner:
        with ThreadPoolExecutor(1) as thread, database.transaction() as connection:
            connection.exec_driver_sql("DELETE FROM sales")
            asked = thread.submit(partner.put, "/sales/sale-1/evidences", json=UPLOAD)
            wait_until(lambda: sessions_waiting(database))
        assert asked.result().status_code == 404


def test_a_server_whose_service_lost_a_column_is_not_ready_and_one_of_another_writes_nothing(environ, database):
    with serving(environ) as server, partner_of(server.url, issue(environ)) as partner:

        def is_ready():
            return partner.get("/ready").status_code == 200

        assert is_ready()
        execute(database, "ALTER TABLE sales RENAME COLUMN utility_group TO grp")
        wait_until(lambda: not is_ready())
        assert partner.get("/ready").json()["database"] == "unavailable"
        assert is_away(partner.get("/sales/sale-1/evidences"))
        line = server.logged("request", status=503, route="/sales/{saleId}/evidences")
        assert '"utility_group" does not exist' in line["reason"]
        execute(database, "ALTER TABLE sales RENAME COLUMN grp TO utility_group")
        wait_until(is_ready)
        execute(database, "INSERT INTO audit.adopted_services (database, name, adopted_at) VALUES (1, '', now())")
        wait_until(lambda: is_away(partner.post("/clients", json=CLIENT)))


def test_other_types_of_columns_and_a_refused_login_are_away_and_no_faults(run, environ, server, database):
    add_sale(database)
    name = database.engine.url.database
    with serving(environ) as served, partner_of(served.url, issue(environ)) as partner:

        def asked():
            return partner.get("/sales/sale-1/evidences")

        assert [schema.check(database) or asked().status_code for _ in range(8)] == [200] * 8  # all is prepared
        execute(database, "ALTER TABLE sales ALTER utility_group TYPE varchar, ALTER partner TYPE varchar")
        first, *others = (is_away(answer := asked()) or answer.status_code for _ in range(3))
        assert first in (True, 200)  # 200: by a connection that had not prepared it
        assert others == [200, 200]
        schema.check(database)
        with server.connect() as connection:
            for sql in f"ALTER DATABASE {name} ALLOW_CONNECTIONS false", END, RENAME:
                connection.exec_driver_sql(sql.format(name, f"{name}_away"))
            assert [is_away(asked()) for _ in range(2)] == [True, True]  # the first one loses its connection
            assert served.logged("request", status=503, reason="LoginRefused")
            assert "There is no such database" in run("serve", "--port", "0", ends=1, within=environ).err
            connection.exec_driver_sql(RENAME.format(f"{name}_away", name))


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_asked_to_end_finishes_what_it_began(environ, database, asked):
    with serving(environ) as server, partner_of(server.url, issue(environ)) as partner:
        with locked(database) as lock, asking(partner, 1) as answers:
            wait_until(lambda: sessions_waiting(database))
            server.process.send_signal(asked)
            wait_until(lambda: not listens(server.port))
            assert server.process.poll() is None
            lock.close()
        assert server.process.wait(PATIENCE) == 0

    assert [answer.status_code for answer in answers] == [200]
    assert rows(database, "SELECT CAST(id AS text) FROM clients") == [(answers[0].json()["clientId"],)]


def test_a_fault_is_a_500_that_tells_nothing(environ, monkeypatch):
    monkeypatch.setattr(app, "register_client", Mock(side_effect=KeyError(CLIENT["cpf"])))
    lines = queue.Queue()
    monkeypatch.setattr(logs, "_lines", lines)
    with in_process(environ) as server, partner_of(server.url, issue(environ)) as partner:
        answer = partner.post("/clients", json=CLIENT)

        assert (answer.status_code, answer.json()["code"]) == (500, 500)
        assert partner.get("/health").status_code == 200
    logged = "".join(lines.queue)
    assert '"event":"fault"' in logged
    assert '"error":"KeyError"' in logged
    assert "app.py" in logged
    assert answer.headers["x-request-id"] in logged
    assert CLIENT["cpf"] not in logged + answer.text
    assert "Traceback" not in logged


def test_the_log_says_why_an_error_of_the_toolkit_is_a_fault():
    assert logs.fault(DatabaseError("The sale is set aside"))["message"] == "The sale is set aside"


def test_a_port_that_is_taken_is_named(run, environ):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        assert f"port {port}" in run("serve", "--port", port, ends=1, within=environ).err


def locked(database):
    """The table of clients is locked to everybody else until this is closed."""
    lock = ExitStack()
    lock.enter_context(database.transaction()).exec_driver_sql("LOCK TABLE clients")
    return lock
