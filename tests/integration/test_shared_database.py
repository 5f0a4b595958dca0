"""A database that others own: roles with few rights, a pooler, a replica; work on one sale scans no table."""

import json
import re
import shutil
import signal
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
import sqlalchemy as sa

from tests.benchmarks.made_sales import fill
from tests.conftest import FAST_FOLDER
from tests.support.client_rows import client, write_csv
from tests.support.request_bodies import UPLOAD
from tests.support.uploaded_sales import execute, partner_of, rows
from tests.support.waiting import PATIENCE, free_port, listens, started, wait_until
from toolkit.audit.sale_case import sale_case
from toolkit.cli import main
from toolkit.database import observation_clock, schema, tables
from toolkit.database.connection import Database, raw
from toolkit.database.observations import observe_service
from toolkit.database.schema import As, grants
from toolkit.database.service import evidences, load_service, sales
from toolkit.embedded.postgres import programs
from toolkit.embedded.servers import Account, server_account
from toolkit.embedded.servers import run as run_program
from toolkit.errors import DatabaseError
from toolkit.evidence.completion import complete_sale
from toolkit.evidence.credentials import UploadLimits, request_upload
from toolkit.evidence.records import records_of, withdraw

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


@dataclass(frozen=True)
class Cluster:
    """A running server; ``company`` may do everything in it, and no role needs a password."""

    port: int
    folder: Path
    account: Account
    programs: Path

    def url(self, database, role="company", *, port=None):
        return f"postgresql+psycopg://{role}@127.0.0.1:{port or self.port}/{database}"

    def execute(self, database, *statements):
        with self._connected(database) as connection:
            for statement in statements:
                connection.execute(statement)

    def value(self, database, query, port=None):
        with self._connected(database, port) as connection:
            return connection.execute(query).fetchone()[0]

    def _connected(self, database, port=None):
        return psycopg.connect(self.url(database, port=port).replace("+psycopg", ""), autocommit=True)


@pytest.fixture(scope="module")
def cluster():
    """A new cluster, gone with its data at the end."""
    with tempfile.TemporaryDirectory(prefix="cluster-", dir=FAST_FOLDER) as name:
        folder = Path(name)
        account = server_account(folder)
        account.give(folder)
        made = Cluster(free_port(), folder, account, programs(folder, account))
        options = f"-D {folder}/data -U company -A trust --no-sync -E UTF8"
        run_program([made.programs / "initdb", *options.split()], owner=account.ids)
        with served(made, folder / "data", made.port):
            yield made


@contextmanager
def replica_of(cluster, *settings):
    """A streaming replica of the cluster, with ``name=value`` settings of its own; its port."""
    port = free_port()
    data = cluster.folder / f"replica-{port}"
    options = f"-D {data} -R --no-sync -c fast -h 127.0.0.1 -p {cluster.port} -U company"
    run_program([cluster.programs / "pg_basebackup", *options.split()], owner=cluster.account.ids)
    with served(cluster, data, port, *settings):
        yield port


@contextmanager
def pooler_of(cluster):
    """PgBouncer in transaction mode in front of the cluster, with few server connections; its port."""
    port, settings = free_port(), cluster.folder / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n* = host=127.0.0.1 port={cluster.port} user=company\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        "pool_mode = transaction\ndefault_pool_size = 12\nmax_client_conn = 100\n"
        "ignore_startup_parameters = extra_float_digits\n"
    )
    cluster.account.give(settings)
    with run_by(cluster.account, [PGBOUNCER, settings], lambda: listens(port)):
        yield port


@contextmanager
def served(cluster, data, port, *settings):
    usual = (f"port={port}", "listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off")
    options = [word for setting in (*usual, *settings) for word in ("-c", setting)]
    ready = [cluster.programs / "pg_isready", "-h", "127.0.0.1", "-p", str(port), "-q"]
    command = [cluster.programs / "postgres", "-D", data, *options]
    with run_by(cluster.account, command, lambda: subprocess.run(ready).returncode == 0):
        yield


def run_by(account, command, ready):
    """A server of this account; PostgreSQL and PgBouncer end at once, without waiting for clients."""
    silent = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    owner = dict(zip(("user", "group"), account.ids, strict=True)) | {"extra_groups": []} if account.ids else {}
    return started(command, ready, ends_by=signal.SIGINT, **silent, **owner, cwd="/")


SERVICES = Path(__file__).parents[1] / "data" / "services"
STATEMENTS = SERVICES / "prisma.service.sql"

ROLES = """
    DO $$ DECLARE role text; BEGIN
        FOREACH role IN ARRAY ARRAY['svc', 'toolkit_owner', 'night', 'reader'] LOOP
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN EXECUTE 'CREATE ROLE ' || role; END IF;
            EXECUTE format('ALTER ROLE %I LOGIN', role);
        END LOOP;
    END $$
"""


def company(cluster, statements=None):
    """A database whose tables are the service's; an owner, an operator and a reader have the printed rights."""
    name = f"company_{uuid4().hex}"
    cluster.execute("postgres", f"CREATE DATABASE {name}", ROLES)
    if statements:
        cluster.execute(name, (SERVICES / "prisma.sql").read_text())
    else:
        cluster.execute(name, "GRANT CREATE ON SCHEMA public TO svc")
        with Database(cluster.url(name, "svc")) as service, service.transaction() as connection:
            tables.service.create_all(connection)
            connection.exec_driver_sql(
                "INSERT INTO public.sales (id, utility_group, is_client_financial_responsible, created_at) "
                "SELECT 'S-' || n, 'A', true, now() FROM generate_series(1, 40) AS n"
            )
    with Database(cluster.url(name), service=load_service(statements)) as admin, admin.transaction() as connection:
        roles = (("toolkit_owner", As.OWNER), ("night", As.OPERATOR), ("reader", As.READER))
        owners, *others = [grants(connection, role, purpose) for role, purpose in roles]
    cluster.execute(name, *owners)
    with Database(cluster.url(name, "toolkit_owner"), service=load_service(statements)) as owner:
        schema.upgrade(owner)
    for each in others:
        cluster.execute(name, *each)
    return name


@pytest.fixture
def granted(cluster):
    """A database with the contract's own tables."""
    return company(cluster)


@pytest.fixture
def night(cluster, granted, bucket_environment, tmp_path):
    """The environment of the operator."""
    return {**bucket_environment, "TOOLKIT_HOME": str(tmp_path), "DATABASE_URL": cluster.url(granted, "night")}


def test_the_operator_cannot_rewrite_history(cluster, granted):
    with Database(cluster.url(granted, "night")) as night:
        observe_service(night)
        for statement in (
            "DELETE FROM audit.custody_events",
            "ALTER TABLE audit.custody_events DISABLE TRIGGER ALL",
            "UPDATE audit.sale_observations SET utility_group = 'B'",
        ):
            with pytest.raises(DatabaseError, match=r"permission denied|must be owner"):
                execute(night, statement)


def test_the_owner_erases_and_the_operator_cannot(run, cluster, granted, night):
    run("-q", "audit", ends=3, within=night)
    people = ("--basis", "consent revoked", "--by", "Ana", "--approved-by", "Rui")
    erase = ("privacy", "erase", "--sale", "S-1", *people)
    assert "permission denied" in run(*erase, ends=1, within=night).err
    run("privacy", "replay", "--dry-run", within=night)  # nothing was begun
    run(*erase, within=night | {"DATABASE_URL": cluster.url(granted, "toolkit_owner")})
    assert cluster.value(granted, "SELECT count(*) FROM sales WHERE id = 'S-1'") == 0
    assert cluster.value(granted, "SELECT count(*) FROM audit.erasures") == 1


def test_a_reader_without_temporary_tables_asks_about_the_past(run, cluster, granted, night, tmp_path):
    run("-q", "audit", ends=3, within=night)
    past = ("--as-of", datetime.now(UTC).isoformat(), "--format", "csv")
    cluster.execute(granted, f"REVOKE TEMPORARY ON DATABASE {granted} FROM PUBLIC")
    for role in ("night", "reader"):
        asked = night | {"DATABASE_URL": cluster.url(granted, role)}
        run("-q", "report", *past, "--out", tmp_path / role, within=asked)
    reports = {(tmp_path / role / "missing-evidence.csv").read_bytes() for role in ("night", "reader")}
    assert len(reports) == 1


def test_a_missing_right_is_named_with_its_object(run, cluster, granted, night):
    cluster.execute(granted, "REVOKE SELECT ON public.sales FROM night")
    said = run("audit", ends=1, within=night).err
    assert "permission denied for table sales" in said
    assert "toolkit db grants --help" in said
    cluster.execute(granted, "GRANT SELECT ON public.sales TO night", "REVOKE UPDATE ON public.sales FROM night")
    needed = r"denied for table sales \(the statement needs SELECT, UPDATE\)"
    with pytest.raises(DatabaseError, match=needed), Database(night["DATABASE_URL"]) as database:
        execute(database, "SELECT id FROM sales FOR UPDATE")


def test_a_time_out_of_the_role_is_named_and_may_be_longer_for_the_toolkit(run, cluster, granted, night):
    run("-q", "audit", ends=3, within=night)
    cluster.execute(granted, f"ALTER ROLE reader IN DATABASE {granted} SET statement_timeout = '100ms'")
    past = ["-q", "audit", "--as-of", datetime.now(UTC).isoformat()]
    reading, longer = cluster.url(granted, "reader"), "?options=-cstatement_timeout%3D10min"
    with Database(cluster.url(granted, "toolkit_owner")) as owner, owner.transaction() as connection:
        connection.exec_driver_sql("LOCK audit.evidence_observations")  # so every stream has to wait
        said = run(*past, ends=1, within=night, DATABASE_READ_URL=reading).err
        assert "canceling statement due to statement timeout" in said
        assert f"{longer} in DATABASE_READ_URL or DATABASE_URL" in said
    run(*past, ends=3, within=night, DATABASE_READ_URL=reading + longer)


@pytest.fixture(params=[None, STATEMENTS], ids=["the contract's tables", "another team's"])
def operator(request, cluster, bucket_environment, tmp_path):
    """The environment of the operator, over the contract's own tables and over those of another team."""
    own = {"TOOLKIT_HOME": str(tmp_path), "DATABASE_URL": cluster.url(company(cluster, request.param), "night")}
    return bucket_environment | own | ({"TOOLKIT_SERVICE_SQL": str(request.param)} if request.param else {})


def test_the_printed_rights_are_enough_for_a_night(run, operator, tmp_path):
    run("bucket", "sync", within=operator)
    run("audit", ends=3, within=operator)  # the sales lack evidence
    run("report", "--out", tmp_path / "report", within=operator)
    run("evidence", "verify", within=operator)
    run("clients", "load", write_csv(tmp_path / "clients.csv", map(client, range(3))), within=operator)


@pytest.mark.skipif(PGBOUNCER is None, reason="PgBouncer is not installed")
def test_commands_run_side_by_side_through_a_pooler(cluster, operator, bucket, s3, tmp_path):
    for number in range(20):
        s3.put_object(Bucket=bucket.name, Key=f"evidences/2026/11/20/{uuid4()}/{number}.pdf", Body=b"%PDF-1.4\n")
    file = write_csv(tmp_path / "clients.csv", map(client, range(5)))
    table = '"Client"' if "TOOLKIT_SERVICE_SQL" in operator else "clients"
    known = f"SELECT count(*) FROM {table}"
    name = sa.make_url(operator["DATABASE_URL"]).database
    before = cluster.value(name, known)
    with pooler_of(cluster) as port:
        pooled = operator | {"DATABASE_URL": cluster.url(name, "night", port=port)}
        commands = [["bucket", "sync"], ["evidence", "verify"], ["audit"]] * 3
        commands += [["clients", "load", str(file)], ["db", "check"]]
        with ThreadPoolExecutor(len(commands)) as threads:
            assert set(threads.map(lambda command: main(command, pooled), commands)) <= {0, 3}
    assert cluster.value(name, known) == before + 5


@pytest.mark.skipif(PGBOUNCER is None, reason="PgBouncer is not installed")
def test_a_lock_that_was_waited_for_shows_what_it_guarded_through_a_pooler(cluster, granted):
    """Whatever the role's own isolation: what a session set, the next server behind the pooler does not know."""
    cluster.execute(granted, f"ALTER DATABASE {granted} SET default_transaction_isolation = 'serializable'")
    with pooler_of(cluster) as port, ExitStack() as opened:
        database = opened.enter_context(Database(cluster.url(granted, port=port)))
        sessions = [opened.enter_context(database.transaction()) for _ in range(3)]
        assert {each.scalar(sa.text("SHOW transaction_isolation")) for each in sessions} == {"read committed"}


def test_a_replica_judges_as_its_primary_does(run, cluster, operator, tmp_path):
    run("audit", ends=3, within=operator)
    name = sa.make_url(operator["DATABASE_URL"]).database
    with replica_of(cluster) as port:
        through = operator | {"DATABASE_READ_URL": cluster.url(name, "reader", port=port)}
        assert f"127.0.0.1:{port}/" in run("status", ends=None, within=through).out
        run("report", "--out", tmp_path / "now", "--format", "json,html", within=through)
        past = ("--as-of", datetime.now(UTC).isoformat())
        for place, environ in (("primary", operator), ("replica", through)):
            run("report", *past, "--out", tmp_path / place, "--format", "json", within=environ)
        assert cluster.value("postgres", "SELECT pg_promote()", port)
        assert "is not a replica of the one at" in run("audit", *past, ends=1, within=through).err
    now, ours, theirs = (
        json.loads((tmp_path / place / "missing-evidence.json").read_text())
        for place in ("now", "primary", "replica")
    )
    for each in (now, theirs):
        assert re.fullmatch(rf"127.0.0.1:{port}/\w+, [0-9.]+ s behind", each["source"].pop("replica"))
    assert ours["source"].pop("replica") is None
    assert ours == theirs
    assert now["incomplete"] == ours["incomplete"] > 0
    assert " s behind" in (tmp_path / "now" / "missing-evidence.html").read_text()


def test_a_replica_that_is_behind_judges_no_other_moment(run, cluster, granted, night, monkeypatch):
    run("audit", ends=3, within=night)
    monkeypatch.setattr(observation_clock, "PATIENCE", 0.0)
    with replica_of(cluster, "recovery_min_apply_delay=1h") as port:
        run("audit", ends=3, within=night)
        through = night | {"DATABASE_READ_URL": cluster.url(granted, "reader", port=port)}
        for past in ((), ("--as-of", datetime.now(UTC).isoformat())):
            assert "has seen nothing after" in run("audit", *past, ends=1, within=through).err


def test_what_a_replica_breaks_off_says_what_to_do(cluster, granted):
    """The replica does what its primary does: it locks the table that a session reads."""
    asleep = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    with (
        replica_of(cluster, "max_standby_streaming_delay=0") as port,
        ThreadPoolExecutor(1) as thread,
        Database(cluster.url(granted, "reader", port=port)) as replica,
    ):
        reading = thread.submit(execute, replica, "SELECT pg_sleep(600) FROM audit.observation_clock")
        wait_until(lambda: cluster.value("postgres", asleep, port) or reading.done(), step=0.1)
        cluster.execute(granted, "BEGIN; LOCK audit.observation_clock; COMMIT", "SELECT pg_switch_wal()")
        with pytest.raises(DatabaseError, match=r"conflict with recovery.* or ask the primary"):
            reading.result(PATIENCE)


SALES = 10_000


@pytest.mark.parametrize("sale", ["text", "uuid", "bigint"])
def test_work_on_one_sale_goes_through_no_table(database, bucket, tmp_path, sale):
    """A uuid or a number is an id as well, though the contract's is a text that no index of such a table holds."""
    database.clock = lambda: NOW
    if sale == "text":
        fill(database, SALES)
    else:
        made = "CAST(md5(CAST(n AS text)) AS uuid)" if sale == "uuid" else "n"
        with database.transaction() as connection:
            statements = (SERVICES.parent / "other_ids.sql").read_text("utf-8")
            raw(connection).execute(statements.format(sale=sale, id=made, rows=SALES).encode())
        statements = (SERVICES.parent / "other_ids.service.sql").read_text("utf-8").format(sale=sale)
        if sale != "uuid":  # a number is no place for the id of a new record
            statements = statements.partition("-- name: add_records")[0]
        (tmp_path / "service.sql").write_text(statements, encoding="utf-8")
        url = database.engine.url.render_as_string(hide_password=False)
        database.dispose()
        database = Database(url, database.clock, service=load_service(tmp_path / "service.sql"))
        observe_service(database)
    some = sa.select(sales.c.id).order_by(sales.c.id).offset(SALES // 2).limit(1)
    sale_id = database.run(sa.Connection.scalar, some)
    found = {}
    for name, work in about_one_sale(database, bucket, sale_id).items():
        before = rows_scanned(database)
        work()
        found[name] = {table: read - before.get(table, 0) for table, read in rows_scanned(database).items()}
    database.dispose()
    assert {name: read for name, read in found.items() if max(read.values(), default=0) >= SALES} == {}


NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def rows_scanned(database):
    """The rows of each table that were read by going through the whole of it, as PostgreSQL counts them."""
    database.dispose()  # a server process tells its counts when it ends
    alone = "SELECT FROM pg_stat_activity WHERE datname = current_database()"
    wait_until(lambda: len(rows(database, alone)) == 1)
    return dict(rows(database, "SELECT relid::regclass::text, seq_tup_read FROM pg_stat_user_tables"))


def about_one_sale(database, bucket, sale_id):
    """The work that concerns one sale, or some: it may go through no table, however many sales there are."""
    limits = UploadLimits(300, 1000)
    record = database.run(sa.Connection.scalar, sa.select(evidences.c.id).where(evidences.c.sale_id == sale_id))
    people = {"reason": "sent twice", "withdrawn_by": "ana", "approved_by": "bruno"}
    work = {
        "sale show": lambda: sale_case(database, sale_id),
        "evidence list": lambda: records_of(database, sale_id),
        "sales complete": lambda: complete_sale(database, bucket, sale_id),
        "evidence withdraw": lambda: withdraw(database, record, **people),
    }
    if "add_records" in database.service.statements:  # a number is no place for the id of a new record
        access = partner_of(database, sale_id)
        work["request of credentials"] = lambda: request_upload(database, bucket, sale_id, UPLOAD, access, limits)
    return work
