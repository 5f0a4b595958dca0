"""The service's tables as other teams build them: drafted, read through views, and judged as they should be."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.client_rows import client, write_csv
from tests.conftest import Run
from tests.contract.bodies import CLIENT, UPLOAD, changed
from tests.integration.evidence_bytes import pdf, tone
from toolkit.entrypoints.cli import main
from toolkit.errors import DatabaseError, WriteRefused
from toolkit.operations.judge.audit import run_audit
from toolkit.operations.judge.completion import complete_sale
from toolkit.operations.observe.service_history import observe_service
from toolkit.operations.register.registration import register_client
from toolkit.operations.request.single import UploadLimits, request_upload
from toolkit.storage import schema
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database, raw
from toolkit.storage.grants import As, grants
from toolkit.storage.service_map import load_map
from toolkit.storage.service_map.draft import draft_map
from toolkit.storage.service_map.proof import prove
from toolkit.storage.service_map.writing import require_writable

MAPS = Path(__file__).parents[1] / "data" / "service_maps"
KINDS = ("typescript", "rails", "cadastro", "documents", "planilhas")
QUERIES = ("blobs", "elements", "resource_planning", "partitions", "columns")
"""Schemas in which no table, or none alone, holds what a relation needs."""

STORY = {
    "S-2": ("B", "incomplete", "AUT|DOC_RESPONSAVEL_FINANCEIRO", ""),
    "S-4": ("D", "conflict", "", "KYC_NOT_ALONE"),
    "S-5": ("A", "incomplete", "POV", "COMPLETED_WITHOUT_EVIDENCE"),
    "S-7": ("C", "incomplete", "POV", ""),
}
"""The sales that lack something, in every one of the schemas; S-1, S-3 and S-6 are compliant."""


def load(database: Database, kind: str, *, owner: str = "service_owner") -> None:
    """Make the tables of another team, which own them."""
    with database.transaction() as connection:
        for part in ("story", kind):
            raw(connection).execute((MAPS / f"{part}.sql").read_bytes())
        connection.exec_driver_sql("DISCARD TEMP")
        raw(connection).execute(GIVE_AWAY.replace(":owner", owner).encode())


GIVE_AWAY = """
    DO $$ BEGIN CREATE ROLE :owner NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
    DO $$ DECLARE place text; BEGIN
        FOR place IN SELECT DISTINCT schemaname FROM pg_stat_user_tables LOOP
            EXECUTE format('ALTER SCHEMA %I OWNER TO :owner', place);
        END LOOP;
        FOR place IN SELECT relid::regclass::text FROM pg_stat_user_tables LOOP
            EXECUTE format('ALTER TABLE %s OWNER TO :owner', place);
        END LOOP;
    END $$
"""


@contextmanager
def mapped(database: Database, role: str | None = None) -> Iterator[Database]:
    """The same database, read through the views, perhaps with the rights of a role."""
    url = database.engine.url.update_query_dict({} if role is None else {"options": f"-crole={role}"})
    opened = Database(url.render_as_string(hide_password=False), mapped=True)
    try:
        yield opened
    finally:
        opened.dispose()


@pytest.mark.parametrize("kind", KINDS + QUERIES)
def test_the_draft_needs_no_correction(empty_database: Database, kind: str) -> None:
    """After a wanted change: RENEW_GOLDEN=1 pytest tests/integration/test_service_maps.py, and look at it."""
    load(empty_database, kind)
    draft = draft_map(empty_database, "America/Sao_Paulo")
    assert draft.to_fill_in == ()
    golden = MAPS / f"{kind}.toml"
    if os.environ.get("RENEW_GOLDEN"):
        golden.write_text(draft.text, encoding="utf-8")
    assert draft.text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS + QUERIES[:3])
def test_every_schema_gives_the_same_report(
    empty_database: Database,
    bucket: Bucket,
    bucket_environment: Mapping[str, str],
    s3: Any,
    tmp_path: Path,
    kind: str,
) -> None:
    load(empty_database, kind)
    drafted = tmp_path / "service.toml"
    environ = environment(empty_database, bucket_environment, kind) | {"TOOLKIT_SERVICE_MAP": str(drafted)}
    no_bucket = {
        key: value for key, value in environ.items() if key not in {"EVIDENCE_BUCKET", "TOOLKIT_SERVICE_MAP"}
    }
    assert main(["db", "map", "--out", str(drafted)], no_bucket) == 0
    assert main(["db", "upgrade"], environ) == 0
    with mapped(empty_database) as database, database.transaction() as connection:
        keys = connection.scalars(sa.text("SELECT object_key FROM audit_service.evidences")).all()
    assert len(keys) == 12
    for key in keys:
        s3.put_object(Bucket=bucket.name, Key=key, Body=pdf() if key.endswith(".pdf") else tone())
    assert main(["-q", "db", "check"], environ) == 0
    assert main(["-q", "report", "--out", str(tmp_path), "--format", "csv"], environ) == 0
    assert reported(tmp_path / "missing-evidence.csv") == STORY
    told = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert (told["sales"], told["compliant"]) == (7, 3)


def environment(database: Database, bucket_environment: Mapping[str, str], kind: str) -> dict[str, str]:
    return {
        **os.environ,
        **bucket_environment,
        "DATABASE_URL": database.engine.url.render_as_string(hide_password=False),
        "TOOLKIT_SERVICE_MAP": str(MAPS / f"{kind}.toml"),
    }


def reported(path: Path) -> dict[str, tuple[str, ...]]:
    with path.open(encoding="utf-8", newline="") as file:
        return {
            row["saleId"]: (row["utilityGroup"], row["status"], row["missing"], row["problems"])
            for row in csv.DictReader(file)
        }


NOW = datetime(2026, 10, 4, 12, 0, tzinfo=UTC)
LIMITS = UploadLimits(3600, 1_000_000)
BODY = UPLOAD | {"fileName": "pov.mp3", "fileFormat": "audio/mpeg", "type": "audio/mpeg", "evidenceType": "POV"}


@contextmanager
def upgraded(database: Database, kind: str, **changes: Any) -> Iterator[Database]:
    load(database, kind)
    mapping = load_map(MAPS / f"{kind}.toml").model_copy(update=changes)
    with mapped(database) as through_views:
        schema.upgrade(through_views, service_map=mapping)
        yield through_views


def one_row(database: Database, query: str) -> tuple[Any, ...]:
    with database.transaction() as connection:
        return tuple(connection.execute(sa.text(query)).one())


def test_clients_are_written_where_the_mapping_can_be_turned_round(empty_database: Database) -> None:
    with upgraded(empty_database, "typescript") as database:
        registered = register_client(database, CLIENT, lambda: NOW)
        assert one_row(
            database,
            """
            SELECT cpf, "dealershipNumber", "createdAt", "updatedAt" IS NOT NULL, "installationNumber"
            FROM "Customer" JOIN "InstallationAddress" ON "customerId" = "Customer".id
            WHERE "dealershipNumber" = '3004567'
            """,
        ) == ("52998224725", "3004567", datetime(2026, 10, 4, 12, 0), True, "00123456")  # noqa: DTZ001  # as it stands there
        known = "SELECT id FROM audit_service.clients WHERE number_on_dealership = '3004567'"
        assert one_row(database, known) == (registered.client_id,)


def test_a_client_and_its_address_are_written_into_one_row(
    empty_database: Database, bucket_environment: Mapping[str, str], tmp_path: Path
) -> None:
    with upgraded(empty_database, "planilhas") as database:
        alone = "INSERT INTO audit_service.clients (id, cpf) VALUES (gen_random_uuid(), '1') RETURNING id"
        with pytest.raises(DatabaseError, match="the row also holds the address, and none was given"):
            one_row(database, alone)
        one_row(database, """SELECT setval('"Comercial Energia"."Clientes_Código_seq"', 10)""")
        registered = register_client(database, changed(CLIENT, "address.city", "Recife"), lambda: NOW)
        assert registered.client_id == registered.address_id
        row = one_row(database, f"""SELECT "CPF", "Bairro", "CEP" FROM {TABLE} WHERE "Cidade" = 'Recife'""")
        assert row == ("529.982.247-25", "Centro", "01310-100")  # as the table writes them
        source = write_csv(tmp_path / "clients.csv", [client(number) for number in range(1, 4)])
        environ = environment(empty_database, bucket_environment, "planilhas")
        assert main(["clients", "load", str(source), "--out", str(tmp_path)], environ) == 0
        assert one_row(database, f"""SELECT count("CEP"), count(DISTINCT "Código") FROM {TABLE}""") == (5, 5)
        assert one_row(database, "SELECT count(*) FROM audit_service.waiting_clients") == (0,)


TABLE = '"Comercial Energia"."Clientes"'


def test_an_evidence_record_takes_its_key_from_the_sequence_of_the_service(
    empty_database: Database, bucket: Bucket
) -> None:
    with upgraded(empty_database, "rails") as database:
        issued = request_upload(
            database, bucket, "S-7", BODY, requested_by="ana", limits=LIMITS, clock=lambda: NOW
        )
        assert str(issued.id) == "00000000-0000-0000-0000-000000004001"
        assert one_row(
            database,
            "SELECT order_id, category, uploaded_by, created_at, storage_key LIKE '%/pov.mp3' "
            "FROM backoffice.attachments WHERE id = 4001",
        ) == (7, "pov", "ana", datetime(2026, 10, 4, 12, 0), True)  # noqa: DTZ001


def test_a_sale_is_completed_in_the_columns_that_the_service_has(
    empty_database: Database, bucket: Bucket, s3: Any
) -> None:
    with upgraded(empty_database, "cadastro") as database:
        s3.put_object(Bucket=bucket.name, Key="docs/2026-10/S-3/kyc.pdf", Body=pdf())
        assert complete_sale(database, bucket, "S-3", lambda: NOW).completed_at == NOW
        completed = one_row(
            database,
            """SELECT "DT_CONCLUSAO"::text, "HR_CONCLUSAO"::text FROM "TB_VENDA" WHERE "NR_VENDA" = 'S-3'""",
        )
        assert completed == ("2026-10-04", "09:00:00")


@pytest.mark.parametrize(
    ("kind", "work", "reason"),
    [
        ("cadastro", "clients.insert", "id is CD_CLIENTE, a number that no sequence gives"),
        ("rails", "clients.insert", "first_name is an SQL expression, which cannot be turned round"),
        ("documents", "evidences.insert", "file_name is an SQL expression"),
        ("documents", "clients.insert", "number_on_dealership stands inside a JSON column"),
    ],
)
def test_what_cannot_be_turned_round_is_refused_with_the_column(
    empty_database: Database, kind: str, work: str, reason: str
) -> None:
    with upgraded(empty_database, kind) as database, pytest.raises(WriteRefused, match=reason):
        require_writable(database, work)


def test_a_service_that_is_only_read_is_never_written(empty_database: Database, bucket: Bucket) -> None:
    with upgraded(empty_database, "typescript", read_only=True) as database:
        for write in (
            lambda: register_client(database, CLIENT, lambda: NOW),
            lambda: complete_sale(database, bucket, "S-3", lambda: NOW),
            lambda: one_row(database, "UPDATE audit_service.sales SET partner = 'other' RETURNING id"),
        ):
            with pytest.raises(DatabaseError, match="read only: so says read_only in the mapping"):
                write()


def test_a_check_counts_and_names_what_deviates(empty_database: Database) -> None:
    load(empty_database, "cadastro")
    with empty_database.transaction() as connection:
        for spoil in (
            """UPDATE "TB_VENDA" SET "TP_GRUPO" = 99 WHERE "NR_VENDA" IN ('S-1', 'S-2')""",
            """UPDATE "TB_VENDA" SET "FL_CLIENTE_RESPONSAVEL_FINANCEIRO" = 'X' WHERE "NR_VENDA" = 'S-3'""",
            """UPDATE "TB_VENDA" SET "DT_VENDA" = 'infinity' WHERE "NR_VENDA" = 'S-4'""",
            """UPDATE "TB_VENDA" SET "DT_VENDA" = '2999-01-01' WHERE "NR_VENDA" = 'S-6'""",
            """UPDATE "TB_DOCUMENTO" SET "NR_VENDA" = 'S-8', "NM_ARQUIVO" = 'voz.mp3' WHERE "SQ_DOCUMENTO" = 1""",
        ):
            connection.exec_driver_sql(spoil)
    mapping = load_map(MAPS / "cadastro.toml")
    with mapped(empty_database) as database:
        schema.upgrade(database, service_map=mapping)
        proof = prove(database, mapping, holds=lambda key: key.startswith("/"))
    assert proof.rows == {"clients": 1, "addresses": 1, "sales": 7, "evidences": 12}
    assert [deviation.text for deviation in proof.deviations] == [
        "sales.is_client_financial_responsible: 1 rows: no value, or a code that means none (S-3)",
        "evidences.object_key: 1 rows: the same value stands in more than one row",
        "sales.utility_group: 2 rows: the contract does not know '99'; codes can say what it means",
        "sales.created_at: 1 rows: an infinite time (S-4)",
        "sales.created_at: 1 rows: lies in the future: is its zone right? (S-6)",
        "evidences.sale_id: 1 rows: names none of the sales that are read (00000000-0000-0000-0000-000000000001)",
        "evidences.object_key: 12 rows: none of the 12 newest lies in the bucket "
        "(00000000-0000-0000-0000-000000000001, 00000000-0000-0000-0000-000000000002, "
        "00000000-0000-0000-0000-000000000003, ...)",
    ]
    assert any("clients cannot be written: id is CD_CLIENTE" in text for text in proof.notes)
    assert any("ST_VENDA must have a value" in text for text in proof.notes)


def test_a_check_says_how_records_without_their_sale_are_left_out(
    empty_database: Database, tmp_path: Path
) -> None:
    load(empty_database, "partitions")
    with empty_database.transaction() as connection:
        connection.exec_driver_sql("DELETE FROM comercial.contrato WHERE codigo = 'S-7'")
    path, text = tmp_path / "map.toml", (MAPS / "partitions.toml").read_text(encoding="utf-8")

    def found() -> list[str]:
        path.write_text(text, encoding="utf-8")
        mapping = load_map(path)
        with mapped(empty_database) as database:
            schema.upgrade(database, service_map=mapping)
            return [each.text for each in prove(database, mapping).deviations]

    (told,) = found()
    assert told.startswith(
        "evidences.sale_id: 1 rows: no value, so that no audit can be made; to leave such rows "
    )
    condition = told.partition("add to where: ")[2].rpartition(" (")[0]
    own = 'this."removido" IS NOT TRUE'
    text = text.replace(f"'{own}'", f"'''{own} AND {condition}'''")
    assert found() == []


def test_a_sale_that_does_not_say_who_pays_is_a_conflict_and_stops_no_audit(
    empty_database: Database, bucket_environment: Mapping[str, str], tmp_path: Path
) -> None:
    load(empty_database, "cadastro")
    environ = environment(empty_database, bucket_environment, "cadastro")
    with empty_database.transaction() as connection:
        for flag, sale in (("NULL", "S-1"), ("'X'", "S-2")):
            connection.exec_driver_sql(
                f"""ALTER TABLE "TB_VENDA" ALTER "FL_CLIENTE_RESPONSAVEL_FINANCEIRO" DROP NOT NULL;
                UPDATE "TB_VENDA" SET "FL_CLIENTE_RESPONSAVEL_FINANCEIRO" = {flag} WHERE "NR_VENDA" = '{sale}'"""
            )
    assert main(["db", "upgrade"], environ) == 0
    assert main(["-q", "report", "--out", str(tmp_path), "--format", "csv,json,xlsx,html"], environ) == 0
    found = reported(tmp_path / "missing-evidence.csv")
    assert found["S-1"] == ("A", "conflict", "", "PAYER_UNKNOWN")
    assert found["S-2"] == ("B", "conflict", "", "PAYER_UNKNOWN")
    assert found["S-7"] == ("C", "incomplete", "POV|DOC_CONTRATANTE", "")


def test_a_value_that_cannot_be_read_is_found_without_being_shown(empty_database: Database) -> None:
    with upgraded(empty_database, "documents") as database:
        with empty_database.transaction() as connection:
            connection.exec_driver_sql(
                """UPDATE shop.person SET profile = profile || '{"birthdate": "12/31/1990"}'"""
            )
        (found,) = prove(database, load_map(MAPS / "documents.toml")).deviations
    assert found.text == "clients.birthdate: 2 rows: some value is no date [22008]"


def test_another_mapping_than_the_views_are_made_from_is_named(
    run: Run, empty_database: Database, bucket_environment: Mapping[str, str], tmp_path: Path
) -> None:
    load(empty_database, "rails")
    environ = environment(empty_database, bucket_environment, "rails")
    run("db", "upgrade", within=environ)
    changed = tmp_path / "map.toml"
    changed.write_text((MAPS / "rails.toml").read_text().replace("1 = false, 0 = true", "1 = true, 0 = false"))
    said = run("audit", ends=1, within=environ, TOOLKIT_SERVICE_MAP=str(changed)).err
    assert "were made from another mapping" in said
    del environ["TOOLKIT_SERVICE_MAP"]
    assert "set TOOLKIT_SERVICE_MAP to its file" in run("audit", ends=1, within=environ).err


def test_the_printed_rights_are_enough_and_the_operator_needs_none_on_the_tables(
    empty_database: Database, bucket: Bucket
) -> None:
    load(empty_database, "rails")
    mapping = load_map(MAPS / "rails.toml")
    url = empty_database.engine.url
    for purpose in (As.OWNER, As.OPERATOR):
        role = f"{purpose}_{url.database}"
        given = grants(
            role, purpose, database=url.database or "", sources=mapping.sources, written=mapping.written
        )
        with mapped(empty_database) as admin, admin.transaction() as connection:
            connection.exec_driver_sql(f"CREATE ROLE {role}")
            connection.exec_driver_sql("".join(given))
        with mapped(empty_database, role) as database:
            if purpose is As.OWNER:
                schema.upgrade(database, service_map=mapping)
                continue
            observe_service(database, lambda: NOW)
            assert run_audit(database, clock=lambda: NOW).sales == 7
            request_upload(database, bucket, "S-7", BODY, requested_by="ana", limits=LIMITS, clock=lambda: NOW)
            with pytest.raises(DatabaseError, match="permission denied for schema backoffice"):
                one_row(database, "SELECT count(*) FROM backoffice.orders")
    with empty_database.transaction() as connection:
        for purpose in As.OPERATOR, As.OWNER:
            connection.exec_driver_sql(f"DROP OWNED BY {purpose}_{url.database} CASCADE")
            connection.exec_driver_sql(f"DROP ROLE {purpose}_{url.database}")


SALES_FILE = """\
saleId,clientId,utilityGroup,isClientFinancialResponsible,createdAt,partner,completedAt
S-1,,A,true,{created},Luz Certa,
S-2,,B,true,{created},Luz Certa,
S-5,,C,true,{created},Luz Certa,{completed}
"""


@pytest.mark.parametrize("kind", ["cadastro", "typescript"])
def test_a_file_of_sales_is_compared_with_codes_casts_and_lookups(
    run: Run, empty_database: Database, bucket_environment: Mapping[str, str], tmp_path: Path, kind: str
) -> None:
    load(empty_database, kind)
    environ = environment(empty_database, bucket_environment, kind)
    run("db", "upgrade", within=environ)
    with mapped(empty_database) as database:
        client, partner, created, completed = one_row(
            database,
            "SELECT client_id, partner, created_at, completed_at FROM audit_service.sales WHERE id = 'S-5'",
        )
    text = SALES_FILE.format(created=created.isoformat(), completed=completed.isoformat())
    path = tmp_path / "sales.csv"
    path.write_text(text.replace(",,", f",{client},", 3).replace("Luz Certa", partner))
    told = run("sales", "load", path, "--json", ends=3, within=environ).told
    differing = [
        {"line": 3, "saleId": "S-2", "fields": ["isClientFinancialResponsible"]},
        {"line": 4, "saleId": "S-5", "fields": ["utilityGroup"]},
    ]
    assert (told["unchanged"], told["differingRows"]) == (1, differing)
    if kind == "cadastro":
        said = run("sales", "load", path, "--overwrite", ends=1, within=environ).err
        assert "ST_VENDA must have a value" in said
    else:
        told = run("sales", "load", path, "--overwrite", "--json", within=environ).told
        assert (told["inserted"], told["updated"], told["unchanged"]) == (0, 2, 1)
        with mapped(empty_database) as database:
            query = "SELECT utility_group, is_client_financial_responsible FROM audit_service.sales WHERE id IN "
            assert one_row(database, f"{query} ('S-2')") == ("B", True)
            assert one_row(database, f"{query} ('S-5')") == ("C", True)


def test_the_service_migrates_a_column_that_the_views_read(
    empty_database: Database, bucket_environment: Mapping[str, str], tmp_path: Path
) -> None:
    """The documented way: release the views, which hold no data, migrate, and make them again."""
    load(empty_database, "cadastro")
    numbers = """ALTER TABLE "TB_VENDA" ALTER "NR_VENDA" TYPE varchar({}) COLLATE "C" """
    with empty_database.transaction() as connection:
        connection.exec_driver_sql(numbers.format(40))
    environ = environment(empty_database, bucket_environment, "cadastro")
    assert main(["db", "upgrade"], environ) == 0
    assert main(["-q", "audit"], environ) == 3
    widen = numbers.format(60)
    with pytest.raises(DatabaseError, match="used by a view or rule"), empty_database.transaction() as connection:
        connection.exec_driver_sql(widen)
    assert main(["db", "release"], environ) == 0
    with empty_database.transaction() as connection:
        connection.exec_driver_sql(widen)
    assert main(["-q", "audit"], environ) == 1
    assert main(["db", "upgrade"], environ) == 0
    assert main(["-q", "report", "--out", str(tmp_path), "--format", "csv"], environ) == 0
    assert "S-1" in reported(tmp_path / "missing-evidence.csv")
