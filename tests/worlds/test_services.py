"""No calm wrong answer: in every wrong world of the service the sentence is said."""

import re
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pytest
import sqlalchemy as sa

from tests.support.audits import made_audit
from tests.support.evidence_files import pdf, tone
from tests.support.uploaded_sales import execute
from toolkit.audit.observe_bucket import sync_bucket
from toolkit.database import schema
from toolkit.database.connection import Database, raw
from toolkit.database.observations import last_reading
from toolkit.database.service import load_service
from toolkit.errors import ToolkitError

STATEMENTS = Path(__file__).with_name("service.sql").read_text("utf-8")


class World(NamedTuple):
    """A wrong world; services.sql tells what each of its parts is."""

    name: str
    sql: str = ""
    said: str = ""
    stops: str = ""
    verdict: str = ""
    before: str = ""
    reads: str = ""
    then: str = ""


def told(text):
    """The world of a paragraph: lines of SQL, and of facts; a word alone says what the SQL below it is."""
    name, *lines = text.splitlines()
    parts, part = defaultdict(str), "sql"
    for line in lines:
        if line.startswith("-- "):
            key, colon, value = line.removeprefix("-- ").partition(": ")
            parts[key], part = value, part if colon else key
        else:
            parts[part] += line
    return World(name, **parts)


def replaced(statements, change):
    """The statements with what a world changes in them: a text and, behind an arrow, another one."""
    return statements.replace(*change.split(" => ")) if change else statements


TABLES, *_TOLD = Path(__file__).with_name("services.sql").read_text("utf-8").split("-- world: ")

ODD = {
    "TimeZone": "Asia/Kolkata",
    "IntervalStyle": "sql_standard",
    "bytea_output": "escape",
    "default_transaction_isolation": "serializable",
    "standard_conforming_strings": "off",
    "transform_null_equals": "on",
    "extra_float_digits": "0",
    "quote_all_identifiers": "on",
    "client_encoding": "LATIN1",
}
"""Settings that a role or a database may have, and that change nothing."""


def with_settings(**settings):
    each = "EXECUTE format('ALTER DATABASE %I SET {} = %L', current_database(), '{}');"
    return f"DO $$ BEGIN {''.join(each.format(name, value) for name, value in settings.items())} END $$"


TYPES = {
    "a code renamed": "'VOZ'",
    "a blank behind a code": "'POV '",
    "a blank behind a code that cannot be seen": "'POV' || chr(160)",
    "a code in small letters": "'pov'",
    "a code with a letter of another alphabet": "'P' || chr(1054) || 'V'",
    "a record without a type": "NULL",
}
GROUPS = {
    "a group that nobody knows": "'E'",
    "a sale without a group": "NULL",
    "the wrong group for everybody": "lower(grp)",
}

WORLDS = (
    *(
        World(
            name,
            f"UPDATE svc.doc SET kind = {value} WHERE kind = 'POV' AND sale_id = 'S-4'",
            r"Evidence records with an evidence_type that the contract does not know: 1; 0 at the last reading",
            verdict="S-4 incomplete POV TYPE_UNKNOWN",
        )
        for name, value in TYPES.items()
    ),
    *(
        World(
            name,
            f"UPDATE svc.sale SET grp = {value}" + ("" if "everybody" in name else " WHERE id = 'S-1'"),
            r"Sales with a utility_group that the contract does not know: 12?; 0 at the last reading",
            verdict="S-1 conflict  GROUP_UNKNOWN",
        )
        for name, value in GROUPS.items()
    ),
    *map(told, _TOLD),
    *(
        World(
            f"settings of the database such as {style}",
            "DELETE FROM svc.doc WHERE sale_id = 'S-1' AND kind = 'POV'",
            verdict="S-1 incomplete POV",
            before=with_settings(DateStyle=style, **ODD),
        )
        for style in ("German, DMY", "Postgres, MDY")
    ),
)


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
            reading = database.run(last_reading, clock())
            return database, [*reading.changes, *reading.notes]

        def make(world):
            statements = replaced(STATEMENTS, world.reads)
            path.write_text(statements, encoding="utf-8")
            keys = calm(empty_database, world.before)
            upload(keys if world.verdict else ())
            assert read()[1] == [], "a calm world says nothing"
            with empty_database.transaction() as connection:
                raw(connection).execute(world.sql.encode())
            path.write_text(replaced(statements, world.then), encoding="utf-8")
            database, sentences = read()
            if not world.verdict:
                return sentences, []
            audit = made_audit(database, tmp_path)
            assert sentences == [*audit.facts.service["changes"], *audit.facts.service["notes"]]
            rows = audit.sql("SELECT sale_id, status, missing, problems FROM verdicts WHERE status <> 'compliant'")
            return sentences, [" ".join(row.values()) for row in rows.to_pylist()]

        yield make


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_every_wrong_world_is_told(said, world):
    if world.stops:
        with pytest.raises(ToolkitError, match=world.stops):
            said(world)
        return
    sentences, verdicts = said(world)
    assert any(re.search(world.said, text) for text in sentences) or not world.said, sentences
    assert any(text.startswith(world.verdict) for text in verdicts) or not world.verdict, verdicts


HIDDEN = """
    CREATE VIEW svc.held AS SELECT * FROM svc.doc;
    ALTER VIEW svc.held SET (security_invoker = true);
    CREATE FUNCTION svc.pays(boolean) RETURNS boolean LANGUAGE sql RETURN $1;
    ALTER TABLE svc.doc ENABLE ROW LEVEL SECURITY;
    CREATE POLICY own ON svc.doc USING (sale_id <> 'S-1');
    CREATE TABLE svc.whole (LIKE svc.doc) PARTITION BY LIST (sale_id);
    CREATE TABLE svc.later PARTITION OF svc.whole FOR VALUES IN ('later');
    ALTER TABLE svc.whole ATTACH PARTITION svc.doc DEFAULT;
    ALTER TABLE svc.sale RENAME TO sold;
    CREATE MATERIALIZED VIEW svc.sale AS SELECT * FROM svc.sold;
    CREATE ROLE {0};
    GRANT USAGE ON SCHEMA svc, audit TO {0};
    GRANT ALL ON ALL TABLES IN SCHEMA svc, audit TO {0}
"""


def test_rows_that_a_policy_hides_from_our_role_and_old_copies_are_told(
    run, database, embedded_environment, upload, tmp_path
):
    upload(calm(database))
    role, path = f"reader_{uuid4().hex}", tmp_path / "service.sql"
    around = {**embedded_environment, "TOOLKIT_SERVICE_SQL": str(path)}
    path.write_text(STATEMENTS, encoding="utf-8")
    run("-q", "audit", within=around)  # it is calm
    execute(database, HIDDEN.format(role))
    told = run("db", "check", ends=None, within=around).err
    assert "svc.doc is one part of svc.whole: the rows of its other parts are not read." in told
    statements = STATEMENTS.replace("FROM svc.doc", "FROM svc.held").replace("payer AS", "svc.pays(payer) AS")
    path.write_text(statements, encoding="utf-8")
    told = run("db", "check", ends=None, within=around).err
    assert "The tables behind the function svc.pays(boolean) are not" in told
    ours = database.engine.url.update_query_dict({"options": f"-crole={role}"})
    said = run("audit", ends=3, within=around, DATABASE_URL=ours.render_as_string(hide_password=False))
    assert "1 of 12 sales lacks evidence" in said.out
    assert "Row level security may hide rows of svc.doc from the role that reads them" in said.err
    assert "is read from materialised views or foreign tables (svc.sale)" in said.err
    execute(database, f"DROP OWNED BY {role}", f"DROP ROLE {role}")
