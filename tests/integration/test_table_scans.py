"""Work on one sale finds its rows by indexes, however many sales there are."""

from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from tests.benchmarks.made_sales import fill
from tests.support.waiting import wait_until
from toolkit.audit.sale_case import sale_case
from toolkit.contract.evidence import EvidenceType
from toolkit.database.connection import Database, raw
from toolkit.database.observations import observe_service
from toolkit.database.service import evidences, load_service, sales
from toolkit.evidence.completion import complete_sale
from toolkit.evidence.credentials import UploadLimits, request_upload
from toolkit.evidence.records import records_of, withdraw

SALES = 10_000


STATEMENTS = """
-- name: sales
SELECT id, NULL AS client_id, grp AS utility_group, true AS is_client_financial_responsible, NULL AS partner,
       sold AS created_at, done AS completed_at
FROM app.sale;
-- name: records
SELECT id, sale_id, name AS file_name, NULL AS file_format, NULL AS type, kind AS evidence_type, key AS object_key,
       NULL AS requested_by, at AS requested_at, NULL AS expires_at
FROM app.doc;
-- name: clients
SELECT * FROM public.clients AS client CROSS JOIN (SELECT NULL::uuid AS address_id, neighborhood,
    installation_number, address, address_number, city, zip_code FROM public.addresses) AS address;
-- name: complete_sale
UPDATE app.sale SET done = completed_at FROM completed_sale
WHERE sale.id = CAST(completed_sale.id AS {sale}) AND done IS NULL;
"""

ADD_RECORDS = """
-- name: add_records
INSERT INTO app.doc (id, sale_id, name, kind, key, at)
SELECT id, CAST(sale_id AS uuid), file_name, evidence_type, object_key, requested_at FROM new_records;
"""

OTHER_TABLES = """
    CREATE SCHEMA app;
    CREATE TABLE app.sale (id {sale} PRIMARY KEY, grp text, sold timestamptz, done timestamptz);
    CREATE TABLE app.doc (id {sale} PRIMARY KEY, sale_id {sale}, name text, kind text,
                          key text, at timestamptz);
    CREATE INDEX ON app.doc (sale_id);
    INSERT INTO app.sale (id, grp, sold) SELECT {id}, 'A', now() FROM generate_series(1, {rows}) AS n;
    INSERT INTO app.doc (id, sale_id, name, kind, key, at)
    SELECT id, id, 'a.pdf', 'DOC_CONTRATANTE', 'doc/' || id, now() FROM app.sale;
    ANALYZE app.sale, app.doc;
"""


@pytest.mark.parametrize("sale", ["text", "uuid", "bigint"])
def test_work_on_one_sale_goes_through_no_table(database, bucket, tmp_path, sale):
    """A uuid or a number is an id as well, though the contract's is a text that no index of such a table holds."""
    if sale == "text":
        fill(database, SALES)
    else:
        made = "CAST(md5(CAST(n AS text)) AS uuid)" if sale == "uuid" else "n"
        with database.transaction() as connection:
            raw(connection).execute(OTHER_TABLES.format(sale=sale, id=made, rows=SALES).encode())
        (tmp_path / "service.sql").write_text(
            STATEMENTS.format(sale=sale) + ADD_RECORDS * (sale == "uuid"), encoding="utf-8"
        )
        url = database.engine.url.render_as_string(hide_password=False)
        database.dispose()
        database = Database(url, service=load_service(tmp_path / "service.sql"))
        observe_service(database, lambda: NOW)
    with database.transaction() as connection:
        some = sa.select(sales.c.id).order_by(sales.c.id).offset(SALES // 2).limit(1)
        sale_id = connection.execute(some).scalar_one()
    found = {}
    for name, work in about_one_sale(database, bucket, sale_id).items():
        before = rows_scanned(database)
        work()
        found[name] = {table: read - before.get(table, 0) for table, read in rows_scanned(database).items()}
    database.dispose()
    assert {name: read for name, read in found.items() if max(read.values(), default=0) >= SALES} == {}


NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def rows_scanned(database):
    """The rows of each table that were read by going through the whole of it, as PostgreSQL counts them."""
    database.dispose()  # a server process tells its counts when it ends
    alone = sa.text("SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database()")
    engine = sa.create_engine(database.engine.url, poolclass=sa.NullPool)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        wait_until(lambda: connection.scalar(alone))
        found = connection.exec_driver_sql("SELECT relid::regclass::text, seq_tup_read FROM pg_stat_user_tables")
        return {name: read for name, read in found if "pg_temp" not in name}


def about_one_sale(database, bucket, sale_id):
    """The work that concerns one sale, or some: it may go through no table, however many sales there are."""
    limits = UploadLimits(300, 1000)
    body = {"fileName": "a.pdf", "fileFormat": "application/pdf", "type": "application/pdf"}
    body["evidenceType"] = EvidenceType.DOC_CONTRATANTE
    query = sa.select(evidences.c.id).where(evidences.c.sale_id == sale_id).order_by(evidences.c.id).limit(1)
    with database.transaction() as connection:
        record = connection.execute(query).scalar_one()
    people = {"reason": "sent twice", "withdrawn_by": "ana", "approved_by": "bruno"}

    def clock():
        return NOW

    work = {
        "sale show": lambda: sale_case(database, sale_id, clock=clock),
        "evidence list": lambda: records_of(database, sale_id, clock),
        "sales complete": lambda: complete_sale(database, bucket, sale_id, clock),
        "evidence withdraw": lambda: withdraw(database, record, clock=clock, **people),
    }
    if "add_records" in database.service.statements:  # a number is no place for the id of a new record
        work["request of credentials"] = lambda: request_upload(
            database, bucket, sale_id, body, requested_by="ana", limits=limits, clock=clock
        )
    return work
