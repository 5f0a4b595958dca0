"""Count the rows that work reads by going through whole tables, and the indexes that it uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from tests.waiting import wait_until
from toolkit.domain.deadlines import Deadlines
from toolkit.domain.evidence import EvidenceType
from toolkit.operations.judge.audit.sale_evidence import evidence_at
from toolkit.operations.judge.completion import complete_sale
from toolkit.operations.judge.evidence_records import records_of
from toolkit.operations.judge.sale_case import sale_case
from toolkit.operations.judge.withdrawal import withdraw
from toolkit.operations.request.single import UploadLimits, request_upload
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SALE = "S-2"
DEADLINES = Deadlines(ZoneInfo("America/Sao_Paulo"))


class TableScans:
    """Counts what each piece of work does in one database, from the statistics that PostgreSQL keeps."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.used: Counter[str] = Counter()
        """The number of scans of each index of the toolkit's tables."""

    def during(self, work: Callable[[], object]) -> dict[str, int]:
        """Do the work, and return the rows of each table that it read by going through the whole of it."""
        before_rows, before_scans = self._rows(), self._scans()
        work()
        self.used.update(_more(self._scans(), before_scans))
        return _more(self._rows(), before_rows)

    def unused(self) -> list[str]:
        """Return the indexes of the toolkit's tables that no work has used, but for those that keep rows apart."""
        query = """
            SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
            WHERE relnamespace = 'audit'::regnamespace AND NOT indisunique ORDER BY 1
        """
        return [name for name, _ in self._read(query) if not self.used[name]]

    def _rows(self) -> dict[str, int]:
        query = "SELECT relid::regclass::text, seq_tup_read FROM pg_stat_user_tables"
        return {name: count for name, count in self._read(query) if "pg_temp" not in name}

    def _scans(self) -> dict[str, int]:
        return dict(self._read("SELECT indexrelid::regclass::text, idx_scan FROM pg_stat_user_indexes"))

    def _read(self, query: str) -> list[tuple[str, int]]:
        self._database.dispose()  # a server process tells its counts when it ends
        alone = sa.text("SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database()")
        engine = sa.create_engine(self._database.engine.url, poolclass=sa.NullPool)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            wait_until(lambda: connection.scalar(alone))
            return [(row[0], row[-1]) for row in connection.execute(sa.text(query))]


def _more(now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    return {name: count - before.get(name, 0) for name, count in now.items() if count > before.get(name, 0)}


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
        "cases in a report": lambda: list(evidence_at(database, NOW, [f"S-{number}" for number in range(500)])),
        "evidence list": lambda: records_of(database, SALE, clock),
        "sales complete": lambda: complete_sale(database, bucket, SALE, clock),
        "request of credentials": lambda: request_upload(
            database, bucket, SALE, body, requested_by="ana", limits=limits, clock=clock
        ),
        "evidence withdraw": lambda: withdraw(database, record, clock=clock, **people),
    }
