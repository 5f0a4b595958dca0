import json
from pathlib import Path

import pytest
import sqlalchemy as sa

from toolkit.database import schema, tables
from toolkit.database.connection import raw
from toolkit.errors import DatabaseError, SchemaMismatch
from toolkit.log.merkle import append, leaf_hash, root
from toolkit.log.notes import LogSigner, new_key
from toolkit.log.sealing import seal_events

ROOT = Path(__file__).parents[2]


def execute(database, *statements):
    with database.transaction() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def columns(database):
    with database.transaction() as connection:
        inspector = sa.inspect(connection)
        return {
            f"{place or 'public'}.{name}": sorted(
                (column["name"], str(column["type"]), bool(column["nullable"]))
                for column in inspector.get_columns(name, schema=place)
            )
            for place in (None, tables.AUDIT)
            for name in inspector.get_table_names(schema=place)
        }


def test_a_database_that_was_upgraded_fits(empty_database):
    assert not schema.is_current(empty_database)
    schema.upgrade(empty_database, service_tables=True)
    schema.check(empty_database)
    assert schema.is_current(empty_database)


_PARTS = """
    SELECT 'column', format('%s.%s %s %s %s', table_name, column_name, data_type, is_nullable, is_identity)
    FROM information_schema.columns WHERE table_schema = 'audit'
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
    with database.transaction() as connection:
        return {(kind, text) for kind, text in connection.execute(sa.text(_PARTS))}


def test_an_older_database_becomes_like_a_new_one_and_keeps_its_history(empty_database, database):
    with empty_database.transaction() as connection:
        tables.service.create_all(connection)
        raw(connection).execute((ROOT / "tests" / "data" / "schema_0035.sql").read_bytes())
    schema.upgrade(empty_database)
    old, new = parts(empty_database), parts(database)
    assert old - new == set()
    assert new - old == set()
    with empty_database.transaction() as connection:
        assert connection.scalar(sa.text("SELECT sale_id FROM audit.sale_observations")) == "S-1"


def test_the_chain_of_an_older_log_ends_in_the_first_entry_of_the_tree(empty_database, clock):
    with empty_database.transaction() as connection:
        tables.service.create_all(connection)
        raw(connection).execute((ROOT / "tests" / "data" / "schema_0035.sql").read_bytes())
        connection.exec_driver_sql(
            "INSERT INTO audit.custody_seals "
            "(number, sealed_at, events, last_transaction, last_id, digests, previous, hash) "
            "VALUES (3, '2026-03-02T12:00:00Z', 0, 0, 0, '', repeat('0', 64), repeat('ab', 32))"
        )
    schema.upgrade(empty_database)
    signed = seal_events(
        empty_database, clock, LogSigner.read("evidence.example.com/custody", new_key(), "the key")
    )
    with empty_database.transaction() as connection:
        entries = [
            bytes(entry)
            for entry in connection.scalars(sa.text("SELECT entry FROM audit.log_entries ORDER BY index"))
        ]
        events = connection.scalar(sa.text("SELECT count(*) FROM audit.custody_events"))
    assert json.loads(entries[0]) == {
        "at": "2026-03-02T12:00:00.000000+00:00",
        "detail": {"hash": "ab" * 32, "seal": 3},
        "id": 0,
        "kind": "CHAIN_ENDED",
    }
    assert len(entries) == events + 1
    tiles = append(lambda *_: b"", 0, map(leaf_hash, entries))
    assert root(lambda *place: tiles[place], len(entries)).hex() == signed.root


def test_no_function_finds_names_by_the_search_path_of_a_session(database):
    loose = """
        SELECT proname FROM pg_proc JOIN pg_language ON pg_language.oid = prolang
        WHERE pronamespace = 'audit'::regnamespace AND (prosecdef OR lanname = 'plpgsql')
          AND NOT coalesce(proconfig::text, '') ~ 'search_path=pg_catalog'
    """
    with database.transaction() as connection:
        assert connection.scalars(sa.text(loose)).all() == []


def test_an_older_schema_says_what_to_do(database):
    execute(database, "UPDATE audit.alembic_version SET version_num = '0035'")
    with pytest.raises(SchemaMismatch, match=r"schema version 0035, older than .*Run: toolkit db upgrade"):
        schema.check(database)
    execute(database, "UPDATE audit.alembic_version SET version_num = '0034'")
    for use in (schema.check, schema.upgrade):
        with pytest.raises(SchemaMismatch, match=r"this toolkit upgrades 0035 and newer"):
            use(database)


def test_a_newer_schema_is_left_alone(database):
    execute(database, "UPDATE audit.alembic_version SET version_num = '9999'")
    for use in (schema.check, schema.upgrade):
        with pytest.raises(SchemaMismatch, match=r"schema version 9999, which is newer than this toolkit"):
            use(database)


def test_missing_service_tables_are_created_on_request_only(empty_database):
    with pytest.raises(SchemaMismatch, match=r'"public.sales" does not exist.*db upgrade --service-tables'):
        schema.upgrade(empty_database)
    assert columns(empty_database) == {}, "nothing half-done"


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
    before = columns(database)
    for use in (schema.check, lambda database: schema.upgrade(database, service_tables=True)):
        with pytest.raises(SchemaMismatch, match=said):
            use(database)
    assert columns(database) == before


@pytest.mark.parametrize("table", [*tables.APPEND_ONLY, *tables.CLOSED_ONCE], ids=lambda table: table.name)
def test_history_is_never_rewritten_or_emptied(database, table):
    with database.transaction() as connection:
        triggers = connection.scalars(
            sa.text("SELECT tgname FROM pg_trigger WHERE tgrelid = to_regclass(:name) AND NOT tgisinternal"),
            {"name": table.fullname},
        ).all()
    assert set(triggers) & {"append_only", "closed_once"}
    with pytest.raises(DatabaseError, match="are never changed or deleted"):
        execute(database, f"TRUNCATE {table.fullname} CASCADE")
