"""Drafts for databases that do not say everything: what is doubtful is marked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.integration.test_service_maps import MAPS, STORY, environment, mapped
from toolkit.domain.clock import wall_clock
from toolkit.domain.evidence import EvidenceType
from toolkit.domain.findings import Status
from toolkit.domain.rules import Evidence, EvidenceState, Sale, evaluate
from toolkit.entrypoints.cli import main
from toolkit.errors import WriteRefused
from toolkit.operations.judge.audit import run_audit
from toolkit.operations.observe.service_history import observe_service
from toolkit.reports.notices import notices
from toolkit.storage import schema
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database, raw
from toolkit.storage.service_map import ServiceMap, load_map
from toolkit.storage.service_map.draft import Draft, draft_map
from toolkit.storage.service_map.model import NEEDED, understood
from toolkit.storage.service_map.proof import prove
from toolkit.storage.service_map.views import make_views
from toolkit.storage.service_map.writing import require_writable
from toolkit.storage.tables import evidences, sales

LARAVEL = """
    CREATE TABLE customers (id bigserial PRIMARY KEY, cpf bigint NOT NULL, name text NOT NULL);
    CREATE TABLE sales (
      id bigserial PRIMARY KEY, slug text NOT NULL UNIQUE, customer_id bigint REFERENCES customers,
      utility_group integer NOT NULL, payer jsonb NOT NULL, status integer NOT NULL, approved boolean NOT NULL,
      created_at timestamptz NOT NULL, discarded_at timestamptz);
    COMMENT ON COLUMN sales.utility_group IS 'enum: { a: 0, b: 1, c: 2, d: 3 }';
    CREATE TABLE sales_2025 (LIKE sales);
    CREATE VIEW sales_overview AS SELECT slug, utility_group, payer, created_at FROM sales;
    CREATE TABLE media (
      id bigserial PRIMARY KEY, model_type text NOT NULL, model_id bigint NOT NULL, collection_name text NOT NULL,
      file_name text NOT NULL, path text NOT NULL, created_at bigint NOT NULL);
    INSERT INTO customers VALUES (1, 1234567890, 'Ana');
    INSERT INTO sales VALUES (2, 'S-2', 1, 0, '{"same_as_client": true}', 2, true, '2026-10-02 02:30Z');
    INSERT INTO media VALUES
      (1, 'App\\Models\\Sale', 2, 'pov', 'a.mp3', 'media/1/a.mp3', 1790910000000),
      (2, 'App\\Models\\Customer', 2, 'pov', 'b.mp3', 'media/2/b.mp3', 1790910000000);
"""


def mapping_of(text: str, folder: Path) -> ServiceMap:
    (folder / "map.toml").write_text(text, encoding="utf-8")
    return load_map(folder / "map.toml")


def drafted(database: Database, tables: str) -> Draft:
    with database.transaction() as connection:
        raw(connection).execute(tables.encode())
    return draft_map(database, "America/Sao_Paulo")


def test_what_only_a_person_knows_is_marked_for_review(empty_database: Database) -> None:
    draft = drafted(empty_database, LARAVEL)
    said = draft.text.splitlines()
    for line in (
        'cpf = { column = "cpf", mask = "###########" }  # a number: eleven digits, zeros in front',
        'from = "public.sales"  # REVIEW: built alike, and not read: public.sales_2025',
        """where = 'this."discarded_at" IS NULL'  # REVIEW: left out by discarded_at: deleted or cancelled""",
        "# REVIEW: rows that do not count may be told by status (2), approved (true); add it to where",
        'id = "slug"',
        'utility_group = { column = "utility_group", codes = { 0 = "A", 1 = "B", 2 = "C", 3 = "D" } }'
        "  # by the column's comment",
        'is_client_financial_responsible = { column = "payer", json_path = ["same_as_client"], '
        "codes = { true = true, false = false } }",
        """where = '''this."model_type"::text IN (E'App\\\\Models\\\\Sale')'''"""
        "  # REVIEW: rows of other owners are left out",
        'sale_id = { column = "slug", table = "public.sales", key = "id", by = "model_id" }'
        "  # REVIEW: no foreign key says so",
        'requested_at = "created_at"',
    ):
        assert line in said
    asked = "what says when a sale was completed? perhaps status; or { absent = true }"
    assert f'completed_at = {{ sql = "TODO" }}  # {asked}' in said
    assert draft.to_fill_in == ("sales.completed_at",)
    assert {"sales.from", "sales.where", "evidences.where", "evidences.sale_id"} <= set(draft.to_review)


def test_a_description_of_types_is_not_taken_for_the_records(empty_database: Database) -> None:
    draft = drafted(
        empty_database,
        """
        CREATE TABLE t_grupo (id int PRIMARY KEY, ds_grupo text NOT NULL);
        CREATE TABLE t_tipo_arquivo (cd_tipo char(3) PRIMARY KEY, ds_tipo text NOT NULL);
        CREATE TABLE t_contrato (
          id int PRIMARY KEY, id_grupo int REFERENCES t_grupo, in_titular_resp_financeiro char(1),
          dh_inclusao timestamptz);
        CREATE TABLE t_arquivo (
          id int PRIMARY KEY, id_contrato int REFERENCES t_contrato, cd_tipo char(3) REFERENCES t_tipo_arquivo,
          nm_arquivo text, ds_caminho text, dh_inclusao timestamptz);
        INSERT INTO t_grupo VALUES (1, 'Grupo A - alta tensão'), (2, 'Grupo B');
        INSERT INTO t_tipo_arquivo VALUES ('AUC', 'Áudio do contratante'), ('DOC', 'Documento do contratante');
        INSERT INTO t_contrato VALUES (7, 1, 'V', now());
        INSERT INTO t_arquivo VALUES (1, 7, 'DOC', 'a.pdf', 'contratos/7/a.pdf', now());
        """,
    )
    assert 'from = "public.t_arquivo"' in draft.text
    assert 'utility_group = { column = "ds_grupo", table = "public.t_grupo"' in draft.text
    assert '"Grupo A - alta tensão" = "A"' in draft.text
    assert 'id = "id"  # REVIEW: the table\'s own key: reports name sales by it' in draft.text
    assert draft.to_fill_in == ()


RECORDINGS = """
    CREATE TABLE consumidor (id int PRIMARY KEY, nr_documento text NOT NULL, nome text);
    CREATE TABLE contrato (
      id int PRIMARY KEY, numero_contrato text NOT NULL UNIQUE, consumidor_id int REFERENCES consumidor,
      grupo text NOT NULL, cpf_responsavel_financeiro text, "CriadoEmUtc" timestamp NOT NULL,
      empresa_id int NOT NULL);
    CREATE TABLE gravacao (id int PRIMARY KEY, contrato_id int REFERENCES contrato, papel text, url text);
    CREATE TABLE documento (
      id int PRIMARY KEY, contrato_id int REFERENCES contrato, tipo int, url text, enviado_em timestamp);
    INSERT INTO consumidor VALUES (1, '529.982.247-25', 'Ana Souza');
    INSERT INTO contrato VALUES (1, 'S-1', 1, 'A', NULL, '2026-10-02 02:30', 1),
      (2, 'S-2', 1, 'B', '11144477735', '2026-10-02 02:30', 2);
    INSERT INTO gravacao VALUES (1, 1, 'contratante', 'https://s3.amazonaws.com/b/g/1.mp3');
    INSERT INTO documento VALUES (1, 1, 7, 'https://s3.amazonaws.com/b/d/1.pdf?versionId=1', '2026-10-02 03:00');
"""


def test_what_a_draft_cannot_read_or_know_is_said(empty_database: Database) -> None:
    draft = drafted(empty_database, RECORDINGS)
    for part in (
        "# REVIEW: the files of public.documento and public.gravacao, one after the other",
        "UNION ALL SELECT 'gravacao/' || this.\"id\"::text AS",
        "# REVIEW: rows of several tenants are read, by empresa_id (2 values); for one, add it to where",
        'codes = { "gravacao.contratante" = "POV", "documento.7" = "TODO" }',
        "# REVIEW: the key without the address and the bucket in front, up to a question mark, with %20",
        "# REVIEW: the payer's CPF is the client's, or none is named",
        'timezone = "UTC"  # the zone of times that carry none: so says the name of a column',
    ):
        assert part in draft.text
    assert draft.to_fill_in == ("evidences.evidence_type",)


@pytest.mark.parametrize(
    ("column", "values", "line"),
    [
        (
            "payer_type int",
            "0, 1",
            'codes = { 0 = "TODO", 1 = "TODO" } }  # does the client pay? say true or false',
        ),
        (
            "payer text",
            "'holder', 'third_party'",
            "codes = { holder = true, third_party = false } }  # REVIEW: does",
        ),
        ("payer boolean", "true, false", '"payer"  # REVIEW: does yes mean that the client pays?'),
        (
            "customer_is_not_payer boolean",
            "true, false",
            '{ true = "TODO", false = "TODO" } }  # does the client pay?',
        ),
        ("checked_payer boolean", "true, false", '{ true = "TODO", false = "TODO" } }  # does the client pay?'),
        ("fin_resp char(1)", "'C', 'T'", 'codes = { C = "TODO", T = "TODO" } }  # does the client pay?'),
        ("payer_id int", "1, 2", '{ sql = "TODO" }  # is the client the one who pays?'),
        ("payer text", "'titular', 'filho do titular'", '"filho do titular" = "TODO", titular = true } }  # does'),
        ("tem_pagador boolean", "true, false", "codes = { true = false, false = true } }  # REVIEW: by its name"),
    ],
)
def test_who_pays_is_asked_where_a_name_does_not_say_it(
    empty_database: Database, column: str, values: str, line: str
) -> None:
    first, second = values.split(", ")
    draft = drafted(
        empty_database,
        f"""
        CREATE TABLE sales (id text PRIMARY KEY, grp text NOT NULL, {column}, created_at timestamptz);
        INSERT INTO sales VALUES ('S-1', 'A', {first}, now()), ('S-2', 'B', {second}, now());
        """,
    )
    (said,) = (each for each in draft.text.splitlines() if each.startswith("is_client_financial_responsible"))
    assert line in said


SALES = """
    CREATE TABLE sales (id int PRIMARY KEY, code text NOT NULL UNIQUE, {columns}created_at timestamptz NOT NULL);
    CREATE TABLE files (
      id int PRIMARY KEY, sale_id int NOT NULL, evidence_type text NOT NULL, key text NOT NULL, created_at date);
    INSERT INTO sales VALUES (1, 'S-1', {values}now()), (2, 'S-2', {values}now());
    INSERT INTO files VALUES (1, 1, 'POV', 'a/1.mp3', now());
"""


def test_older_sales_are_asked_about_and_copies_of_changes_are_not_read(empty_database: Database) -> None:
    text = drafted(
        empty_database,
        SALES.format(columns="grp text NOT NULL, client_pays boolean NOT NULL, ", values="'A', true, ")
        + """
        CREATE TABLE sales_archive (LIKE sales, archived_at timestamptz);
        CREATE TABLE files_audit (LIKE files, audit_user text, changed_at timestamptz);
        INSERT INTO sales_archive VALUES (3, 'S-3', 'A', true, now(), now());
        INSERT INTO files_audit SELECT *, 'ana', now() FROM files UNION ALL SELECT *, 'rui', now() FROM files;
        """,
    ).text
    assert 'from = "TODO"  # public.sales and public.sales_archive are built alike: name the one to read' in text
    assert 'from = "public.files"' in text


def test_the_lines_and_the_attributes_of_a_sale_tell_its_group_and_who_pays(empty_database: Database) -> None:
    text = drafted(
        empty_database,
        SALES.format(columns="", values="")
        + """
        CREATE TABLE sale_lines (sale_id int REFERENCES sales, product text, utility_group text);
        CREATE TABLE sale_attributes (sale_id int REFERENCES sales, name text, value text);
        INSERT INTO sale_lines VALUES (1, 'gas', 'A'), (1, 'power', 'A'), (2, 'power', 'B');
        INSERT INTO sale_attributes VALUES (1, 'client_pays', 'yes'), (1, 'age', 'x'), (2, 'client_pays', 'no');
        """,
    ).text
    assert 'from = "public.sales"' in text
    assert (
        """string_agg(DISTINCT "utility_group"::text, '/')""" in text
    )  # of two groups none is taken for the other
    assert 'column = "client_pays", codes = { no = false, yes = true }, table = ' in text


def test_files_in_lists_of_lists_are_asked_about(empty_database: Database) -> None:
    text = drafted(
        empty_database,
        """
        CREATE TABLE sales (id text PRIMARY KEY, grp text, client_pays boolean, created_at timestamptz, doc jsonb);
        INSERT INTO sales VALUES ('S-1', 'A', true, now(), '{"papers": [{"type": "KYC", "key": "a/1.pdf"}],
          "calls": [{"at": "10:00", "files": [{"type": "POV", "key": "a/2.mp3"}]}]}');
        """,
    ).text
    asked = (
        "files lie in lists of lists, too, in calls[].files[].key: name a query of them all, in place of papers"
    )
    assert f'from = "TODO"  # {asked}' in text


@pytest.mark.parametrize(
    ("day", "line"),
    [
        ("9/14/2026 2:05:00 AM", r"'\3-\1-\2')" + "''' }  # REVIEW: the month stands first"),
        ("2/10/2026 02:05", '{ column = "created" }  # REVIEW: does the day stand first, as in 31/12/2026?'),
        ("14/9/2026 02:05", '"created"'),
    ],
)
def test_days_are_read_as_their_values_show_or_asked_about(empty_database: Database, day: str, line: str) -> None:
    text = drafted(
        empty_database,
        f"""
        CREATE TABLE sales (id text PRIMARY KEY, grp text NOT NULL, client_pays boolean NOT NULL, created text);
        INSERT INTO sales VALUES ('S-1', 'A', true, '{day}');
        """,
    ).text
    (said,) = (each for each in text.splitlines() if each.startswith("created_at"))
    assert line in said


def test_a_date_begins_with_its_day_whatever_the_server_is_set_to(empty_database: Database) -> None:
    with empty_database.transaction() as connection:
        make_views(connection, understood({"timezone": "UTC"} | {key: {"absent": True} for key in NEEDED}, "none"))
        connection.exec_driver_sql("SET LOCAL datestyle = 'ISO, MDY'")
        read = {
            text: connection.scalar(sa.text("SELECT audit_service.as_time(:text, 'UTC')::text"), {"text": text})
            for text in (
                "02/10/2026 02:30",
                "2.1.2026",
                "13/12/79",
                "2026-10-02T02:30",
                " 2026-10-02 ",
                "00/00/0000",
            )
        }
        numbers = [
            connection.scalar(sa.text(f"SELECT audit_service.as_time({number}, 'UTC')::text"))
            for number in (20261002, 0, 1790910000, 1790910000000)
        ]
        born = connection.scalar(sa.text("SELECT audit_service.as_day('04/03/1979'::text)::text"))
    moment = "2026-10-02 03:00:00+00"
    assert numbers == ["2026-10-02 00:00:00+00", None, moment, moment]
    assert [*read.values(), born] == [
        "2026-10-02 02:30:00+00",
        "2026-01-02 00:00:00+00",
        "1979-12-13 00:00:00+00",
        "2026-10-02 02:30:00+00",
        "2026-10-02 00:00:00+00",
        None,
        "1979-03-04",
    ]


def test_a_database_without_an_encoding_is_read_as_far_as_it_is_utf8(
    empty_database: Database, tmp_path: Path
) -> None:
    name = f"ascii_{empty_database.engine.url.database}"
    server = empty_database.engine.execution_options(isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        place = "ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE_PROVIDER libc LOCALE 'C'"
        connection.exec_driver_sql(f"CREATE DATABASE {name} {place}")
    database = Database(empty_database.engine.url.set(database=name).render_as_string(hide_password=False))
    draft = drafted(
        database, "CREATE TABLE vendas (código text, responsável text); INSERT INTO vendas VALUES ('é', 'à')"
    )
    mapping = mapping_of(_UNION.sub('from = "north.sales"', MAP), tmp_path)
    with mapped(database) as through_views:
        with through_views.transaction() as connection:
            raw(connection).execute(
                b"CREATE SCHEMA north; CREATE TABLE north.sales (id text, grp text, payer bool, at timestamptz); "
                b"CREATE TABLE north.files (id uuid, sale text, kind text, key text, at timestamptz); "
                b"INSERT INTO north.sales VALUES ('S-1', convert_from('\\xe9', 'SQL_ASCII'), true, now())"
            )
            make_views(connection, mapping)
        proof = prove(through_views, mapping)
    database.dispose()
    with server.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    assert 'id = "código"' in draft.text
    assert [each.text for each in proof.deviations] == [
        "sales.utility_group: 1 rows: some value is no text in UTF-8 [22021]"
    ]
    assert "The database states no encoding (SQL_ASCII): texts that are not UTF-8 cannot be read." in proof.notes


@pytest.mark.parametrize(
    ("columns", "rows", "place", "question"),
    [
        (
            "location text",
            ("'s3://documents/1/a.pdf'", "'s3://calls/1/b.mp3'"),
            "evidences.object_key",
            "the files lie in several buckets (calls, documents), and the toolkit reads one",
        ),
        (
            "bucket text, key text",
            ("'documents', '1/a.pdf'", "'calls', '1/b.mp3'"),
            "evidences.where",
            "by bucket (calls, documents), and the toolkit reads one, that of this.\"bucket\"::text = 'documents'",
        ),
        (
            "key text, valid_from date, valid_to date NOT NULL",
            ("'1/a.pdf', '2026-10-01', '9999-12-31'", "'1/b.mp3', '2026-10-01', '2026-10-02'"),
            "evidences.where",
            "some may not, by valid_to",
        ),
    ],
)
def test_rows_that_one_bucket_or_one_moment_does_not_hold_are_asked_about(
    empty_database: Database, columns: str, rows: tuple[str, str], place: str, question: str
) -> None:
    tables = f"""
        CREATE TABLE sales (id text PRIMARY KEY, grp text NOT NULL, client_pays boolean NOT NULL, created_at date);
        CREATE TABLE files (
          id int PRIMARY KEY, sale_id text REFERENCES sales, evidence_type text, {columns}, created_at date);
        INSERT INTO sales VALUES ('S-1', 'A', true, '2026-10-01');
        INSERT INTO files VALUES (1, 'S-1', 'DOC_CONTRATANTE', {rows[0]}, '2026-10-01');
        INSERT INTO files VALUES (2, 'S-1', 'POV', {rows[1]}, '2026-10-01');
    """
    with empty_database.transaction() as connection:
        raw(connection).execute(tables.encode())
    draft = draft_map(empty_database, "America/Sao_Paulo", {"1/a.pdf"}.__contains__)
    assert place in draft.to_fill_in
    assert question in draft.text


OF_TWO_KINDS = """
    CREATE TABLE deals (
      id int PRIMARY KEY, type text, code text UNIQUE, grp text, client_pays boolean, created_at date);
    INSERT INTO deals VALUES (1, 'EnergyDeal', 'S-1', 'A', true), (2, 'TelecomDeal', 'T-1', 'A', true);
"""
WITH_PREVIEWS = """
    CREATE TABLE sales (id int PRIMARY KEY, code text UNIQUE, grp text, client_pays boolean, created_at date);
    CREATE TABLE evidences (id int PRIMARY KEY, sale_id int REFERENCES sales, type text, created_at date);
    CREATE TABLE blobs (id int PRIMARY KEY, key text NOT NULL UNIQUE, content_type text);
    CREATE TABLE attachments (
      id int PRIMARY KEY, name text, record_type text, record_id int, blob_id int REFERENCES blobs);
    INSERT INTO sales VALUES (1, 'S-1', 'A', true, '2026-10-01');
    INSERT INTO evidences VALUES (1, 1, 'Pov', '2026-10-01'), (2, 1, 'Kyc', '2026-10-01');
    INSERT INTO blobs SELECT n, md5(n::text), 'application/pdf' FROM generate_series(1, 3) AS n;
    INSERT INTO attachments VALUES (1, 'file', 'Evidence', 1, 1), (2, 'file', 'Evidence', 2, 2);
    INSERT INTO attachments VALUES (3, 'preview', 'Evidence', 2, 3);
"""
ORDINALS = """
    CREATE TABLE evidences (id int PRIMARY KEY, sale_id int, type_no int, file_name text, key text);
    INSERT INTO evidences VALUES (1, 1, 0, 'pov.mp3', 'a/1'), (2, 1, 5, 'kyc.pdf', 'a/2');
"""
LABELS = """
    CREATE TYPE kind AS ENUM ('HOLDER_VOICE', 'FACE_MATCH', 'UTILITY_BILL');
    CREATE TABLE evidences (id int PRIMARY KEY, "saleId" text, source text, kind kind, key text);
    INSERT INTO evidences VALUES (1, 'cl1', 'app', 'HOLDER_VOICE', 'a/1.mp3');
    INSERT INTO evidences VALUES (2, 'cl2', 'web', 'FACE_MATCH', 'a/2.pdf');
"""
OF_QUOTES = """
    CREATE TABLE customers (id int PRIMARY KEY, cpf text);
    CREATE TABLE quotes (id int PRIMARY KEY, number text UNIQUE);
    CREATE TABLE sales (
      id int PRIMARY KEY, code text UNIQUE, grp text, created_at date, quote_id int REFERENCES quotes,
      customer_id int REFERENCES customers, payer_id int REFERENCES customers);
    CREATE TABLE evidences (
      id int PRIMARY KEY, sale_id int REFERENCES sales, customer_id int REFERENCES customers, kind text, key text,
      created_at date, quote_id int REFERENCES quotes);
    INSERT INTO customers VALUES (1, '52998224725'); INSERT INTO quotes VALUES (1, 'Q-1');
    INSERT INTO sales VALUES (1, 'S-1', 'A', '2026-10-01', 1, 1);
    INSERT INTO evidences VALUES (1, 1, 1, 'customer_voice', 'a/1.mp3', '2026-10-01');
    INSERT INTO evidences VALUES (2, NULL, 1, 'payer_voice', 'a/2.mp3', '2026-10-01', 1);
"""
IN_ONE_ROW = """
    CREATE TABLE contracts (id int PRIMARY KEY, number text UNIQUE, client_cpf text, payer_cpf text, grp text);
    CREATE TABLE contract_files (
      id int PRIMARY KEY, contract_id int REFERENCES contracts, kind text, key text, created_at date);
    INSERT INTO contracts VALUES (1, 'S-1', '52998224725', NULL, 'A');
    INSERT INTO contracts VALUES (2, 'S-2', '52998224725', '11144477735', 'B');
    INSERT INTO contract_files VALUES (1, 1, 'client_voice', 'a/1.mp3'), (2, 2, 'payer_voice', 'a/2.mp3');
"""
BELOW = """
    CREATE TABLE evidences (id int PRIMARY KEY, sale_id int, type text, file text);
    INSERT INTO evidences VALUES (1, 1, 'POV', 'calls/1.mp3'), (2, 1, 'KYC', 'ids/2.pdf');
"""


@pytest.mark.parametrize(
    ("tables", "keys", "said"),
    [
        (OF_TWO_KINDS, "", "# which rows count? some may not, by type (EnergyDeal, TelecomDeal); true for all"),
        (WITH_PREVIEWS, "", "# which rows count? some may not, by attached_as (file, preview); true for all"),
        (ORDINALS, "", 'codes = { 0 = "POV", 5 = "KYC" } }  # REVIEW: by the names of their files'),
        (
            f"{ORDINALS}; INSERT INTO evidences VALUES (3, 1, 5, 'pov.mp3', 'a/3')",
            "",
            '{ 0 = "TODO", 5 = "TODO" }',
        ),
        (LABELS, "", 'codes = { HOLDER_VOICE = "POV", FACE_MATCH = "KYC", UTILITY_BILL = "TODO" }'),
        (OF_QUOTES, "", 'sale_id = { sql = "TODO" }  # rows without sale_id name a sale by quote_id: which one?'),
        (OF_QUOTES, "", """{ sql = 'this."payer_id" IS NULL OR this."payer_id" = this."customer_id"' }"""),
        (IN_ONE_ROW, "", "# REVIEW: the payer's CPF is the client's, or none is named"),
        (BELOW, "media/calls/1.mp3", "# REVIEW: as the bucket knows it: below media/"),
        (BELOW, "media/calls/1.mp3 old/ids/2.pdf", "# the keys lie below several folders (media/, old/)"),
    ],
)
def test_a_draft_takes_no_row_for_evidence_that_other_rows_or_the_bucket_contradict(
    empty_database: Database, tables: str, keys: str, said: str
) -> None:
    with empty_database.transaction() as connection:
        raw(connection).execute(tables.encode())
    holds = keys.split().__contains__ if keys else None
    assert said in draft_map(empty_database, "America/Sao_Paulo", holds, ["media/", "old/"]).text


def test_the_command_looks_for_keys_below_the_folders_of_the_bucket(
    empty_database: Database,
    bucket: Bucket,
    bucket_environment: Mapping[str, str],
    s3: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with empty_database.transaction() as connection:
        raw(connection).execute(BELOW.encode())
    s3.put_object(Bucket=bucket.name, Key="media/eu/calls/1.mp3", Body=b"1")
    environ = environment(empty_database, bucket_environment, "none") | {"TOOLKIT_SERVICE_MAP": ""}
    assert main(["db", "map"], environ) == 3
    assert "as the bucket knows it: below media/eu/" in capsys.readouterr().out


TENANTS = """
    CREATE SCHEMA north; CREATE SCHEMA south;
    CREATE TABLE north.sales (id text, grp text, payer boolean, at timestamptz);
    CREATE TABLE north.files (id uuid, sale text, kind text, key text, at timestamptz);
    CREATE TABLE south.sales (LIKE north.sales);
    INSERT INTO north.sales VALUES ('S-1', 'A', true, '2026-10-02 02:30Z');
    INSERT INTO south.sales VALUES ('S-2', 'B', true, '2026-10-02 02:30Z');
    ALTER TABLE south.sales ENABLE ROW LEVEL SECURITY;
    DO $$ BEGIN CREATE ROLE plain_reader NOLOGIN; CREATE ROLE plain_night NOLOGIN;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
    GRANT USAGE ON SCHEMA north, south TO plain_reader;
    GRANT SELECT ON ALL TABLES IN SCHEMA north, south TO plain_reader;
"""

_UNION = re.compile(r'from = "\(.*')

MAP = """
    timezone = "UTC"
    clients = { absent = true }
    addresses = { absent = true }
    [sales]
    from = "(SELECT * FROM north.sales UNION ALL SELECT * FROM south.sales)"
    [sales.columns]
    id = "id"
    client_id = { absent = true }
    utility_group = "grp"
    is_client_financial_responsible = "payer"
    partner = { absent = true }
    created_at = "at"
    completed_at = { absent = true }
    [evidences]
    from = "north.files"
    [evidences.columns]
    id = "id"
    sale_id = "sale"
    file_name = { absent = true }
    file_format = { absent = true }
    type = { absent = true }
    evidence_type = "kind"
    object_key = "key"
    requested_by = { absent = true }
    requested_at = "at"
    expires_at = { absent = true }
"""


def test_a_check_says_which_tables_may_hide_rows(empty_database: Database, tmp_path: Path) -> None:
    with empty_database.transaction() as connection:
        raw(connection).execute(TENANTS.encode())
    mapping = mapping_of(MAP, tmp_path)
    with mapped(empty_database) as database:
        schema.upgrade(database, service_map=mapping)
        proof = prove(database, mapping)
        assert proof.rows == {"clients": 0, "addresses": 0, "sales": 2, "evidences": 0}
        assert proof.deviations == ()
        assert proof.picture["sales.utility_group"] == "A 1, B 1"
        with database.transaction() as connection:
            connection.exec_driver_sql("ALTER VIEW audit_service.sales OWNER TO plain_reader")
            connection.exec_driver_sql("GRANT USAGE ON SCHEMA audit_service TO plain_night")
            connection.exec_driver_sql("GRANT SELECT ON ALL TABLES IN SCHEMA audit_service TO plain_night")
        observe_service(database, wall_clock)
        audit = run_audit(database, clock=wall_clock)
        (told,) = (text for text in notices(audit) if "security" in text)
        assert told.startswith("Row level security may hide rows of south.sales from the role that reads them")
    with mapped(empty_database, role="plain_night") as night:
        proof = prove(night, mapping)
    assert proof.rows["sales"] == 1
    (hidden,) = proof.deviations
    assert hidden.text.startswith(
        "sales.from: south.sales has row level security, which holds for role plain_reader: nobody can count"
    )


@pytest.mark.parametrize(
    ("view", "hidden"),
    [
        (
            "CREATE VIEW north.shown AS SELECT * FROM south.sales; ALTER VIEW north.shown OWNER TO plain_reader",
            True,
        ),
        (
            "CREATE VIEW north.inside WITH (security_invoker = true) AS SELECT * FROM south.sales; "
            "CREATE VIEW north.shown AS SELECT * FROM north.inside; ALTER VIEW north.shown OWNER TO plain_reader",
            True,
        ),
        ("CREATE VIEW north.shown AS SELECT * FROM south.sales", False),
    ],
)
def test_a_check_sees_policies_behind_the_views_of_the_service(
    empty_database: Database, tmp_path: Path, view: str, hidden: bool
) -> None:
    with empty_database.transaction() as connection:
        raw(connection).execute(
            f"{TENANTS}; {view}; GRANT SELECT ON ALL TABLES IN SCHEMA north TO plain_reader".encode()
        )
    mapping = mapping_of(_UNION.sub('from = "north.shown"', MAP), tmp_path)
    with mapped(empty_database) as database:
        with database.transaction() as connection:
            make_views(connection, mapping)
        found = [each.text for each in prove(database, mapping).deviations if "row level security" in each.text]
    expected = "sales.from: south.sales has row level security, which holds for role plain_reader"
    assert [text.startswith(expected) for text in found] == [True] * hidden


def test_a_check_counts_rows_that_a_filter_leaves_out_by_mistake(empty_database: Database, tmp_path: Path) -> None:
    with empty_database.transaction() as connection:
        raw(connection).execute(TENANTS.encode())
        connection.exec_driver_sql(
            "INSERT INTO north.files SELECT gen_random_uuid(), 'S-1', kind, kind, '2026-10-01 02:30Z' "
            "FROM (VALUES ('POV'), ('gone'), (NULL)) AS files(kind)"
        )
    text = MAP.replace('from = "north.files"', """from = "north.files"\nwhere = "this.kind <> 'gone'" """)
    mapping = mapping_of(text, tmp_path)
    with mapped(empty_database) as database:
        schema.upgrade(database, service_map=mapping)
        proof = prove(database, mapping)
    assert [deviation.text for deviation in proof.deviations] == [
        "evidences.requested_at: 1 rows: lies before its sale: are the zones right?",
        "evidences.where: 1 rows: left out, because where is neither true nor false for them; is a value missing?",
    ]
    assert "evidences: 1 of 3 rows are left out by where." in proof.notes
    assert proof.picture["evidences.evidence_type"] == "POV 1"


@pytest.mark.parametrize(
    ("key", "known", "form"),
    [
        ("/a/1.mp3", "a/1.mp3", 'without the slash in front only: strip = "/+"'),
        ("evidence/a/1.mp3", "a/1.mp3", "without the first folder only"),
        ("a%20b.mp3", "a b.mp3", "with %20 and the like decoded only: url = true"),
        ("a+b.mp3", "a b.mp3", "with a blank for each + only"),
    ],
)
def test_a_check_names_keys_that_the_bucket_knows_in_another_form(
    empty_database: Database, tmp_path: Path, key: str, known: str, form: str
) -> None:
    with empty_database.transaction() as connection:
        raw(connection).execute(TENANTS.encode())
        for each in (key, "2.mp3", "never-uploaded.mp3"):
            connection.exec_driver_sql(
                "INSERT INTO north.files VALUES (gen_random_uuid(), 'S-1', 'POV', %s, '2026-10-03 02:30Z')",
                (each,),
            )
    mapping = mapping_of(MAP, tmp_path)
    with mapped(empty_database) as database:
        with database.transaction() as connection:
            make_views(connection, mapping)
        (found,) = prove(database, mapping, {known, "2.mp3"}.__contains__).deviations
    assert f"1 rows: of the 3 newest, the bucket knows these {form}" in found.text


ELSEWHERE = """
    CREATE SCHEMA north; CREATE EXTENSION file_fdw; CREATE SERVER head_office FOREIGN DATA WRAPPER file_fdw;
    CREATE FOREIGN TABLE north.sales (id text, grp text, payer boolean, at timestamptz) SERVER head_office
        OPTIONS (program 'echo S-1,A,true,2026-10-02 02:30Z', format 'csv');
    CREATE TABLE north.file (id uuid, sale text, kind text, key text, at timestamptz);
    INSERT INTO north.file VALUES (gen_random_uuid(), 'S-1', 'POV', 'a/1.mp3', '2026-10-02 03:00Z');
    CREATE MATERIALIZED VIEW north.copy AS SELECT * FROM north.file;
    CREATE VIEW north.files AS SELECT * FROM north.copy;
"""


def test_rows_of_another_database_and_copies_are_told_and_never_written(
    empty_database: Database, tmp_path: Path
) -> None:
    draft = drafted(empty_database, ELSEWHERE)
    assert 'from = "north.sales"  # REVIEW: a table of another database' in draft.text
    mapping = mapping_of(_UNION.sub('from = "north.sales"', MAP), tmp_path)
    with mapped(empty_database) as database:
        schema.upgrade(database, service_map=mapping)
        proof = prove(database, mapping)
        with pytest.raises(WriteRefused, match=r"read from north\.sales, which is a table of another database"):
            require_writable(database, "sales.complete")
    assert proof.rows == {"clients": 0, "addresses": 0, "sales": 1, "evidences": 1}
    assert proof.deviations == ()
    assert proof.notes[:2] == (
        "evidences: north.copy is a materialised view: it holds what there was when it was refreshed last, and "
        "PostgreSQL does not keep when that was.",
        "sales: north.sales stands in another database, of server head_office.",
    )


DRAFTED = Path(__file__).parents[1] / "data" / "service_maps" / "drafted"


SHOWN = "the one that is shown"


def answered(draft: str, answers: dict[str, str]) -> str:
    """Return the draft with other values at these places, written as ``relation.column``."""
    lines, relation = draft.splitlines(), ""
    for number, line in enumerate(draft.splitlines()):
        relation = line.strip("[]").partition(".")[0] if line.startswith("[") else relation
        column = line.partition(" = ")[0]
        if answer := answers.get(f"{relation}.{column}"):
            lines[number] = "" if answer == SHOWN else f"{column} = {answer}"
            following = range(number + 1, len(lines)) if answer == SHOWN else ()
            for shown in takewhile(lambda place: lines[place].startswith("# "), following):
                lines[shown] = lines[shown].removeprefix("# ")
    return "\n".join(lines)


@pytest.mark.parametrize("kind", sorted(path.stem for path in DRAFTED.glob("*.sql")))
def test_a_draft_gives_the_verdicts_once_its_questions_are_answered(
    empty_database: Database, tmp_path: Path, kind: str
) -> None:
    """Each file begins with what is special about it, its answers (most need none), and the keys in the bucket."""
    tables = (DRAFTED / f"{kind}.sql").read_text(encoding="utf-8")
    notes = {"NAMES": "SELECT '', ''"} | dict(re.findall("^-- (KEYS|NAMES): (.*)$", tables, re.MULTILINE))
    with empty_database.transaction() as connection:
        raw(connection).execute((MAPS / "story.sql").read_bytes() + tables.encode())
        keys = set(connection.exec_driver_sql(notes["KEYS"].replace("%", "%%")).scalars())
        named = {row[0]: row[1] for row in connection.exec_driver_sql(notes["NAMES"].replace("%", "%%"))}
        connection.exec_driver_sql("DISCARD TEMP")
    draft = draft_map(empty_database, "America/Sao_Paulo", keys.__contains__)
    answers = dict(re.findall("^-- FILL: ([a-z._]+) = (.*)$", tables, re.MULTILINE))
    assert set(draft.to_fill_in) == answers.keys()
    assert [said for said in re.findall("^-- SAYS: (.*)$", tables, re.MULTILINE) if said not in draft.text] == []
    mapping = mapping_of(answered(draft.text, answers), tmp_path)
    with mapped(empty_database) as database:
        with database.transaction() as connection:
            make_views(connection, mapping)
            found = {row.id: row for row in connection.execute(sa.select(sales))}
            records = connection.execute(sa.select(evidences)).all()
        assert prove(database, mapping, keys.__contains__).deviations == ()
    assert {named.get(sale, sale) for sale in found} == {f"S-{number}" for number in range(1, 8)}
    judged = {}
    for sale in found.values():
        counted = [
            Evidence(EvidenceType(record.evidence_type), EvidenceState.COUNTED)
            for record in records
            if record.sale_id == sale.id and record.object_key in keys
        ]
        payer, completed = sale.is_client_financial_responsible, sale.completed_at is not None
        verdict = evaluate(Sale(sale.utility_group, payer, completed), counted)
        if verdict.status is not Status.COMPLIANT:
            missing = "|".join(piece.evidence_type for piece in verdict.missing)
            told = (sale.utility_group, verdict.status, missing, "|".join(verdict.problems))
            judged[named.get(sale.id, sale.id)] = told
    assert judged == STORY
