"""A database belongs to one bucket and one service, and to its present: others are refused, restores are told."""

from datetime import UTC, datetime

import pytest

from tests.support.evidence_files import pdf
from tests.support.uploaded_sales import add_sale, credentials_line, rows, unguarded, write_credentials
from toolkit.bucket.client import Bucket
from toolkit.contract.evidence import EvidenceType
from toolkit.database.belonging import check_replica
from toolkit.database.connection import Database
from toolkit.database.observations import observe_service
from toolkit.errors import WrongService
from toolkit.settings import Settings

MANIFEST = "saleId,fileName,fileFormat,type,evidenceType\nsale-1,a.pdf,application/pdf,application/pdf,KYC\n"


def counted(database):
    """Count the rows of each table of the toolkit and of the service."""
    tables = [table for (table,) in rows(database, "SELECT relid::regclass::text FROM pg_stat_user_tables")]
    return {table: rows(database, f"SELECT count(*) FROM {table}")[0][0] for table in tables}


@pytest.fixture
def used(database, clock, add_file, sync, embedded_environment):
    """The environment of a database that was read with its bucket, which holds one file."""
    clock.now = datetime.now(UTC)
    add_sale(database)
    add_file()
    sync()
    return embedded_environment


@pytest.fixture
def other_bucket(used, s3):
    """The same environment, with another bucket of the same server."""
    name = f"{used['EVIDENCE_BUCKET']}-other"
    s3.create_bucket(Bucket=name)
    return used | {"EVIDENCE_BUCKET": name}


@pytest.fixture
def restored(server, database, used):
    """The environment of a copy of the database under another name."""
    database.dispose()
    name = database.engine.url.database
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}_copy TEMPLATE {name} STRATEGY FILE_COPY")
    yield used | {"DATABASE_URL": used["DATABASE_URL"].replace(f"/{name}", f"/{name}_copy")}
    with server.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name}_copy WITH (FORCE)")


def test_no_command_works_with_another_bucket(run, other_bucket, database, s3, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVIDENCE_BUCKET", other_bucket["EVIDENCE_BUCKET"])
    (tmp_path / "manifest.csv").write_text(MANIFEST)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.pdf").write_bytes(pdf())
    line = credentials_line(Bucket.open(Settings.from_environment(other_bucket)), "sale-1", "a.pdf")
    write_credentials(tmp_path / "lines.jsonl", [line])
    before = counted(database)
    ((evidence,),) = rows(database, "SELECT id::text FROM evidences")
    for command in (
        *("bucket sync", "audit", "evidence verify", f"evidence link {evidence} --reason asked"),
        *("credentials request manifest.csv --out out.jsonl", "evidence upload lines.jsonl --from files"),
        "sales complete sale-1",
    ):
        said = run(*command.split(), ends=1, within=other_bucket).err
        assert "This database belongs to the bucket" in said, command
    assert "This database belongs to the bucket" in run("status", ends=3, within=other_bucket).out
    assert counted(database) == before
    assert "Contents" not in s3.list_objects_v2(Bucket=other_bucket["EVIDENCE_BUCKET"])


def test_a_restored_database_is_refused_until_somebody_confirms_it(run, restored, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    copy = Database(restored["DATABASE_URL"])
    before = counted(copy)
    (tmp_path / "clients.csv").write_text("cpf\n")
    for command in ("audit", "audit --no-sync", "bucket sync", "clients load clients.csv", "waiver list"):
        assert "if the database was restored" in run(*command.split(), ends=1, within=restored).err
    assert "run: toolkit db adopt" in run("status", ends=3, within=restored).out
    assert counted(copy) == before
    assert "; before, to " in run("db", "adopt", within=restored).out
    run("audit", ends=3, within=restored)
    told = rows(copy, "SELECT kind FROM audit.custody_events ORDER BY id")
    assert told.count(("SERVICE_ADOPTED",)) == 1
    copy.dispose()


def test_a_dump_in_another_cluster_is_confirmed_and_its_epoch_named(run, database, used, clock):
    """A dump of another cluster holds its number, and transactions that this one has not reached."""
    for table in ("adopted_services", "custody_epochs"):
        unguarded(database, table, f"UPDATE audit.{table} SET cluster = 1")
    with pytest.raises(WrongService, match="in cluster 1, and this is"):
        observe_service(database, clock)
    run("db", "adopt", within=used)
    run("-q", "audit", ends=3, within=used)
    assert "2, since " in run("status", within=used).out


def test_another_database_is_no_replica(database, restored):
    other = Database(restored["DATABASE_URL"])
    check_replica(database, database)
    with pytest.raises(WrongService, match="is not a replica of the one at"):
        check_replica(database, other)
    other.dispose()


def test_a_dump_restored_in_place_is_told_until_two_people_confirm_it(
    run, database, postgres_tool, add_file, tmp_path
):
    record, _ = add_file(add_sale(database), EvidenceType.KYC)
    run("-q", "audit")
    postgres_tool("pg_dump", "--format=custom", f"--file={tmp_path / 'dump'}")
    people = ["--reason", "of another sale", "--by", "ana", "--approved-by", "bruno"]
    run("evidence", "withdraw", str(record), *people)
    run("-q", "audit", ends=3)
    postgres_tool("pg_restore", "--clean", "--if-exists", tmp_path / "dump")

    # As after a failover, the same database has another address: the kept seal is filed by its identity.
    url = database.engine.url
    hosts = ["127.0.0.1:1", f"{url.query['host']}:{url.port or 5432}"]  # nobody answers at the first one
    moved = url.update_query_dict({"host": hosts}).render_as_string(hide_password=False)
    assert "restored from an older dump" in run("audit", ends=3, DATABASE_URL=moved).err
    assert "restored from an older dump" in run("audit", ends=3).err
    run("report", "--out", tmp_path / "report", "--format", "html,json")
    for written in ("html", "json"):
        assert "restored from an older dump" in (tmp_path / "report" / f"missing-evidence.{written}").read_text()
    confirm = ("db", "confirm-restore", "--reason", "disk failure", "--by", "Ana")
    assert "two people" in run(*confirm, "--approved-by", "ana", ends=1).err
    run(*confirm, "--approved-by", "Rui")
    assert "no restore to confirm" in run(*confirm, "--approved-by", "Rui", ends=1).err
    run("-q", "audit")
    [(told,)] = rows(database, "SELECT detail FROM audit.custody_events WHERE kind = 'RESTORE_CONFIRMED'")
    assert "Ana" not in str(told)
    assert {"by", "approvedBy", "reason"} <= set(told)
