"""Through a mapping only rows that were touched are compared, and the observations say what the service says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.waiting import wait_until
from toolkit.operations.observe.disappearance import Tolerance
from toolkit.operations.observe.service_history import observe_service
from toolkit.storage import schema
from toolkit.storage.database import Database
from toolkit.storage.service_map import ServiceMap, load_map

TABLES = """
    CREATE SCHEMA shop;
    CREATE TYPE shop.kind AS ENUM ('voice', 'signed');
    CREATE TABLE shop.dealer (id int PRIMARY KEY, name text);
    CREATE TABLE shop.deal (
        id int PRIMARY KEY, code text NOT NULL UNIQUE, grp int, dealer int, day date NOT NULL DEFAULT '2026-03-02',
        deleted boolean NOT NULL DEFAULT false, remark text);
    CREATE TABLE shop.proof (
        id uuid PRIMARY KEY, deal int NOT NULL REFERENCES shop.deal ON UPDATE CASCADE ON DELETE CASCADE,
        kind shop.kind, key text, remark text, at timestamp NOT NULL DEFAULT '2026-03-02T12:00');
"""

ROWS = """
    TRUNCATE shop.dealer, shop.deal, shop.proof;
    ALTER TABLE shop.deal DROP CONSTRAINT IF EXISTS dealt;
    ALTER TABLE shop.deal ADD CONSTRAINT dealt FOREIGN KEY (dealer) REFERENCES shop.dealer;
    INSERT INTO shop.dealer SELECT i, 'dealer ' || i FROM generate_series(0, 3) AS i;
    INSERT INTO shop.deal SELECT i, 'S-' || i, 1, i FROM generate_series(0, 3) AS i;
    INSERT INTO shop.proof
    SELECT lpad(i::text, 32, '0')::uuid, mod(i, 4), enum_first(NULL::shop.kind), i::text, 'old'
    FROM generate_series(0, 7) AS i;
"""

MAP = """
    timezone = "America/Sao_Paulo"
    [clients]
    absent = true
    [addresses]
    absent = true
    [sales]
    from = "shop.deal"
    where = "NOT deleted"
    [sales.columns]
    id = "code"
    client_id = { absent = true }
    utility_group = { column = "grp", codes = { 1 = "A", 2 = "A", 3 = "B" } }
    is_client_financial_responsible = { value = true }
    partner = { column = "name", table = "shop.dealer", key = "id", by = "dealer" }
    created_at = "day"
    completed_at = { absent = true }
    [evidences]
    from = "shop.proof"
    [evidences.columns]
    id = "id"
    sale_id = { column = "code", table = "shop.deal", key = "id", by = "deal" }
    evidence_type = { column = "kind", codes = { voice = "AUT", signed = "POV" } }
    file_name = { absent = true }
    file_format = { absent = true }
    type = { absent = true }
    object_key = "key"
    requested_by = { sql = "this.key" }
    requested_at = "at"
    expires_at = { absent = true }
"""

CHANGES = (
    "UPDATE shop.deal SET grp = {other} WHERE id = {one}",
    "UPDATE shop.deal SET remark = {other} WHERE id = {one}",
    "UPDATE shop.deal SET deleted = NOT deleted WHERE id = {one}",
    "UPDATE shop.deal SET code = 'S-' || {other} + 4 WHERE id = {one}",
    "UPDATE shop.deal SET id = {other} + 10 WHERE id = {one}",
    "UPDATE shop.deal SET id = {one} WHERE id = {other} + 10",
    "UPDATE shop.deal SET dealer = {other} WHERE id = {one}",
    "DELETE FROM shop.deal WHERE id = {one}",
    "INSERT INTO shop.deal VALUES ({one}, 'S-' || {one}, 3, {other})",
    "UPDATE shop.dealer SET name = 'dealer ' || {other} WHERE id = {one}",
    "UPDATE shop.dealer SET id = {other} + 10 WHERE id = {one}",
    "DELETE FROM shop.dealer WHERE id = {one}",
    "INSERT INTO shop.dealer VALUES ({one}, ' ')",
    "UPDATE shop.proof SET deal = {other} WHERE key = '{one}'",
    "UPDATE shop.proof SET remark = key, key = remark WHERE deal = {one}",
    "UPDATE shop.proof SET kind = 'signed' WHERE key = '{one}'",
    "DELETE FROM shop.proof WHERE deal = {one}",
    "INSERT INTO shop.proof VALUES (gen_random_uuid(), {one}, 'voice', '{other}')",
    "TRUNCATE shop.proof",
    "VACUUM FULL shop.deal",
    *["UPDATE shop.deal SET code = code || {other} WHERE id = {one}"] * 3,
    *["UPDATE shop.dealer SET name = name || {other} WHERE id = {one}"] * 3,
    *["ALTER TABLE shop.deal DROP CONSTRAINT IF EXISTS dealt; DELETE FROM shop.dealer WHERE id = {one}"] * 2,
    *["ALTER TYPE shop.kind RENAME VALUE 'voice' TO 'voz'"] * 2,
    *["ALTER TYPE shop.kind RENAME VALUE 'voz' TO 'voice'"] * 2,
    "ALTER TABLE shop.deal ADD CONSTRAINT dealt FOREIGN KEY (dealer) REFERENCES shop.dealer NOT VALID",
    "ALTER TABLE shop.deal VALIDATE CONSTRAINT dealt",
)
one = st.integers(0, 3)
change = st.builds(str.format, st.sampled_from(CHANGES), one=one, other=one)
steps = st.one_of(
    *[st.tuples(st.just("change"), change)] * 4,
    *[st.tuples(st.just("observe"), st.none())] * 4,
    st.tuples(st.sampled_from(["begin", "roll back"]), change),
    st.tuples(st.sampled_from(["commit", "commit", "swap"]), st.none()),
)


@pytest.fixture(scope="module")
def mapping(tmp_path_factory: pytest.TempPathFactory) -> ServiceMap:
    path = tmp_path_factory.mktemp("map") / "map.toml"
    path.write_text(MAP)
    return load_map(path)


@pytest.fixture
def service(empty_database: Database) -> Iterator[sa.Engine]:
    """Connections of the service, which do not wait for what one of them has begun."""
    url = empty_database.engine.url.update_query_dict({"options": "-c lock_timeout=50ms"})
    engine = sa.create_engine(url)
    yield engine
    engine.dispose()


@pytest.fixture
def shop(service: sa.Engine, mapping: ServiceMap) -> Iterator[Database]:
    url = service.url.difference_update_query(["options"])
    database = Database(url.render_as_string(hide_password=False), mapped=True)
    do(service, TABLES + ROWS)
    schema.upgrade(database, service_map=mapping)
    yield database
    database.dispose()


@settings(max_examples=16, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(history=st.lists(steps, min_size=15, max_size=30))
def test_observations_say_what_the_mapping_says_after_any_history_of_changes(
    shop: Database, service: sa.Engine, mapping: ServiceMap, history: list[tuple[str, str]]
) -> None:
    do(shop.engine, ROWS)
    observe(shop)
    begun: list[sa.Connection] = []
    try:
        for what, statement in history:
            with suppress(sa.exc.DBAPIError):  # refused by a constraint, or by the lock of what was begun
                step(shop, service, mapping, begun, what, statement)
    finally:
        for connection in begun:
            connection.commit()
            connection.close()
    observe(shop)


def step(
    shop: Database, service: sa.Engine, mapping: ServiceMap, begun: list[sa.Connection], what: str, statement: str
) -> None:
    match what:
        case "change":
            do(service, statement)
        case "roll back":
            with service.connect() as connection:
                connection.exec_driver_sql(statement)
        case "begin" if not begun and statement.startswith(("INSERT", "UPDATE", "DELETE")):
            begun.append(service.connect())
            begun[0].exec_driver_sql(statement)
        case "commit" if begun:
            with begun.pop() as connection:
                connection.commit()
        case "swap" if not begun:
            schema.release(shop)
            do(shop.engine, SWAP)
            schema.upgrade(shop, service_map=mapping)
        case "observe":
            observe(shop)


def do(service: sa.Engine, statement: str) -> None:
    with service.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(statement)


def observe(database: Database) -> None:
    observe_service(database, lambda: datetime.now(UTC), Tolerance(confirmed=True))
    with database.transaction() as connection:
        for query in DIFFERENCES:
            assert connection.execute(sa.text(query)).all() == []


SWAP = """
    ALTER TABLE shop.proof RENAME key TO old;
    ALTER TABLE shop.proof RENAME remark TO key;
    ALTER TABLE shop.proof RENAME old TO remark;
"""

_SALES = "id, client_id, utility_group, is_client_financial_responsible, partner, created_at, completed_at"
_RECORDS = "id, sale_id, evidence_type, type, object_key, requested_at, expires_at"
DIFFERENCES = [
    f"(SELECT {said} FROM audit_service.{name} EXCEPT ALL {seen}) UNION ALL ({seen} EXCEPT ALL SELECT {said} "
    f"FROM audit_service.{name})"
    for name, said, seen in (
        (
            "sales",
            _SALES.replace("partner", "nullif(btrim(partner), '')"),
            f"SELECT sale_{_SALES} FROM audit.sale_observations WHERE gone_at IS NULL",
        ),
        (
            "evidences",
            _RECORDS,
            f"SELECT evidence_{_RECORDS} FROM audit.evidence_observations WHERE gone_at IS NULL",
        ),
    )
]


def test_rows_that_nothing_touched_are_compared_once_in_seven_days(shop: Database) -> None:
    """What is written into an observation by hand shows which rows are compared."""
    wait_until(lambda: observed_without_touched_rows(shop))
    do(shop.engine, FORGED)
    for before, left in (("SELECT", ["S-0", "S-1", "S-3"]), (A_WEEK_AGO, [])):
        do(shop.engine, before)
        observe_service(shop, lambda: datetime.now(UTC))
        with shop.transaction() as connection:
            assert connection.scalars(sa.text(STILL_FORGED)).all() == left


def observed_without_touched_rows(shop: Database) -> bool:
    """Transactions of other databases count, too: those that were open when the tables were made."""
    observe(shop)
    with shop.transaction() as connection:
        touched = sa.text("SELECT touched FROM audit_service.touched_sales")
        return connection.scalars(touched).all() == [False] * 4


FORGED = """
    BEGIN;
    SET LOCAL session_replication_role = replica;
    UPDATE audit.sale_observations SET partner = 'nobody';
    UPDATE shop.deal SET remark = 'x' WHERE id = 2;
    COMMIT
"""
STILL_FORGED = """
    SELECT sale_id FROM audit.sale_observations WHERE partner = 'nobody' AND gone_at IS NULL ORDER BY sale_id
"""
A_WEEK_AGO = "UPDATE audit.service_readings SET all_compared_at = now() - interval '169 hours'"


def test_rights_on_some_columns_are_enough_and_leave_versions_out(
    empty_database: Database, service: sa.Engine, mapping: ServiceMap
) -> None:
    name = service.url.database
    role = f"columns_{name}"
    do(service, TABLES + ROWS + RIGHTS.format(role=role, database=name))
    owner = Database(
        empty_database.engine.url.update_query_dict({"options": f"-c role={role}"}).render_as_string(False),
        mapped=True,
    )
    try:
        schema.upgrade(owner, service_map=mapping)
        for _ in range(2):
            observe(owner)
            with owner.transaction() as connection:
                assert connection.scalar(sa.text("SELECT audit_service.state_of_sales()")) is None
    finally:
        owner.dispose()
        do(service, f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")


RIGHTS = """
    CREATE ROLE {role};
    GRANT CREATE, TEMPORARY ON DATABASE {database} TO {role};
    GRANT USAGE ON SCHEMA shop TO {role};
    GRANT SELECT (id, name) ON shop.dealer TO {role};
    GRANT SELECT (id, code, grp, dealer, day, deleted) ON shop.deal TO {role};
    GRANT SELECT (id, deal, kind, key, at) ON shop.proof TO {role};
"""


def test_all_rows_are_compared_where_versions_of_rows_say_too_little(shop: Database) -> None:
    known = {name: sa.text(f"SELECT audit_service.state_of_{name}()") for name in ("sales", "evidences")}
    for altered in (
        "ALTER TABLE shop.deal DROP CONSTRAINT dealt",
        "ALTER TABLE shop.deal ENABLE ROW LEVEL SECURITY",
        "CREATE TABLE shop.part () INHERITS (shop.deal)",
        "ALTER TABLE shop.dealer RENAME id TO number",
    ):
        with shop.engine.connect() as connection:
            assert None not in [connection.scalar(state) for state in known.values()]
            connection.exec_driver_sql(altered)
            assert connection.scalar(known["sales"]) is None, altered
