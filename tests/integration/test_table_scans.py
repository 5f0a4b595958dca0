"""Work on one sale finds its rows by indexes, however many sales there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from tests.benchmarks.made_sales import fill
from tests.support.waiting import wait_until
from toolkit.audit.sale_case import sale_case
from toolkit.bucket.client import Bucket
from toolkit.contract.deadlines import Deadlines
from toolkit.contract.evidence import EvidenceType
from toolkit.database.connection import Database
from toolkit.evidence.completion import complete_sale
from toolkit.evidence.credentials import UploadLimits, request_upload
from toolkit.evidence.records import records_of, withdraw

SALES = 10_000


def test_work_on_one_sale_goes_through_no_table(database: Database, bucket: Bucket) -> None:
    fill(database, SALES)
    scans = TableScans(database)
    found = {name: scans.during(work) for name, work in about_one_sale(database, bucket).items()}
    assert {name: read for name, read in found.items() if max(read.values(), default=0) >= SALES} == {}


NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SALE = "S-2"
DEADLINES = Deadlines(ZoneInfo("America/Sao_Paulo"))


class TableScans:
    """Counts what each piece of work does in one database, from the statistics that PostgreSQL keeps."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def during(self, work: Callable[[], object]) -> dict[str, int]:
        """Do the work, and return the rows of each table that it read by going through the whole of it."""
        before = self._rows()
        work()
        return {name: count - before.get(name, 0) for name, count in self._rows().items()}

    def _rows(self) -> dict[str, int]:
        query = "SELECT relid::regclass::text, seq_tup_read FROM pg_stat_user_tables"
        return {name: count for name, count in self._read(query) if "pg_temp" not in name}

    def _read(self, query: str) -> list[tuple[str, int]]:
        self._database.dispose()  # a server process tells its counts when it ends
        alone = sa.text("SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database()")
        engine = sa.create_engine(self._database.engine.url, poolclass=sa.NullPool)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            wait_until(lambda: connection.scalar(alone))
            return [(row[0], row[-1]) for row in connection.execute(sa.text(query))]


def about_one_sale(database: Database, bucket: Bucket) -> Mapping[str, Callable[[], object]]:
    """The work that concerns one sale, or some: it may go through no table, however many sales there are."""
    limits = UploadLimits(300, 1000)
    body = {"fileName": "a.pdf", "fileFormat": "application/pdf", "type": "application/pdf"}
    body["evidenceType"] = EvidenceType.DOC_CONTRATANTE
    query = sa.text("SELECT id FROM evidences WHERE sale_id = :sale ORDER BY id LIMIT 1")
    with database.transaction() as connection:
        record = connection.execute(query, {"sale": SALE}).scalar_one()
    people = {"reason": "sent twice", "withdrawn_by": "ana", "approved_by": "bruno"}

    def clock() -> datetime:
        return NOW

    return {
        "sale show": lambda: sale_case(database, SALE, clock=clock, deadlines=DEADLINES),
        "evidence list": lambda: records_of(database, SALE, clock),
        "sales complete": lambda: complete_sale(database, bucket, SALE, clock),
        "request of credentials": lambda: request_upload(
            database, bucket, SALE, body, requested_by="ana", limits=limits, clock=clock
        ),
        "evidence withdraw": lambda: withdraw(database, record, clock=clock, **people),
    }
