"""Issue upload credentials for many files at once, into a file of their own."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, TextIO
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.domain.evidence import EvidenceType, object_key
from toolkit.errors import InvalidField, InvalidInput
from toolkit.operations import Clock
from toolkit.operations.atomic_file import atomic_file
from toolkit.operations.observe.belonging import check_bucket
from toolkit.operations.progress import Progress, Quiet
from toolkit.operations.prove.custody_log.events import record_issued, record_reissued
from toolkit.operations.request.existing_records import KnownRecord, known_records, stage, without_sale
from toolkit.operations.request.manifest import Manifest, ManifestRow, Wanted, read_manifest
from toolkit.operations.request.single import UploadLimits
from toolkit.operations.spreadsheets.named_columns import RejectedRow
from toolkit.storage.bucket import Bucket, UploadForm
from toolkit.storage.database import Database, raw
from toolkit.storage.locks import Lock, take
from toolkit.storage.service_map.keys import next_ids
from toolkit.storage.service_map.writing import require_writable
from toolkit.storage.tables import evidence_requests, evidences

_STEP: Final = 500
"""Forms between two signs of progress."""


def journal_of(credentials: Path) -> Path:
    """Return the file in which uploads with a credentials file note the lines that were sent."""
    return credentials.with_name(credentials.name + ".done")


@dataclass(frozen=True, slots=True)
class AlreadyUploaded:
    """A row that needs no credentials: the record whose file is in the bucket."""

    line: int
    sale_id: str
    file_name: str
    evidence_type: EvidenceType
    id: UUID


@dataclass(frozen=True, slots=True)
class ManifestResult:
    """The result for each row of a manifest.

    ``issued`` have a new record; ``reissued`` had one whose credentials are still valid, and have a new form for
    that same record; both are in the file. ``skipped`` are uploaded and not in it. Where rows are ``rejected``,
    nothing was issued and the file was not touched.
    """

    rows: int
    issued: int = 0
    reissued: int = 0
    skipped: tuple[AlreadyUploaded, ...] = ()
    rejected: tuple[RejectedRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Order:
    """The requester, the limits and the clock of a request for many credentials.

    ``account`` is who is signed in, where ``requested_by`` may be another name.
    """

    requested_by: str
    limits: UploadLimits
    clock: Clock
    account: str | None = None
    progress: Progress = field(default_factory=Quiet)


def request_manifest(database: Database, bucket: Bucket, path: Path, out: Path, order: Order) -> ManifestResult:
    """Issue credentials for every row of the manifest ``path`` into ``out``, or for none.

    ``out`` gets one JSON object a line, in the manifest's order; its mode is 0600 and it is replaced as a whole,
    after the records were committed. A call that was killed in between is repeated: what it stored is reissued.

    Raises:
        UnreadableFile: the manifest cannot be read, or lacks a column.
        InvalidInput: ``out`` cannot be written, or is the manifest.
        WrongBucket: the database belongs to another bucket.
        BucketError: forms cannot be signed. In all these cases nothing was stored or written.
    """
    keep_apart(path, out)
    return issue(database, bucket, read_manifest(path), out, order)


def keep_apart(source: Path, out: Path) -> None:
    """Make sure that the credentials file does not replace the manifest.

    Raises:
        InvalidInput: both are one file.
    """
    if out.exists() and source.exists() and out.samefile(source):
        raise InvalidInput(f"{out} is read and cannot be written, too; name another file for the credentials.")


def issue(database: Database, bucket: Bucket, manifest: Manifest, out: Path, order: Order) -> ManifestResult:
    """Issue credentials for rows that were read before; see ``request_manifest``."""
    require_writable(database, "evidences.insert")
    wanted, rows = manifest.wanted, len(manifest.wanted) + len(manifest.rejected)
    # The database commits before the file appears: there is no form without a record.
    with atomic_file(out) as draft, database.transaction() as connection:
        check_bucket(connection, bucket)
        take(connection, Lock.CREDENTIALS)
        stage(connection, wanted)
        unknown = [RejectedRow(wanted[position].line, _NO_SALE) for position in without_sale(connection)]
        if rejected := sorted([*manifest.rejected, *unknown], key=lambda row: row.line):
            return ManifestResult(rows, rejected=tuple(rejected))
        now = order.clock()
        known = known_records(connection, bucket, now)
        issued = _Batch(database, bucket, order, now).write(connection, wanted, known, draft.file)
        draft.finish()
        # The journal of an earlier file's uploads says nothing about this file.
        journal_of(out).unlink(missing_ok=True)
    skipped = tuple(_skipped(wanted[position], record) for position, record in known.items() if record.uploaded)
    return ManifestResult(rows, issued, rows - issued - len(skipped), skipped)


_NO_SALE: Final = (InvalidField("saleId", "No sale has this id"),)


def _skipped(item: Wanted, record: KnownRecord) -> AlreadyUploaded:
    row = item.row
    return AlreadyUploaded(item.line, row.sale_id, row.file_name, row.evidence_type, record.evidence_id)


@dataclass(frozen=True, slots=True)
class _Batch:
    """The values that all forms of one call have in common."""

    database: Database
    bucket: Bucket
    order: Order
    requested_at: datetime

    def write(
        self,
        connection: Connection,
        wanted: Sequence[Wanted],
        known: Mapping[int, KnownRecord],
        file: TextIO,
    ) -> int:
        """Write a line for each row that is not uploaded, store the records that are new, and count those."""
        progress = self.order.progress
        issued: list[UUID] = []
        reissued: list[UUID] = []
        ids = next_ids(self.database, "evidences", len(wanted) - len(known))
        progress.begin("Signing", len(wanted), "forms")
        with raw(connection).cursor().copy(_COPY_RECORDS) as copy:
            for position, item in enumerate(wanted):
                record = known.get(position)
                if record is None:
                    evidence_id = UUID(bytes=ids[len(issued)].tobytes())
                    form = self._new_form(item.row, evidence_id)
                    copy.write_row(self._record(item.row, evidence_id, form))
                    file.write(_line(item.row, evidence_id, form))
                    issued.append(evidence_id)
                elif not record.uploaded:
                    assert record.expires_at is not None  # otherwise nobody knows whether it is still valid
                    form = self._form(record.object_key, record.expires_at)
                    file.write(_line(item.row, record.evidence_id, form))
                    reissued.append(record.evidence_id)
                if position % _STEP == _STEP - 1:
                    progress.advance(_STEP)
        progress.advance(len(wanted) % _STEP)
        if issued:
            record_issued(connection, issued)
            connection.execute(
                _ASKED_BY_OPERATOR, {"ids": issued, "account": self.order.account or self.order.requested_by}
            )
        record_reissued(connection, reissued, self.requested_at)
        progress.end()
        return len(issued)

    def _new_form(self, row: ManifestRow, evidence_id: UUID) -> UploadForm:
        key = object_key(evidence_id, row.file_name, self.requested_at)
        return self._form(key, self.requested_at + timedelta(seconds=self.order.limits.ttl_seconds))

    def _form(self, key: str, expires_at: datetime) -> UploadForm:
        return self.bucket.presign_post(key, max_bytes=self.order.limits.max_bytes, expires_at=expires_at)

    def _record(self, row: ManifestRow, evidence_id: UUID, form: UploadForm) -> tuple[object, ...]:
        return (
            evidence_id,
            row.sale_id,
            row.file_name,
            row.file_format,
            row.type,
            row.evidence_type.value,
            form.fields["key"],
            self.order.requested_by,
            self.requested_at,
            form.expires_at,
        )


_COPY_RECORDS: Final = f"COPY {evidences} ({', '.join(evidences.columns.keys())}) FROM STDIN"

_ASKED_BY_OPERATOR: Final = sa.text(
    f"INSERT INTO {evidence_requests} (evidence_id, account) SELECT id, :account FROM unnest(:ids) AS asked (id)"  # noqa: S608
).bindparams(sa.bindparam("ids", type_=sa.ARRAY(sa.Uuid)))


def _line(row: ManifestRow, evidence_id: UUID, form: UploadForm) -> str:
    document = {
        "saleId": row.sale_id,
        "fileName": row.file_name,
        "evidenceType": row.evidence_type,
        "id": str(evidence_id),
        "expiresAt": form.expires_at.isoformat(),
        "url": form.url,
        "fields": form.fields,
    }
    return json.dumps(document, ensure_ascii=False) + "\n"
