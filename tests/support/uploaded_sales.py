"""Store sales, evidence records and files in the bucket, and observations at the moments that a test wants."""

import json
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from tests.support.evidence_files import pdf, tone
from tests.support.request_bodies import CLIENT
from toolkit.contract.evidence import KIND_OF, FileKind, object_key
from toolkit.contract.people import PartnerAccess, UnassignedSales
from toolkit.database import tables
from toolkit.database.tables import evidences, new_id, sales
from toolkit.evidence.access import one_sale
from toolkit.intake.registration import register_client

MONDAY = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
WHEN = {"requested_at": MONDAY, "expires_at": datetime(2099, 1, 1, tzinfo=UTC)}
"""Of records whose files lie in the bucket since the real today, which must not be too late."""

PDF = pdf()
MP3 = tone(1.5)


def add_sale(database, sale_id="sale-1", **values):
    with database.transaction() as connection:
        usual = {"utility_group": "A", "is_client_financial_responsible": True, "created_at": MONDAY}
        connection.execute(sa.insert(sales), {"id": sale_id, **usual, **values})
    return sale_id


def partner_of(database, sale_id):
    """The software of the partner of a sale, which asks for credentials."""
    partner = database.run(one_sale, None, sale_id).partner or "Luz"
    return PartnerAccess("crm", partner, UnassignedSales.ANY, 20)


def add_record(
    database,
    sale_id="sale-1",
    evidence_type="DOC_CONTRATANTE",
    *,
    file_name="contract.pdf",
    media_type=None,
    requested_at=MONDAY,
    expires_at=None,
    key=None,
):
    """A record as ``request_upload`` keeps it: its id, and the key of its object."""
    evidence_id = new_id()
    key = key or object_key(evidence_id, file_name, requested_at)
    if media_type is None:
        media_type = "audio/mpeg" if KIND_OF[evidence_type] is FileKind.AUDIO else "application/pdf"
    of_file = {"file_name": file_name, "file_format": media_type, "type": media_type, "object_key": key}
    times = {"requested_at": requested_at, "expires_at": expires_at or requested_at + timedelta(hours=1)}
    record = {"id": evidence_id, "sale_id": sale_id, "evidence_type": evidence_type, "requested_by": "test"}
    with database.transaction() as connection:
        connection.execute(sa.insert(evidences), record | of_file | times)
    return evidence_id, key


def rows(database, query):
    with database.transaction() as connection:
        return [tuple(row) for row in connection.execute(sa.text(query))]


def execute(database, *statements):
    with database.transaction() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def unguarded(database, table, *statements):
    """Execute statements without the triggers of a table of the toolkit, as its owner can."""
    guards = (f"ALTER TABLE audit.{table} {each} TRIGGER USER" for each in ("DISABLE", "ENABLE"))
    execute(database, next(guards), *statements, next(guards))


def write_credentials(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def credentials_line(
    bucket, sale_id, file_name, evidence_type="DOC_CONTRATANTE", *, max_bytes=1_000_000, lives=timedelta(hours=1)
):
    """A line of a credentials file with a form that the bucket accepts."""
    evidence_id, now = new_id(), datetime.now(UTC)
    key = object_key(evidence_id, file_name, now)
    form = bucket.presign_post(key, max_bytes=max_bytes, expires_at=now + lives)
    return {
        "saleId": sale_id,
        "fileName": file_name,
        "evidenceType": evidence_type,
        "id": str(evidence_id),
        "url": form.url,
        "fields": form.fields,
    }


FIRST = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def day(number):
    """Noon of a day of March 2026."""
    return FIRST + timedelta(days=number - 1)


class Story:
    """Writes what happened into a database."""

    def __init__(self, database):
        self.database = database

    def client(self, cpf="52998224725"):
        body = CLIENT | {"cpf": cpf, "lastName": "Souza"}
        return register_client(self.database.at(lambda: FIRST), body).client_id

    def sale(self, sale_id="S-1", *, seen_at=FIRST, gone_at=None, **values):
        """A sale as it was seen from ``seen_at`` until ``gone_at``."""
        sale = {"utility_group": "A", "is_client_financial_responsible": True, "created_at": FIRST, **values}
        with self.database.transaction() as connection:
            connection.execute(insert(tables.sales).values(id=sale_id, **sale).on_conflict_do_nothing())
        self._insert(tables.sale_observations, sale_id=sale_id, seen_at=seen_at, gone_at=gone_at, **sale)
        return sale_id

    def record(self, sale_id, evidence_type, *, requested_at=FIRST, lives=HOUR):
        """An evidence record, seen as soon as it was requested: its id, and the key of its object."""
        times = {"requested_at": requested_at, "expires_at": requested_at + lives}
        of_file = {"file_name": "file", "media_type": "x"}
        evidence_id, key = add_record(self.database, sale_id, evidence_type, **of_file, **times)
        record = {"sale_id": sale_id, "type": "x", "evidence_type": evidence_type, "object_key": key, **times}
        self._insert(tables.evidence_observations, evidence_id=evidence_id, seen_at=requested_at, **record)
        return evidence_id, key

    def upload(self, key, *, seen_at=FIRST, gone_at=None):
        """An object as it was seen in the bucket: the id of the observation."""
        seen = {"key": key, "size": 1000, "etag": "etag", "last_modified": seen_at}
        return self._insert(tables.object_observations, seen_at=seen_at, gone_at=gone_at, **seen)

    def check(self, observation, kind, *, at=FIRST, **values):
        self._insert(tables.content_checks, observation_id=observation, kind=kind, checked_at=at, **values)

    def file(self, sale_id, evidence_type, *, at=FIRST):
        """A record with a good file that was examined, all at one moment."""
        _, key = self.record(sale_id, evidence_type, requested_at=at)
        self.check(self.upload(key, seen_at=at), KIND_OF[evidence_type], at=at)

    def withdraw(self, sale_id, evidence_id, *, at):
        people = {"reason": "sent twice", "withdrawn_by": "ana", "approved_by": "bia"}
        self._insert(tables.withdrawals, sale_id=sale_id, evidence_id=evidence_id, withdrawn_at=at, **people)

    def synced(self, at):
        nothing = dict.fromkeys(("listed", "appeared", "vanished"), 0)
        named = {"bucket": "evidence", "full_listing": True}
        self._insert(tables.bucket_syncs, started_at=at, finished_at=at, **named, **nothing)

    def _insert(self, table, **values):
        with self.database.transaction() as connection:
            return connection.scalar(sa.insert(table).returning(*table.primary_key), values)
