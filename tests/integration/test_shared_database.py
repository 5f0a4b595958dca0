"""A database that others own: roles with few rights, a pooler that mixes sessions, a server that says no."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from tests.client_rows import client, write_csv
from tests.integration.test_service_maps import GIVE_AWAY, MAPS
from tests.shared_cluster import PGBOUNCER, Cluster, pooler_of, replica_of, running_cluster
from tests.waiting import PATIENCE
from toolkit.entrypoints.cli import main
from toolkit.errors import DatabaseError
from toolkit.operations.observe.service_history import observe_service
from toolkit.storage import schema, tables
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database
from toolkit.storage.grants import As, grants
from toolkit.storage.service_map import load_map

SALES = 40


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as running:
        yield running


@pytest.fixture
def company(cluster: Cluster) -> str:
    """A database whose service tables belong to role ``svc``, with an owner, an operator and a reader of ours."""
    name = f"company_{uuid4().hex}"
    cluster.execute("postgres", f"CREATE DATABASE {name}")
    cluster.execute(
        name,
        "DO $$ BEGIN CREATE ROLE svc LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$",
        f"GRANT CREATE ON SCHEMA public TO svc; GRANT CREATE ON DATABASE {name} TO svc",
        *(
            f"DO $$ BEGIN CREATE ROLE {role} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
            for role in ("toolkit_owner", "night", "reader")
        ),
    )
    service = Database(cluster.url(name, "svc"))
    with service.transaction() as connection:
        tables.service.create_all(connection.execution_options(schema_translate_map={tables.SERVICE: "public"}))
        connection.execute(
            sa.text(
                "INSERT INTO public.sales (id, utility_group, is_client_financial_responsible, created_at) "
                "SELECT 'S-' || n, 'A', true, now() FROM generate_series(1, :sales) AS n"
            ),
            {"sales": SALES},
        )
    service.dispose()
    return name


@pytest.fixture
def granted(cluster: Cluster, company: str) -> str:
    """The same database, upgraded by its owner, with the printed rights granted to the other roles."""
    cluster.execute(company, *grants("toolkit_owner", As.OWNER, database=company))
    owner = Database(cluster.url(company, "toolkit_owner"))
    schema.upgrade(owner)
    owner.dispose()
    cluster.execute(company, *grants("night", As.OPERATOR, database=company))
    cluster.execute(company, *grants("reader", As.READER, database=company))
    return company


def environment(cluster: Cluster, database: str, role: str, bucket: dict[str, str], home: Path) -> dict[str, str]:
    return {**bucket, "TOOLKIT_HOME": str(home), "DATABASE_URL": cluster.url(database, role)}


def test_the_printed_rights_are_enough_for_a_night(
    cluster: Cluster, granted: str, bucket_environment: dict[str, str], tmp_path: Path
) -> None:
    environ = environment(cluster, granted, "night", bucket_environment, tmp_path)
    assert main(["bucket", "sync"], environ) == 0
    assert main(["audit"], environ) == 3  # the sales lack evidence
    assert main(["report", "--out", str(tmp_path / "report")], environ) == 0
    assert main(["evidence", "verify"], environ) == 0


def test_the_operator_cannot_rewrite_history(cluster: Cluster, granted: str) -> None:
    night = Database(cluster.url(granted, "night"))
    observe_service(night, lambda: datetime.now(UTC))
    for statement in (
        "DELETE FROM audit.custody_events",
        "ALTER TABLE audit.custody_events DISABLE TRIGGER ALL",
        "UPDATE audit.sale_observations SET utility_group = 'B'",
    ):
        with (
            pytest.raises(DatabaseError, match=r"permission denied|must be owner"),
            night.transaction() as connection,
        ):
            connection.execute(sa.text(statement))
    night.dispose()


def test_the_operator_may_write_every_table_of_the_toolkit(cluster: Cluster, granted: str) -> None:
    without = (
        "SELECT string_agg(relname, ', ') FROM pg_class WHERE relnamespace = 'audit'::regnamespace "
        "AND relkind IN ('r', 'p') AND relname <> 'alembic_version' "
        "AND NOT has_table_privilege('night', oid, 'INSERT')"
    )
    assert cluster.value(granted, without) is None


def test_a_reader_without_temporary_tables_asks_about_the_past(
    cluster: Cluster, granted: str, bucket_environment: dict[str, str], tmp_path: Path
) -> None:
    night = environment(cluster, granted, "night", bucket_environment, tmp_path)
    assert main(["-q", "audit"], night) == 3
    moment = datetime.now(UTC).isoformat()
    cluster.execute(granted, f"REVOKE TEMPORARY ON DATABASE {granted} FROM PUBLIC")
    reader = environment(cluster, granted, "reader", bucket_environment, tmp_path)
    for environ, folder in ((night, "night"), (reader, "reader")):
        out = str(tmp_path / folder)
        assert main(["-q", "report", "--as-of", moment, "--out", out, "--format", "csv"], environ) == 0
    reports = {(tmp_path / folder / "missing-evidence.csv").read_bytes() for folder in ("night", "reader")}
    assert len(reports) == 1


def test_the_owner_needs_no_more_once_the_schema_is_there(cluster: Cluster, granted: str) -> None:
    cluster.execute(granted, f"REVOKE CREATE ON DATABASE {granted} FROM toolkit_owner")
    owner = Database(cluster.url(granted, "toolkit_owner"))
    schema.upgrade(owner)
    owner.dispose()


def test_a_missing_right_is_named_with_its_object(
    cluster: Cluster,
    granted: str,
    bucket_environment: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster.execute(granted, "REVOKE SELECT ON public.sales FROM night")
    assert main(["audit"], environment(cluster, granted, "night", bucket_environment, tmp_path)) == 1
    said = capsys.readouterr().err
    assert "permission denied for table sales" in said
    assert "toolkit db grants --help" in said
    cluster.execute(granted, "GRANT SELECT ON public.sales TO night", "REVOKE UPDATE ON public.sales FROM night")
    night = Database(cluster.url(granted, "night"))
    needed = r"denied for table sales \(the statement needs SELECT and UPDATE\)"
    with pytest.raises(DatabaseError, match=needed), night.transaction() as connection:
        connection.execute(sa.select(tables.sales.c.id).with_for_update())
    night.dispose()


def test_a_time_out_of_the_role_is_named_and_may_be_longer_for_the_toolkit(
    cluster: Cluster,
    granted: str,
    bucket_environment: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    environ = environment(cluster, granted, "night", bucket_environment, tmp_path)
    assert main(["-q", "audit"], environ) == 3
    cluster.execute(granted, f"ALTER ROLE reader IN DATABASE {granted} SET statement_timeout = '100ms'")
    past = ["-q", "audit", "--as-of", datetime.now(UTC).isoformat()]
    reading = cluster.url(granted, "reader")
    owner = Database(cluster.url(granted, "toolkit_owner"))
    with owner.transaction() as connection:
        connection.exec_driver_sql("LOCK audit.sale_observations")  # whoever reads has to wait
        assert main(past, environ | {"DATABASE_READ_URL": reading}) == 1
    owner.dispose()
    said = capsys.readouterr().err
    assert "canceling statement due to statement timeout" in said
    longer = "?options=-cstatement_timeout%3D10min"
    assert f"add {longer} to DATABASE_READ_URL" in said
    assert main(past, environ | {"DATABASE_READ_URL": reading + longer}) == 3


@pytest.mark.skipif(PGBOUNCER is None, reason="PgBouncer is not installed")
def test_transactions_through_a_pooler_work_side_by_side(cluster: Cluster, granted: str) -> None:
    """In transaction mode each transaction may run on another server connection, which knows no prepared one."""
    with pooler_of(cluster) as port:
        pooled = Database(cluster.url(granted, port=port), pool_size=8)
        together = threading.Barrier(8)

        def work(number: int) -> int:
            together.wait(PATIENCE)
            found = 0
            for turn in range(30):
                with pooled.transaction() as connection:
                    query = (
                        sa.select(sa.func.count()).select_from(tables.sales).where(tables.sales.c.id > str(turn))
                    )
                    found += connection.execute(query).scalar_one()
            return found

        with ThreadPoolExecutor(8) as threads:
            assert set(threads.map(work, range(8))) == {SALES * 30}
        pooled.dispose()


@pytest.mark.skipif(PGBOUNCER is None, reason="PgBouncer is not installed")
def test_syncs_and_verifications_run_side_by_side_through_a_pooler(
    cluster: Cluster, granted: str, bucket_environment: dict[str, str], bucket: Bucket, s3: object, tmp_path: Path
) -> None:
    for number in range(20):
        s3.put_object(Bucket=bucket.name, Key=f"evidences/2026/11/20/{uuid4()}/{number}.pdf", Body=b"%PDF-1.4\n")  # type: ignore[attr-defined]
    with pooler_of(cluster) as port:
        environ = environment(cluster, granted, "night", bucket_environment, tmp_path)
        environ["DATABASE_URL"] = cluster.url(granted, port=port)
        commands = [["bucket", "sync"], ["evidence", "verify"], ["audit"]] * 3
        with ThreadPoolExecutor(len(commands)) as threads:
            assert set(threads.map(lambda command: main(command, environ), commands)) <= {0, 3}


MAP = MAPS / "typescript.toml"


@pytest.fixture
def mapped_company(cluster: Cluster) -> str:
    """A database whose service has other tables, owned by ``svc``; our roles have the printed rights alone."""
    name, mapping = f"mapped_{uuid4().hex}", load_map(MAP)
    cluster.execute("postgres", f"CREATE DATABASE {name}")
    cluster.execute(
        name,
        (MAPS / "story.sql").read_text() + (MAPS / "typescript.sql").read_text() + "; DISCARD TEMP",
        *(
            f"DO $$ BEGIN CREATE ROLE {role} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
            for role in ("svc", "toolkit_owner", "night", "reader")
        ),
        GIVE_AWAY.replace(":owner", "svc"),
    )

    def rights(role: str, purpose: As) -> list[str]:
        return grants(role, purpose, database=name, sources=mapping.sources, written=mapping.written)

    cluster.execute(name, *rights("toolkit_owner", As.OWNER))
    owner = Database(cluster.url(name, "toolkit_owner"), mapped=True)
    schema.upgrade(owner, service_map=mapping)
    owner.dispose()
    cluster.execute(name, *rights("night", As.OPERATOR), *rights("reader", As.READER))
    return name


def mapped_environment(*args: Any) -> dict[str, str]:
    return environment(*args) | {"TOOLKIT_SERVICE_MAP": str(MAP)}


def test_a_mapped_service_is_read_and_written_with_the_printed_rights(
    cluster: Cluster, mapped_company: str, bucket_environment: dict[str, str], tmp_path: Path
) -> None:
    environ = mapped_environment(cluster, mapped_company, "night", bucket_environment, tmp_path)
    assert main(["audit"], environ) == 3
    file = write_csv(tmp_path / "clients.csv", [client(number) for number in range(3)])
    assert main(["clients", "load", str(file)], environ) == 0
    assert cluster.value(mapped_company, 'SELECT count(*) FROM "InstallationAddress"') == 4


@pytest.mark.skipif(PGBOUNCER is None, reason="PgBouncer is not installed")
def test_a_mapped_service_works_through_a_pooler(
    cluster: Cluster, mapped_company: str, bucket_environment: dict[str, str], tmp_path: Path
) -> None:
    file = write_csv(tmp_path / "clients.csv", [client(number) for number in range(5)])
    with pooler_of(cluster) as port:
        environ = mapped_environment(cluster, mapped_company, "night", bucket_environment, tmp_path)
        environ["DATABASE_URL"] = cluster.url(mapped_company, port=port)
        commands = [["clients", "load", str(file)], ["bucket", "sync"], ["audit"], ["db", "check"]]
        with ThreadPoolExecutor(len(commands)) as threads:
            assert set(threads.map(lambda command: main(command, environ), commands)) <= {0, 3}
    assert cluster.value(mapped_company, 'SELECT count(*) FROM "Customer"') == 6


@pytest.mark.parametrize(
    ("service", "judged"), [("granted", b"\nS-40,A,incomplete"), ("mapped_company", b"\nS-2,B,incomplete")]
)
def test_a_replica_judges_as_its_primary_does(
    cluster: Cluster,
    service: str,
    judged: bytes,
    bucket_environment: dict[str, str],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    database: str = request.getfixturevalue(service)
    described = environment if service == "granted" else mapped_environment
    environ = described(cluster, database, "night", bucket_environment, tmp_path)
    with replica_of(cluster) as port:
        through = environ | {"DATABASE_READ_URL": cluster.url(database, "reader", port=port)}
        assert main(["report", "--out", str(tmp_path / "now"), "--format", "csv,html"], through) == 0
        moment = datetime.now(UTC).isoformat()
        for folder, variables in (("primary", environ), ("replica", through)):
            command = ["report", "--as-of", moment, "--out", str(tmp_path / folder), "--format", "csv,json"]
            assert main(command, variables) == 0
    for name in ("missing-evidence.csv", "missing-evidence.json"):
        assert (tmp_path / "primary" / name).read_bytes() == (tmp_path / "replica" / name).read_bytes()
    for folder in ("now", "primary"):
        assert judged in (tmp_path / folder / "missing-evidence.csv").read_bytes()
    assert " s behind" in (tmp_path / "now" / "missing-evidence.html").read_text()
