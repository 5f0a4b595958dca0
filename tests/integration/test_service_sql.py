"""The service's tables as other teams build them, read by a service.sql, and judged as they should be."""

import csv
import json
import os
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.support.request_bodies import CLIENT, UPLOAD
from tests.support.uploaded_sales import MP3, PDF, execute
from toolkit.audit.observe_bucket import sync_bucket
from toolkit.cli import main
from toolkit.database import schema
from toolkit.database.connection import Database, raw
from toolkit.database.observations import last_reading
from toolkit.database.service import evidences, load_service, sales
from toolkit.errors import WriteRefused
from toolkit.evidence.completion import complete_sale
from toolkit.evidence.credentials import UploadLimits, request_upload
from toolkit.intake.registration import register_client

SERVICES = Path(__file__).parents[1] / "data" / "services"
KINDS = sorted(path.name.removesuffix(".service.sql") for path in SERVICES.glob("*.service.sql"))
WRITABLE = [kind for kind in KINDS if "add_records" in (SERVICES / f"{kind}.service.sql").read_text("utf-8")]

STORY = {
    "V-2": ("B", "incomplete", "AUT|DOC_RESPONSAVEL_FINANCEIRO", ""),
    "V-4": ("D", "conflict", "", "KYC_NOT_ALONE"),
    "V-5": ("A", "incomplete", "POV", "COMPLETED_WITHOUT_EVIDENCE"),
    "V-7": ("C", "incomplete", "POV", ""),
}
"""The sales that lack something, in every one of the schemas; V-1, V-3 and V-6 are compliant."""

NOW = datetime(2026, 10, 4, 12, 0, tzinfo=UTC)
LIMITS = UploadLimits(3600, 1_000_000)
BODY = UPLOAD | {"fileName": "pov.mp3", "fileFormat": "audio/mpeg", "type": "audio/mpeg", "evidenceType": "POV"}


@pytest.fixture
def made(empty_database):
    """Make the tables of another team, which own them, and open the database to read them."""
    with ExitStack() as opened:

        def make(kind):
            with empty_database.transaction() as connection:
                raw(connection).execute((SERVICES / f"{kind}.sql").read_bytes())
            url = empty_database.engine.url.render_as_string(hide_password=False)
            database = Database(url, service=load_service(SERVICES / f"{kind}.service.sql"))
            opened.callback(database.dispose)
            return database

        yield make


def environment(database, bucket_environment, kind):
    return {
        **os.environ,
        **bucket_environment,
        "DATABASE_URL": database.engine.url.render_as_string(hide_password=False),
        "TOOLKIT_SERVICE_SQL": str(SERVICES / f"{kind}.service.sql"),
    }


@pytest.fixture
def put_files(put):
    """Puts a file of its kind under each key of a database."""

    def put_files(database):
        with database.transaction() as connection:
            keys = connection.scalars(sa.select(evidences.c.object_key)).all()
        for key in keys:
            put(key, PDF if key.endswith(".pdf") else MP3)
        return len(keys)

    return put_files


@pytest.mark.parametrize("kind", KINDS)
def test_every_schema_gives_the_same_report(made, put_files, bucket_environment, tmp_path, kind):
    other = made(kind)
    environ = environment(other, bucket_environment, kind)
    assert main(["-q", "db", "upgrade"], environ) == 0
    assert put_files(other) == 12
    assert main(["-q", "db", "check"], environ) == 0
    assert main(["-q", "report", "--out", str(tmp_path), "--format", "csv"], environ) == 0
    with (tmp_path / "missing-evidence.csv").open(encoding="utf-8", newline="") as file:
        found = {
            row["saleId"]: (row["utilityGroup"], row["status"], row["missing"], row["problems"])
            for row in csv.DictReader(file)
        }
    assert found == STORY
    told = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert (told["sales"], told["compliant"]) == (7, 3)


@pytest.mark.parametrize("kind", WRITABLE)
def test_credentials_are_stored_where_the_service_keeps_its_records(made, bucket, put_files, kind):
    other = made(kind)
    schema.upgrade(other)
    put_files(other)
    issued = request_upload(other, bucket, "V-5", BODY, requested_by="someone", limits=LIMITS, clock=lambda: NOW)
    with other.transaction() as connection:
        row = connection.execute(sa.select(evidences).where(evidences.c.id == issued.id)).one()
        told = connection.scalars(sa.text("SELECT kind FROM audit.custody_events WHERE detail ? 'evidence'")).all()
    assert (row.sale_id, row.evidence_type, row.object_key) == ("V-5", "POV", issued.fields["key"])
    assert told == ["ASKED", "ISSUED"]
    assert complete_sale(other, bucket, "V-1", lambda: NOW).completed_at == NOW
    assert complete_sale(other, bucket, "V-1", lambda: NOW).already
    assert complete_sale(other, bucket, "V-2", lambda: NOW).completed_at is None
    with other.transaction() as connection:
        done = connection.scalars(sa.select(sales.c.id).where(sales.c.completed_at.is_not(None)).order_by("id"))
        assert done.all() == ["V-1", "V-5"]


def test_work_without_its_statement_is_refused_with_a_sentence(made, bucket):
    other = made("legado")
    schema.upgrade(other)
    with pytest.raises(WriteRefused, match=r"cannot be registered: .*legado.service.sql has no statement add"):
        register_client(other, CLIENT, lambda: NOW)
    with pytest.raises(WriteRefused, match="Evidence credentials cannot be issued"):
        request_upload(other, bucket, "V-1", BODY, requested_by="x", limits=LIMITS, clock=lambda: NOW)
    with pytest.raises(WriteRefused, match="Sales cannot be completed"):
        complete_sale(other, bucket, "V-1", lambda: NOW)


SETTINGS = {
    "DateStyle": "German, DMY",
    "TimeZone": "Asia/Kolkata",
    "IntervalStyle": "sql_standard",
    "bytea_output": "escape",
    "default_transaction_isolation": "serializable",
    "standard_conforming_strings": "off",
    "quote_all_identifiers": "on",
    "transform_null_equals": "on",
    "extra_float_digits": "0",
}


def test_odd_settings_of_a_database_change_nothing(made, empty_database, bucket, put_files, clock):
    other, name = made("legado"), empty_database.engine.url.database
    execute(empty_database, *(f"ALTER DATABASE {name} SET {each} = '{value}'" for each, value in SETTINGS.items()))
    schema.upgrade(other)
    put_files(other)
    sync_bucket(other, bucket, clock=clock)
    with other.transaction() as connection:
        query = sa.select(sales.c.created_at).where(sales.c.id == "V-1")
        assert connection.scalar(query) == datetime(2026, 10, 2, 2, 30, tzinfo=UTC)
        assert connection.exec_driver_sql("SHOW datestyle").scalar() == "ISO, YMD"
        reading = last_reading(connection, clock())
    assert (reading.counts["sales"], reading.counts["records"], reading.notes) == (7, 12, ())


def test_a_skeleton_shows_columns_and_codes_and_no_value_of_a_person(made, put_files, bucket_environment, capsys):
    other = made("legado")
    execute(other, "ALTER TABLE evidencias ADD removido boolean")
    put_files(other)
    environ = environment(other, bucket_environment, "legado")
    del environ["TOOLKIT_SERVICE_SQL"]
    named = ("--sales", "vendas", "--records", "evidencias", "--clients", "clientes")
    capsys.readouterr()
    assert main(["db", "map", *named], environ) == 0
    text = capsys.readouterr().out
    assert "in the bucket lie 5 of 5 tried: rtrim(ltrim(pasta, '/'), '/') || '/' || arquivo" in text
    for expected in (
        "TODO AS utility_group,",
        "tp_evidencia (character varying; ACT, DCT",
        "FROM vendas",
        "removido (boolean; may be NULL)\n;",  # the last one of the hint for a WHERE
        "parceiro",
    ):
        assert expected in text
    for secret in ("Energia Certa", "529", "Gonçalves", "7700001", "V-1", "São Paulo"):
        assert secret not in text


def test_keys_that_are_written_otherwise_than_in_the_bucket_are_told(made, bucket_environment, capsys):
    environ = environment(made("legado"), bucket_environment, "legado")
    assert main(["-q", "db", "upgrade"], environ) == 0
    assert main(["-q", "db", "check"], environ) == 3
    assert "None of the 12 newest object_key lies in the bucket" in capsys.readouterr().out
