import json
from pathlib import Path

import pytest

from tests.support.uploaded_sales import execute, rows
from toolkit.database import schema, tables
from toolkit.database.connection import raw
from toolkit.errors import DatabaseError, SchemaMismatch
from toolkit.log.merkle import append, leaf_hash, root
from toolkit.log.notes import LogSigner, new_key
from toolkit.log.sealing import seal_events

ROOT = Path(__file__).parents[2]


def test_a_database_that_was_upgraded_fits(empty_database):
    assert not schema.is_current(empty_database)
    schema.upgrade(empty_database, service_tables=True)
    schema.check(empty_database)
    assert schema.is_current(empty_database)


_PARTS = """
    SELECT 'column', format('%s.%s %s %s %s', table_name, column_name, data_type, is_nullable, is_identity)
    FROM information_schema.columns WHERE table_schema IN ('audit', 'public')
    UNION ALL
    SELECT 'index', indexdef FROM pg_indexes WHERE schemaname = 'audit'
    UNION ALL
    SELECT 'constraint', format('%s %s', conrelid::regclass, pg_get_constraintdef(oid))
    FROM pg_constraint WHERE connamespace = 'audit'::regnamespace AND contype <> 'n'
    UNION ALL
    SELECT 'function', pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'audit'::regnamespace
    UNION ALL
    SELECT 'trigger', pg_get_triggerdef(pg_trigger.oid)
    FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
    WHERE relnamespace = 'audit'::regnamespace AND NOT tgisinternal
"""


def parts(database):
    return set(rows(database, _PARTS))


@pytest.fixture
def older(empty_database):
    """A database of the oldest schema that is upgraded, with a row in it."""
    with empty_database.transaction() as connection:
        tables.service.create_all(connection)
        raw(connection).execute((ROOT / "tests" / "data" / "schema_0035.sql").read_bytes())
    return empty_database


def test_an_older_database_becomes_like_a_new_one_and_keeps_its_history(older, database):
    schema.upgrade(older)
    old, new = parts(older), parts(database)
    assert old - new == set()
    assert new - old == set()
    assert rows(older, "SELECT sale_id FROM audit.sale_observations") == [("S-1",)]


def test_a_schema_that_was_never_released_becomes_like_a_new_one(empty_database, database):
    schema.upgrade(empty_database, service_tables=True)
    execute(
        empty_database,
        "DROP TABLE audit.erasures, audit.told_findings",
        "ALTER TABLE audit.custody_events DROP COLUMN salt",
        "UPDATE audit.alembic_version SET version_num = '0037'",
    )
    schema.upgrade(empty_database)
    assert parts(empty_database) ^ parts(database) == set()


def test_the_chain_of_an_older_log_ends_in_the_first_entry_of_the_tree(older, clock):
    execute(
        older,
        "INSERT INTO audit.custody_seals "
        "(number, sealed_at, events, last_transaction, last_id, digests, previous, hash) "
        "VALUES (3, '2026-03-02T12:00:00Z', 0, 0, 0, '', repeat('0', 64), repeat('ab', 32))",
    )
    schema.upgrade(older)
    signed = seal_events(older, clock, LogSigner.read("evidence.example.com/custody", new_key(), "the key"))
    entries = [bytes(entry) for (entry,) in rows(older, "SELECT entry FROM audit.log_entries ORDER BY index")]
    [(events,)] = rows(older, "SELECT count(*) FROM audit.custody_events")
    ended = {"kind": "CHAIN_ENDED", "id": 0, "detail": {"hash": "ab" * 32, "seal": 3}}
    assert json.loads(entries[0]) == ended | {"at": "2026-03-02T12:00:00.000000+00:00"}
    assert len(entries) == events + 1
    tiles = append(lambda *_: b"", 0, map(leaf_hash, entries))
    assert root(lambda *place: tiles[place], len(entries)).hex() == signed.root


def test_no_function_finds_names_by_the_search_path_of_a_session(database):
    loose = """
        SELECT proname FROM pg_proc JOIN pg_language ON pg_language.oid = prolang
        WHERE pronamespace = 'audit'::regnamespace AND (prosecdef OR lanname = 'plpgsql')
          AND NOT coalesce(proconfig::text, '') ~ 'search_path=pg_catalog'
    """
    assert rows(database, loose) == []


@pytest.mark.parametrize(
    ("version", "said", "upgrades"),
    [
        ("0035", "schema version 0035, older than .*Run: toolkit db upgrade", True),
        ("0034", "this toolkit upgrades 0035 and newer", False),
        ("9999", "schema version 9999, which is newer than this toolkit", False),
    ],
)
def test_another_schema_says_what_to_do_and_is_left_alone(database, version, said, upgrades):
    execute(database, f"UPDATE audit.alembic_version SET version_num = '{version}'")
    for use in (schema.check,) if upgrades else (schema.check, schema.upgrade):
        with pytest.raises(SchemaMismatch, match=said):
            use(database)


def test_missing_service_tables_are_created_on_request_only(empty_database):
    with pytest.raises(SchemaMismatch, match=r'"public.sales" does not exist.*db upgrade --service-tables'):
        schema.upgrade(empty_database)
    made = "SELECT FROM information_schema.tables WHERE table_schema IN ('audit', 'public')"
    assert rows(empty_database, made) == [], "nothing half-done"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("ALTER TABLE clients DROP COLUMN rg", 'clients: column "rg" does not exist.* are never altered here'),
        (
            "ALTER TABLE sales ALTER created_at TYPE timestamp",
            "sales: created_at is of type timestamp w",
        ),
        ("ALTER TABLE evidences ALTER id TYPE text", "records: id is of type text, and uuid is expected"),
    ],
)
def test_service_tables_that_differ_are_named_and_never_altered(database, change, said):
    execute(database, change, "ALTER TABLE sales ADD COLUMN of_somebody_else text")
    before = parts(database)
    for use in (schema.check, lambda database: schema.upgrade(database, service_tables=True)):
        with pytest.raises(SchemaMismatch, match=said):
            use(database)
    assert parts(database) == before


def test_history_is_never_rewritten_or_emptied(database):
    guarded = "SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname IN ('append_only', 'closed_once')"
    history = {table.fullname for table in (*tables.APPEND_ONLY, *tables.CLOSED_ONCE)}
    assert history <= {name for (name,) in rows(database, guarded)}
    for name in history:
        with pytest.raises(DatabaseError, match="are never changed or deleted"):
            execute(database, f"TRUNCATE {name} CASCADE")
