"""Service's tables as other teams build them, read by a service.sql: what is refused, and how sales are judged."""

import json
import os
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.support.audit_results import csv_rows
from tests.support.client_rows import client, write_csv
from tests.support.request_bodies import CLIENT, UPLOAD
from tests.support.uploaded_sales import MP3, PDF, execute, partner_of, rows
from toolkit.database import schema, statements
from toolkit.database.connection import Database, raw
from toolkit.database.service import evidences, load_service, sales
from toolkit.errors import AlreadyThere, DatabaseError, InvalidFields, WriteRefused
from toolkit.evidence.completion import complete_sale
from toolkit.evidence.credentials import UploadLimits, request_manifest, request_upload
from toolkit.intake.clients import load_clients
from toolkit.intake.registration import register_client
from toolkit.intake.sales import load_sales
from toolkit.progress import Progress

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
CODES = "CASE a WHEN 'x' THEN CASE WHEN b THEN 'Q' END ELSE 'R''S' END"
LIMITS = UploadLimits(3600, 1_000_000)
BODY = UPLOAD | {"fileName": "pov.mp3", "fileFormat": "audio/mpeg", "type": "audio/mpeg", "evidenceType": "POV"}


@pytest.fixture
def made(empty_database, bucket_environment):
    """Make the tables of another team, which own them, and open the database to read them; beside a bucket."""
    with ExitStack() as opened:

        def make(kind):
            with empty_database.transaction() as connection:
                raw(connection).execute((SERVICES / f"{kind}.sql").read_bytes())
            url = empty_database.engine.url.render_as_string(hide_password=False)
            database = Database(url, lambda: NOW, service=load_service(SERVICES / f"{kind}.service.sql"))
            opened.callback(database.dispose)
            return database

        yield make


def environment(database):
    url = database.engine.url.render_as_string(hide_password=False)
    return os.environ | {"DATABASE_URL": url, "TOOLKIT_SERVICE_SQL": str(database.service.source)}


@pytest.fixture
def put_files(put):
    """Puts a file of its kind under each key of a database."""

    def put_files(database):
        for key in database.run(lambda connection: connection.scalars(sa.select(evidences.c.object_key)).all()):
            put(key, PDF if key.endswith(".pdf") else MP3)

    return put_files


@pytest.mark.parametrize("kind", KINDS)
def test_every_schema_gives_the_same_report(run, made, put_files, tmp_path, kind):
    other = made(kind)
    environ = environment(other)
    run("db", "upgrade", within=environ)
    put_files(other)
    run("db", "check", within=environ)
    run("report", "--out", tmp_path, "--format", "csv", within=environ)
    names = ("utilityGroup", "status", "missing", "problems")
    assert {row["saleId"]: tuple(row[name] for name in names) for row in csv_rows(tmp_path)} == STORY
    told = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert (told["sales"], told["compliant"]) == (7, 3)


@pytest.mark.parametrize("kind", WRITABLE)
def test_credentials_are_stored_where_the_service_keeps_its_records(made, bucket, put_files, kind):
    other = made(kind)
    schema.upgrade(other)
    put_files(other)
    issued = request_upload(other, bucket, "V-5", BODY, partner_of(other, "V-5"), LIMITS)
    with other.transaction() as connection:
        row = connection.execute(sa.select(evidences).where(evidences.c.id == issued.id)).one()
        told = connection.scalars(sa.text("SELECT kind FROM audit.custody_events WHERE detail ? 'evidence'")).all()
    assert (row.sale_id, row.evidence_type, row.object_key) == ("V-5", "POV", issued.fields["key"])
    assert told == ["ASKED", "ISSUED"]
    assert complete_sale(other, bucket, "V-1").completed_at == NOW
    assert complete_sale(other, bucket, "V-1").already
    assert complete_sale(other, bucket, "V-2").completed_at is None
    done = sa.select(sales.c.id).where(sales.c.completed_at.is_not(None)).order_by("id")
    assert other.run(lambda connection: connection.scalars(done).all()) == ["V-1", "V-5"]


_TRIGGERED = """
    CREATE OR REPLACE FUNCTION triggered() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {} RETURN NULL; END $$;
    CREATE TRIGGER triggered BEFORE INSERT ON "Client" FOR EACH ROW EXECUTE FUNCTION triggered();
    CREATE TRIGGER triggered BEFORE INSERT ON "Evidence" FOR EACH ROW EXECUTE FUNCTION triggered();
    CREATE TRIGGER triggered BEFORE UPDATE ON "Sale" FOR EACH ROW EXECUTE FUNCTION triggered();
    ALTER TABLE "Address" DROP CONSTRAINT "Address_clientId_fkey";
"""


def test_what_the_service_drops_without_an_error_is_not_told_as_done(made, bucket, put_files, tmp_path):
    other = made("prisma")
    schema.upgrade(other)
    put_files(other)
    execute(other, _TRIGGERED.format(""))
    other_id = """IF TG_TABLE_NAME = 'Client' THEN NEW.id := gen_random_uuid(); RETURN NEW; END IF;"""
    clients = rows(other, 'TABLE "Client"')
    other_cpf = other_id.replace("id := gen_random_uuid()", "cpf := '52998224724'")
    for body in other_id, other_cpf, "":
        execute(other, _TRIGGERED.format(body).partition("CREATE TRIGGER")[0])
        with pytest.raises(AlreadyThere, match=r"did not store it as given.*\(add_clients: id, cpf, "):
            register_client(other, CLIENT)
    assert rows(other, 'TABLE "Client"') == clients
    loaded = load_clients(other, [write_csv(tmp_path / "a.csv", [client(1)])], out=tmp_path)
    assert (loaded.accepted, loaded.rejected) == (0, 1)
    key = """IF TG_TABLE_NAME = 'Evidence' THEN NEW."s3Key" := '/' || NEW."s3Key"; RETURN NEW; END IF;"""
    for body in "", key:  # the latter stores another key than its form is for
        execute(other, _TRIGGERED.format(body).partition("CREATE TRIGGER")[0])
        with pytest.raises(AlreadyThere, match=r"did not store it as given.*\(add_records: id, "):
            request_upload(other, bucket, "V-5", BODY, partner_of(other, "V-5"), LIMITS)
    (manifest := tmp_path / "manifest.csv").write_text(f"saleId,{','.join(BODY)}\nV-5,{','.join(BODY.values())}\n")
    with pytest.raises(AlreadyThere, match=r"did not store it as given.*\(add_records: id, "):
        request_manifest(other, bucket, manifest, tmp_path / "credentials.jsonl", LIMITS, Progress())
    assert rows(other, "SELECT kind FROM audit.custody_events WHERE kind = 'ISSUED'") == []
    with pytest.raises(WriteRefused, match="left the sale 'V-1' without a completed_at"):
        complete_sale(other, bucket, "V-1")
    execute(other, 'DROP TRIGGER triggered ON "Sale"')
    other.service.statements["complete_sale"] = other.service.statements["complete_sale"].partition("WHERE")[0]
    with pytest.raises(WriteRefused, match="or completed others with it"):
        complete_sale(other, bucket, "V-1")
    execute(other, 'ALTER TABLE "Sale" ALTER "isClientFinancialResponsible" TYPE text')
    with pytest.raises(DatabaseError, match="must be type boolean, not type text"):
        complete_sale(other, bucket, "V-2")


def test_sales_that_the_service_leaves_as_they_were_are_not_told_as_updated(database, tmp_path):
    kept = database.service.statements["add_sales"].partition("ON CONFLICT")[0] + "ON CONFLICT DO NOTHING"
    service = replace(database.service, statements={**database.service.statements, "add_sales": kept})
    with Database(database.engine.url.render_as_string(hide_password=False), service=service) as other:
        for group, refused in ("A", nullcontext()), ("B", pytest.raises(WriteRefused, match="left sales as they")):
            head = "saleId,clientId,utilityGroup,isClientFinancialResponsible,createdAt"
            (file := tmp_path / "sales.csv").write_text(f"{head}\n1,,{group},true,2026-10-01\n", "utf-8")
            with refused:
                assert load_sales(other, file, timezone=UTC).inserted == 1
    keeps = "CREATE FUNCTION keeps() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN OLD; END$$"
    execute(database, keeps, "CREATE TRIGGER keeps BEFORE UPDATE ON sales FOR EACH ROW EXECUTE FUNCTION keeps()")
    service = replace(database.service, source=tmp_path / "service.sql", read={}, stored={})
    refused = pytest.raises(WriteRefused, match=r"left sales as they.* '1' \(utilityGroup\)")
    with Database(database.engine.url.render_as_string(hide_password=False), service=service) as other, refused:
        load_sales(other, file, timezone=UTC)


def test_what_the_service_refuses_or_stores_with_a_mask_is_told_so(made, bucket, tmp_path):
    other = made("prisma")
    schema.upgrade(other)
    for change in "ADD shop int NOT NULL DEFAULT 1", "ALTER shop DROP DEFAULT":
        execute(other, f'ALTER TABLE "Client" {change}')
    with pytest.raises(InvalidFields, match=r"Breaks a rule of the service \(shop\)"):
        register_client(other, CLIENT)
    mask = r"NEW.shop := 1; NEW.cpf := regexp_replace(NEW.cpf, '(...)(...)(...)', '\1.\2.\3-'); RETURN NEW;"
    execute(other, _TRIGGERED.format(f"IF TG_TABLE_NAME = 'Client' THEN {mask} END IF;"))
    with pytest.raises(InvalidFields, match=r"\(value too long for type character varying\(11\)\)"):
        register_client(other, CLIENT)
    execute(other, 'ALTER TABLE "Client" ALTER cpf TYPE text')
    for number in 1, 2:
        file = write_csv(tmp_path / "a.csv", [client(each) for each in range(number)])
        assert load_clients(other, [file], out=tmp_path).accepted == 1
    execute(other, 'CREATE RULE no_row AS ON INSERT TO "Evidence" DO INSTEAD NOTHING')
    with pytest.raises(AlreadyThere, match="did not store it as given"):
        request_upload(other, bucket, "V-5", BODY, partner_of(other, "V-5"), LIMITS)


def test_what_a_trigger_moves_to_another_table_is_stored(made, bucket):
    other = made("prisma")
    schema.upgrade(other)
    tables = (f'CREATE TABLE "{each} of now" () INHERITS ("{each}")' for each in ("Client", "Evidence"))
    moves = """EXECUTE 'INSERT INTO "' || TG_TABLE_NAME || ' of now" SELECT ($1).*' USING NEW;"""
    execute(other, *tables, _TRIGGERED.format(moves))
    assert register_client(other, CLIENT).message == "Client created"
    issued = request_upload(other, bucket, "V-5", BODY, partner_of(other, "V-5"), LIMITS)
    stored = sa.select(evidences.c.sale_id).where(evidences.c.id == issued.id)
    assert other.run(lambda connection: connection.scalar(stored)) == "V-5"


def test_a_skeleton_shows_columns_and_codes_and_no_value_of_a_person(run, made, put_files):
    other = made("legado")
    execute(other, "ALTER TABLE evidencias ADD kind text DEFAULT 'A::Cópia\\B', ADD cancel char(1) DEFAULT ' '")
    execute(other, "CREATE TABLE modelo (id text PRIMARY KEY)", "INSERT INTO modelo VALUES ('A'), ('B')")
    execute(other, "ALTER TABLE evidencias ADD fim date NOT NULL DEFAULT '9999-12-31'")
    execute(other, "ALTER TABLE evidencias ADD apagado_ms bigint NOT NULL DEFAULT 0")
    execute(other, "UPDATE evidencias SET apagado_ms = 1759320000000 + seq WHERE seq > 1")
    execute(other, "ALTER TABLE evidencias ADD estado text, ADD modelo text DEFAULT 'A' REFERENCES modelo")
    execute(other, "ALTER TABLE clientes ADD UNIQUE (matricula, rg)", "ALTER TABLE evidencias ADD valid daterange")
    execute(other, "UPDATE evidencias SET kind = 'Both', cancel = 'X', modelo = 'B', estado = '-' WHERE seq > 6")
    put_files(other)
    environ = environment(other)
    del environ["TOOLKIT_SERVICE_SQL"]
    execute(other, "ANALYZE vendas")  # of the others nobody knows how many rows they have
    named = ("--sales", "vendas", "--records", "evidencias", "--clients", "clientes")
    text = run("db", "map", *named, within=environ).out
    assert "in the bucket lie 5 of 5 tried: rtrim(ltrim(pasta, '/'), '/') || '/' || arquivo" in text
    for expected in (
        "--   public.evidencias\n",
        "--   public.vendas (",
        "TODO AS utility_group,",
        "matricula (character varying; part of unique)",
        "tp_evidencia (character varying; ACT, DCT",
        "kind (text; A::Cópia\\B, Both; may be NULL)",
        "cancel (character; '', X; may be NULL)",
        "FROM vendas",
        "fim (date); apagado_ms (bigint); estado (text; ...; may be NULL); modelo (text; ",
        "-> modelo; A, B; may be NULL); valid (daterange",
    ):
        assert expected in text
    for secret in ("Energia Certa", "529", "Gonçalves", "7700001", "V-1", "São Paulo"):
        assert secret not in text


def test_a_check_tells_of_keys_that_are_not_in_the_bucket_and_of_what_cannot_be_written(run, made, tmp_path):
    environ = environment(made("legado"))
    text = Path(environ["TOOLKIT_SERVICE_SQL"]).read_text("utf-8")
    text = text.replace("cod_cliente AS client_id", "'C-' || cod_cliente AS client_id")
    stored = "-- name: add_records\nINSERT INTO evidencias (seq, num_venda) SELECT 1, sale_id FROM new_records"
    (tmp_path / "service.sql").write_text(text + stored, "utf-8")
    environ["TOOLKIT_SERVICE_SQL"] = str(tmp_path / "service.sql")
    run("db", "upgrade", within=environ)
    told = run("db", "check", ends=3, within=environ)
    assert "None of the 12 newest object_key lies in the bucket" in told.out
    assert "sales, client_id: values that are no uuid, and are read as NULL: 7. Write" in told.out
    assert "does not store id, evidence_type, object_key, requested_at, which the contract requires" in told.err
    assert "add_records stores nothing: its ids are uuids, and those that are read are whole" in told.err


def test_a_check_tells_of_keys_that_lie_in_the_bucket_in_another_form(run, made, put):
    forms = {
        "s3://.../key, /key -> key": ("s3://crm/a.pdf", "a.pdf"),
        "%20 -> ' '": ("https://crm.example/a%%20b.pdf", "a b.pdf"),  # for the driver
        "+ -> ' '": ("a+c.pdf", "a c.pdf"),
        "normalize(key, NFC)": ("e\N{COMBINING ACUTE ACCENT}.pdf", "\N{LATIN SMALL LETTER E WITH ACUTE}.pdf"),
        "normalize(key, NFD)": ("\N{LATIN SMALL LETTER A WITH ACUTE}.pdf", "a\N{COMBINING ACUTE ACCENT}.pdf"),
    }
    other = made("django")
    put("media/evidence/2026/10/107_doc_contratante.pdf")  # so that not all of them are elsewhere
    for place, (given, key) in enumerate(forms.values(), 1):
        execute(other, f"UPDATE crm.sales_evidence SET file = '{given}' WHERE id = {place}")
        put(key)
    environ = environment(other)
    run("db", "upgrade", within=environ)
    told = run("db", "check", ends=3, within=environ).out
    for form in forms:
        assert f"Of 12 object_key tried, 1 lie in the bucket in another form: {form}\n" in told
    assert "newest" not in told


def test_a_filter_that_no_record_passes_and_what_unknown_codes_become_are_told(run, made, put_files, tmp_path):
    database = made("legado")
    made_of = "CASE WHEN tp_evidencia IS NULL THEN NULL WHEN tp_evidencia = 'ACT' THEN 'POV' ELSE 'KYC' END"
    execute(
        database,
        "ALTER TABLE evidencias ADD substituta bigint REFERENCES evidencias (seq)",
        f"ALTER TABLE evidencias ADD tipo text GENERATED ALWAYS AS ({made_of}) STORED",
        f"CREATE VIEW visto AS SELECT num_venda AS venda, {made_of} AS tipo FROM evidencias WHERE seq > 0",
    )
    execute(database, "CREATE TABLE revisao (evidencia integer REFERENCES evidencias, venda text)")
    put_files(database)
    environ = environment(database)
    text = Path(environ["TOOLKIT_SERVICE_SQL"]).read_text("utf-8")
    code = "CASE fl_resp_financeiro WHEN 'S' THEN true WHEN 'N' THEN false END"
    text = text.replace(code, "CASE WHEN fl_resp_financeiro = 'N' OR cod_cliente IS NULL THEN false ELSE true END")
    path = tmp_path / "service.sql"
    text = text.replace("public.evidencias", "public.evidencias WHERE tp_evidencia = 'act'")
    text = text.replace(
        "ELSE tp_evidencia", "WHEN '?' THEN (SELECT visto.tipo FROM visto WHERE venda = '') ELSE tipo"
    )
    path.write_text(text, "utf-8")
    environ["TOOLKIT_SERVICE_SQL"] = str(path)
    run("db", "upgrade", within=environ)
    told = run("db", "check", ends=3, within=environ)
    assert "records: the statement yields none of the rows of its table." in told.out
    assert "sales, is_client_financial_responsible: nobody tells of codes that are new" in told.err
    assert "responsible: what is missing is an answer, and nobody tells (IS NULL)." in told.err
    assert "visto, tipo: what is missing is an answer, and nobody tells (IS NULL)." in told.err
    for place in "evidencias", "visto":
        assert f"{place}, tipo: nobody tells of codes that are new, or NULL: they become 'KYC'." in told.err
    assert "substituta (bigint; -> evidencias; may be NULL)" in told.err
    assert "Rows of tables that are not read refer to sales or records: revisao\n" in told.err
    assert "The view public.visto may leave rows of its tables out: nobody counts those." in told.err
    assert "No file that an evidence record names lies in the bucket" in run("audit", ends=3, within=environ).err


@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        ('SELECT a FROM "Sale" s, crm.x AS y JOIN (SELECT b FROM c) z ON f(a, b)', ['"Sale"', "crm.x", "c"]),
        ("WITH one AS (SELECT 'FROM a.b' FROM ONLY x.t) SELECT EXTRACT(year FROM one.at) FROM one", ["x.t"]),
    ],
)
def test_tables_are_found_in_a_statement(statement, tables):
    assert statements.tables_in(statement) == tables


@pytest.mark.parametrize(
    ("statement", "cut"),
    [
        ("WITH a AS (SELECT b FROM c FETCH FIRST 20 ROWS ONLY) SELECT b FROM a", "FETCH"),
        ("SELECT (SELECT a FROM b LIMIT 9) FROM c, LATERAL (SELECT d FROM e ORDER BY g LIMIT 9) AS f", None),
        ("SELECT a FROM c JOIN LATERAL (SELECT d FROM e LIMIT 1) AS f ON true", "LIMIT without ORDER BY"),
        ("SELECT a FROM b UNION (SELECT c FROM d WHERE e IN (SELECT f FROM g LIMIT 5))", "LIMIT"),
        ("SELECT DISTINCT ON (a, f(b)) a FROM d ORDER BY a, b", "DISTINCT ON without ORDER BY of more columns"),
        ("SELECT DISTINCT ON (a, f(b, c)) a FROM d ORDER BY a, f(b, c), e DESC", None),
        ("SELECT DISTINCT first_value(a) OVER (PARTITION BY b) FROM c", "first_value() without ORDER BY"),
    ],
)
def test_what_leaves_rows_out_by_chance_is_found(statement, cut):
    assert statements.cut_off(statement) == cut


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("coalesce((SELECT a FROM b FETCH FIRST ROW ONLY), any_value(c))", ["any_value", "FETCH"]),
        ("(array_agg(a))[1], (array_agg(b ORDER BY c))[1], (SELECT d FROM e LIMIT 1)", ["array_agg", "LIMIT"]),
        ("f(a -> 'b' ->> 0, c #>> '{d,-1}', e[1]) AS kind", ["->> 0", "#>>", "[1]"]),
        ("f(a -> 'b0' ->> 'c', d #>> '{e1}', (regexp_match(f, 'g'))[1]) AS kind", []),
        ("EXISTS (SELECT FROM d LIMIT 1), (SELECT min(e) AS g FROM b ORDER BY 1 LIMIT 1), f(g) AS kind", ["min"]),
    ],
)
def test_a_value_that_is_one_of_several_is_found(value, words):
    assert statements.taken_of_several(f"SELECT {value} FROM f", ["kind"]) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("NOT EXISTS (SELECT FROM a WHERE b IS NULL)", ["EXISTS"]),
        ("CASE WHEN a IS NULL THEN true WHEN a = 'N' THEN false END", ["IS NULL"]),
        ("c IN (SELECT d FROM e) OR coalesce(a, b) = b", ["COALESCE", "IN"]),
        ("a IS TRUE OR b IN ('S') OR coalesce(a, b)", []),
    ],
)
def test_an_answer_that_what_is_missing_gives_is_found(value, words):
    assert sorted(statements.answers_of_nothing(f"SELECT {value} AS kind FROM f", "kind")) == words


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        (f"SELECT {CODES} kind, NULL::text AS other", (["Q", "R'S"], ["'R''S'"], True)),
        ("SELECT 1, a <> 'n' AS kind, NULL AS other UNION (SELECT 2, 'Q', c FROM d)", (["Q"], ["TRUE"], False)),
        ("SELECT a ~ 'y' OR b = ANY('{z}') AS kind, c AS other FROM d", ([], ["FALSE"], False)),
        ("SELECT (SELECT (a @> 'y')::bool AS c FROM b) AS kind, NULL AS other", ([], ["FALSE"], True)),
        ("SELECT f(a.b) AS kind, c AS other FROM (SELECT coalesce(d, 1) AS b FROM e) AS a", ([], ["1"], False)),
        (f"WITH a (c) AS (SELECT {CODES}) SELECT c AS kind FROM a AS b", (["Q", "R'S"], ["'R''S'"], False)),
        ("SELECT a.kind IS NOT FALSE AS kind FROM (SELECT 'Q' AS kind) AS b, c AS a", ([], ["TRUE"], False)),
        ("WITH a AS (SELECT 'Q' AS kind) SELECT kind, c AS other FROM b WHERE c IN (TABLE a)", ([], [], False)),
    ],
)
def test_what_a_column_is_made_of_is_found(statement, found):
    kind = [each(statement, "kind") for each in (statements.constants, statements.defaults)]
    assert (*kind, statements.is_null(statement, "other")) == found


def test_where_ids_come_from_is_found_in_each_part_of_a_union():
    one = "SELECT (SELECT max(a) FROM b) AS c, 'V' || f.e AS id FROM d JOIN f ON f.e = d.e"
    statement = f"WITH g AS (SELECT uuidv7() AS id FROM i) {one} UNION SELECT 1, id FROM g"
    assert statements.sources_of(statement, "id") == ["f", "i"]
    union = "SELECT (SELECT a FROM b), c.id FROM (SELECT * FROM d JOIN e USING (f) UNION SELECT * FROM h) AS c"
    assert statements.sources_of(union, "id") == ["d", "h"]
    assert statements.chance(statement, "id") == "uuidv7"
    assert not statements.is_null(" UNION ".join(["SELECT a.id FROM (SELECT * FROM b) AS a"] * 12), "id")
    assert statements.tree_of("SELECT a FROM GRAPH_TABLE (g MATCH (a) COLUMNS (a.b))") is None  # not known
