"""Store sales, evidence records and files in the bucket for the custody tests."""

import json
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from tests.support.evidence_files import pdf, tone
from toolkit.contract.evidence import KIND_OF, EvidenceType, FileKind, object_key
from toolkit.database.tables import evidences, new_id, sales

MONDAY = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)

PDF = pdf()
MP3 = tone(1.5)


def add_sale(database, sale_id="sale-1", **values):
    with database.transaction() as connection:
        usual = {"utility_group": "A", "is_client_financial_responsible": True, "created_at": MONDAY}
        connection.execute(sa.insert(sales), {"id": sale_id, **usual, **values})
    return sale_id


def add_record(
    database,
    sale_id="sale-1",
    evidence_type=EvidenceType.DOC_CONTRATANTE,
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
        media_type = "audio/mpeg" if KIND_OF[EvidenceType(evidence_type)] is FileKind.AUDIO else "application/pdf"
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
