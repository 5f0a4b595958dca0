"""No calm wrong answer: in every wrong world of the service, and in mixtures of two, the sentence is said."""

import random
import re
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa

from tests.support.audits import made_audit
from tests.support.evidence_files import pdf, tone
from tests.support.uploaded_sales import rows
from tests.worlds.services import STATEMENTS, TABLES, WORLDS, replaced
from toolkit.audit.observe_bucket import sync_bucket
from toolkit.database import schema
from toolkit.database.connection import Database, raw
from toolkit.database.observations import last_reading
from toolkit.database.service import load_service
from toolkit.errors import ToolkitError


def calm(database, sql=""):
    """Make the tables of the service, with twelve sales that have everything; the keys of their files."""
    with database.transaction() as connection:
        raw(connection).execute(("CREATE SCHEMA svc;" + TABLES + sql).encode())
        return connection.scalars(sa.text("SELECT key FROM svc.doc")).all()


@pytest.fixture
def upload(s3, bucket):
    """Writes a good file under each key."""

    def upload(keys):
        for key in keys:
            s3.put_object(Bucket=bucket.name, Key=key, Body=tone() if key.endswith("POV") else pdf())

    return upload


@pytest.fixture
def said(empty_database, bucket, upload, clock, tmp_path):
    """Audit a calm world, let it go wrong by some SQL, audit again: the sentences, and the verdicts as texts."""
    path = tmp_path / "service.sql"
    url = empty_database.engine.url.render_as_string(hide_password=False)
    with ExitStack() as opened:

        def read():
            database = Database(url, clock, service=load_service(path))  # a process of its own, each night
            opened.callback(database.dispose)
            schema.upgrade(database)
            sync_bucket(database, bucket)
            with database.transaction() as connection:
                reading = last_reading(connection, clock())
            assert reading is not None
            return database, [*reading.changes, *reading.notes]

        def make(worlds):
            statements = STATEMENTS
            for world in worlds:
                statements = replaced(statements, world.reads)
            path.write_text(statements, encoding="utf-8")
            keys = calm(empty_database, "".join(world.before + ";" for world in worlds))
            judged = any(world.verdict for world in worlds)
            upload(keys if judged else ())
            assert read()[1] == [], "a calm world says nothing"
            with empty_database.transaction() as connection:
                raw(connection).execute(";".join(world.sql for world in worlds).encode())
            for world in worlds:
                statements = replaced(statements, world.then)
            path.write_text(statements, encoding="utf-8")
            database, sentences = read()
            if not judged:
                return sentences, []
            audit = made_audit(database, tmp_path)
            assert audit.facts.service is not None
            assert sentences == [*audit.facts.service["changes"], *audit.facts.service["notes"]]
            rows = audit.sql("SELECT sale_id, status, missing, problems FROM verdicts WHERE status <> 'compliant'")
            return sentences, [" ".join(row.values()) for row in rows.to_pylist()]

        yield make


def check(said, *worlds):
    stops = [world for world in worlds if world.stops]
    if stops:
        with pytest.raises(ToolkitError, match="|".join(world.stops for world in stops)):
            said(worlds)
        return
    sentences, verdicts = said(worlds)
    for world in worlds:
        assert any(re.search(world.said, text) for text in sentences) or not world.said, (world.name, sentences)
        assert len(worlds) > 1 or any(text.startswith(world.verdict) for text in verdicts) or not world.verdict, (
            world.name,
            verdicts,
        )


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_every_wrong_world_is_told(said, world):
    check(said, world)


ALONE = {
    "a foreign table that leads to another table",
    "a table swapped by renaming",
    "a table that became a view",
    "a schema swapped by renaming",
    "a number written with a fraction",
    "a record in two partitions",
}
"""Worlds after which other SQL about the same table means another one, or fits no more."""


@pytest.mark.parametrize("seed", range(6))
def test_a_mixture_of_two_wrong_worlds_is_told(said, seed):
    draw = random.Random(seed)  # the same mixtures each time
    one = draw.choice([world for world in WORLDS if not world.stops and world.name not in ALONE])
    added = [world for world in WORLDS if world.sql.startswith("INSERT") and not world.before + world.reads]
    check(said, one, draw.choice(added))


@pytest.fixture
def nights(run, empty_database, upload, bucket_environment, tmp_path):
    """Run commands over twelve sales with all their evidence; the first audit is calm."""
    (tmp_path / "service.sql").write_text(STATEMENTS, encoding="utf-8")
    around = {
        **bucket_environment,
        "TOOLKIT_HOME": str(tmp_path / "home"),
        "DATABASE_URL": empty_database.engine.url.render_as_string(hide_password=False),
        "TOOLKIT_SERVICE_SQL": str(tmp_path / "service.sql"),
    }
    upload(calm(empty_database))
    run("-q", "db", "upgrade", within=around)
    run("-q", "audit", within=around)
    return partial(run, within=around)


def change(database, sql):
    with database.transaction() as connection:
        connection.execute(sa.text(sql))


def test_a_count_that_jumped_is_a_finding_until_it_is_accepted_or_mended(nights, empty_database):
    def finding():
        [found] = [each for each in nights("findings", "--json", ends=None).told["findings"] if not each["saleId"]]
        return found["id"], found["code"], found["status"]

    change(empty_database, "INSERT INTO svc.doc (sale_id, kind, key, at) VALUES ('S-99', 'POV', 'x', now())")
    assert "of no sale that is read: 1; 0 at the last" in nights("audit", ends=3).err
    assert "at the last reading" not in nights("audit", ends=3).err  # the finding is there, the change is over
    found = finding()
    assert found[1:] == ("RECORDS_OF_NO_SALE", "open")
    words = ("--code", "records_of_no_sale", "--reason", "a test sale", "--owner", "Ana", "--approved-by", "Rui")
    nights("waiver", "add", *words, "--end", f"{datetime.now(UTC) + timedelta(days=9):%Y-%m-%d}")
    assert finding() == (*found[:2], "waived")
    nights("audit")
    change(empty_database, "DELETE FROM svc.doc WHERE sale_id = 'S-99'")
    assert finding() == (*found[:2], "resolved")


def test_a_record_of_another_sale_is_told_once_when_its_number_was_free_for_a_time_too(nights, empty_database):
    change(empty_database, "CREATE TABLE svc.kept AS SELECT * FROM svc.doc WHERE sale_id = 'S-1' AND kind = 'POV'")
    change(empty_database, "DELETE FROM svc.doc USING svc.kept WHERE doc.id = kept.id")
    assert "of another sale" not in nights("audit", ends=3).err
    change(empty_database, "INSERT INTO svc.doc SELECT id, 'S-2', kind, key, at FROM svc.kept")
    assert "Evidence records that were of another sale before: 1." in nights("audit", ends=3).err
    change(empty_database, "UPDATE svc.doc SET at = now() FROM svc.kept WHERE doc.id = kept.id")
    assert "of another sale" not in nights("audit", ends=3).err


def test_a_sale_that_was_created_anew_under_its_id_is_told_once(nights, empty_database):
    change(empty_database, "DELETE FROM svc.sale WHERE id = 'S-3'")
    assert "had another client or created_at" not in nights("audit", ends=None).err
    change(empty_database, "INSERT INTO svc.sale VALUES ('S-3', 'A', true, now())")
    assert "Sales that had another client or created_at before: 1." in nights("audit", ends=None).err
    assert "had another client or created_at" not in nights("audit", ends=None).err


def test_a_withdrawal_holds_for_its_file_and_not_for_the_next_record_of_that_id(nights, upload, empty_database):
    def pov(sale):
        told = nights("findings", "--json", ends=3).told["findings"]
        found = [(each["saleId"], each["code"]) for each in told if each["status"] != "resolved"]
        records = nights("sale", "show", sale, "--json", ends=None).told["records"]
        [state] = [each["state"] for each in records if each["evidenceType"] == "POV"]
        return state, (sale, "MISSING_POV") in found

    [(record,)] = rows(empty_database, "SELECT id FROM svc.doc WHERE sale_id = 'S-1' AND kind = 'POV'")
    withdraw = ("evidence", "withdraw", record, "--reason", "r", "--by", "Ana Souza", "--approved-by", "Rui Lima")
    nights(*withdraw)
    assert pov("S-1") == ("WITHDRAWN", True)
    change(empty_database, "DELETE FROM svc.doc WHERE sale_id IN ('S-2', 'S-3') AND kind = 'POV'")
    change(empty_database, f"UPDATE svc.doc SET sale_id = 'S-2' WHERE id = '{record}'")
    assert pov("S-2") == ("WITHDRAWN", True)  # the same file, for another sale
    change(empty_database, f"UPDATE svc.doc SET sale_id = 'S-3', key = 'new/POV' WHERE id = '{record}'")
    upload(["new/POV"])
    nights("bucket", "sync")
    assert pov("S-3") == ("COUNTED", False)
    nights(*withdraw)
    assert pov("S-3") == ("WITHDRAWN", True)


def test_a_reading_in_between_takes_no_change_away_from_the_next_audit(nights, empty_database, bucket, s3):
    change(empty_database, "ALTER TABLE svc.doc ADD deleted_at timestamptz")
    nights("bucket", "sync")
    s3.put_object(Bucket=bucket.name, Key="a file of nobody", Body=b"x")
    assert "has a new column deleted_at" in nights("audit", ends=3).err
    nights("audit")


def test_no_time_of_the_service_keeps_a_report_from_being_written(nights, empty_database, tmp_path):
    change(empty_database, "UPDATE svc.sale SET sold = '0044-03-15 BC', done = 'infinity' WHERE id = 'S-1'")
    change(empty_database, "UPDATE svc.doc SET kind = 'AUT', at = '-infinity' WHERE sale_id = 'S-1'")
    nights("report", "--out", tmp_path, "--format", "html,xlsx,csv,json,pdf")
    assert nights("sale", "show", "S-1", "--json").told["completedAt"] == "9999-12-29T21:00:00-03:00"


def test_a_check_names_the_column_that_holds_a_value_which_does_not_fit(nights, tmp_path):
    unfit = STATEMENTS.replace("at AS requested_at", "CAST(key AS timestamptz) AS requested_at")
    (tmp_path / "service.sql").write_text(unfit, encoding="utf-8")
    assert "See: toolkit db check" in nights("audit", ends=1).err
    assert "records: requested_at cannot be read from every row [22007]" in nights("db", "check", ends=1).err


def test_a_check_says_where_rows_that_are_left_out_cannot_be_counted(nights, tmp_path):
    twice = STATEMENTS.replace("FROM svc.doc", "FROM svc.doc, generate_series(1, 2) AS n")
    twice = twice.replace("SELECT id, sale_id", "SELECT CAST(md5(key || n) AS uuid) AS id, sale_id")
    (tmp_path / "service.sql").write_text(twice, encoding="utf-8")
    assert "records: nobody tells when rows are left out" in nights("db", "check", ends=None).err


def test_a_check_names_a_time_that_is_read_in_the_zone_of_the_session(nights, empty_database, tmp_path):
    change(empty_database, "ALTER TABLE svc.sale ALTER sold TYPE timestamp")
    wrong = STATEMENTS.replace("sold AS created_at", "CAST(sold AS timestamptz) AS created_at")
    (tmp_path / "service.sql").write_text(wrong, encoding="utf-8")
    assert "sales, created_at: the value has no time zone" in nights("db", "check", ends=3).out
    right = wrong.replace("CAST(sold AS timestamptz)", "sold AT TIME ZONE 'America/Sao_Paulo'")
    (tmp_path / "service.sql").write_text(right, encoding="utf-8")
    assert "time zone" not in nights("db", "check", ends=None).out


def test_texts_are_compared_by_their_bytes_where_a_collation_takes_others_for_equal(nights, empty_database):
    for sql in (
        "UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'ucs_basic'",  # for want of ICU
        "ALTER TABLE svc.sale ALTER id TYPE text COLLATE ucs_basic",
        'ALTER TABLE svc.doc ALTER sale_id TYPE text COLLATE "POSIX"',
    ):
        change(empty_database, sql)
    assert "12 sales, 24 records" in nights("db", "check").out
    assert nights("sale", "show", "S-1", "--json").told["status"] == "compliant"


def test_rows_that_a_policy_hides_from_our_role_and_old_copies_are_told(nights, empty_database):
    role = f"reader_{uuid4().hex}"
    change(empty_database, f"CREATE ROLE {role}")
    for sql in (
        "CREATE VIEW svc.held AS SELECT * FROM svc.doc",
        "ALTER VIEW svc.held SET (security_invoker = true)",
        "CREATE FUNCTION svc.pays(boolean) RETURNS boolean LANGUAGE sql RETURN $1",
        "ALTER TABLE svc.doc ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY own ON svc.doc USING (sale_id <> 'S-1')",
        "ALTER TABLE svc.sale RENAME TO sold",
        "CREATE MATERIALIZED VIEW svc.sale AS SELECT * FROM svc.sold",
        f"GRANT USAGE ON SCHEMA svc, audit TO {role}",
        f"GRANT ALL ON ALL TABLES IN SCHEMA svc, audit TO {role}",
    ):
        change(empty_database, sql)
    path = Path(nights.keywords["within"]["TOOLKIT_SERVICE_SQL"])
    statements = STATEMENTS.replace("FROM svc.doc", "FROM svc.held").replace("payer AS", "svc.pays(payer) AS")
    path.write_text(statements, encoding="utf-8")
    assert "The tables behind the function svc.pays(boolean) are not" in nights("db", "check", ends=None).err
    ours = empty_database.engine.url.update_query_dict({"options": f"-crole={role}"})
    said = nights("audit", ends=3, DATABASE_URL=ours.render_as_string(hide_password=False))
    assert "1 of 12 sales lacks evidence" in said.out
    assert "Row level security may hide rows of svc.doc from the role that reads them" in said.err
    assert "is read from materialised views or foreign tables (svc.sale)" in said.err
    change(empty_database, f"DROP OWNED BY {role}")
    change(empty_database, f"DROP ROLE {role}")
