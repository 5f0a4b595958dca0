"""Issue upload credentials for many files at once: those of a manifest, or those that a report misses."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, TextIO
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.atomic_files import atomic_file
from toolkit.bucket.client import Bucket, UploadForm
from toolkit.contract.codes import Worded
from toolkit.contract.deadlines import Clock
from toolkit.contract.evidence import KIND_OF, EvidenceType, FileKind, object_key
from toolkit.contract.findings import REPORT, Problem, Status, items
from toolkit.database.belonging import check_bucket
from toolkit.database.connection import Database, raw
from toolkit.database.identifiers import new_ids
from toolkit.database.locks import Lock, take
from toolkit.database.service import COLUMNS, create_new
from toolkit.database.tables import evidence_requests
from toolkit.errors import InvalidField, InvalidInput, UnreadableFile
from toolkit.evidence.credentials import UploadLimits
from toolkit.evidence.manifest import (
    KnownRecord,
    Manifest,
    ManifestRow,
    Wanted,
    judged,
    known_records,
    read_manifest,
    sales_with_kyc,
    stage,
    without_sale,
)
from toolkit.intake.cells import as_written
from toolkit.intake.tables import RejectedRow, read_table
from toolkit.log.events import record_issued, record_reissued
from toolkit.progress import Progress, Quiet

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
        raise InvalidInput("{} is read and cannot be written, too; name another file for the credentials.", out)


def issue(database: Database, bucket: Bucket, manifest: Manifest, out: Path, order: Order) -> ManifestResult:
    """Issue credentials for rows that were read before; see ``request_manifest``."""
    database.service.require("add_records")
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
        ids = new_ids(len(wanted) - len(known))
        create_new(connection, "new_records")
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
            self.database.service.run(connection, "add_records")
            record_issued(connection)
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


_COPY_RECORDS: Final = f"COPY new_records ({', '.join(COLUMNS['records'])}) FROM STDIN"

_ASKED_BY_OPERATOR: Final = sa.text(
    f"INSERT INTO {evidence_requests} (evidence_id, account) SELECT id, :account FROM unnest(:ids) AS asked (id)"
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


REPORT_NAME: Final = f"{REPORT}.csv"
"""The file of a report folder that lists what is missing."""

_COLUMNS: Final = ("saleId", "status", "missing")
_SAFE_NAME: Final = 200
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


class LeftOutReason(Worded):
    """The reason why nothing is requested for a sale of the report."""

    CONFLICT = "CONFLICT", "The sale is in conflict: a record has to be withdrawn, not another one requested."
    GROUP_UNKNOWN = (
        "GROUP_UNKNOWN",
        "The utility group is unknown, so no rule says what the sale needs: it has to be corrected in the system "
        "that the sale belongs to.",
    )
    PAYER_UNKNOWN = (
        "PAYER_UNKNOWN",
        "Nothing says who pays, so nobody can tell what the sale needs: it has to be corrected in the system that "
        "the sale belongs to.",
    )
    KYC_PENDING = "KYC_PENDING", "A KYC was requested, which would replace all that is missing."


_UNKNOWN: Final = (Problem.GROUP_UNKNOWN, Problem.PAYER_UNKNOWN)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A sale of the report that nothing was requested for."""

    line: int
    sale_id: str
    reason: LeftOutReason


@dataclass(frozen=True, slots=True)
class _ReportedSale:
    line: int
    sale_id: str
    status: str
    missing: tuple[str, ...]
    problems: tuple[str, ...]


def request_missing(
    database: Database,
    bucket: Bucket,
    report: Path,
    out: Path,
    order: Order,
) -> tuple[ManifestResult, tuple[LeftOut, ...]]:
    """Issue credentials for every file that ``report`` says is missing, as ``request_manifest`` does.

    ``report`` is a ``missing-evidence.csv`` or the folder that holds it. File names are made of the sale id and
    the type; rows of the result count files, lines are those of the report.

    Raises:
        UnreadableFile: the report cannot be read, or lacks a column.
        InvalidInput, BucketError: as ``request_manifest``.
    """
    source = report / REPORT_NAME if report.is_dir() else report
    keep_apart(source, out)
    sales = _reported_sales(source)
    left_out = _left_out(database, bucket, sales, order.clock())
    named = {sale.line for sale in left_out}
    manifest = judged(body for sale in sales if sale.line not in named for body in _bodies(sale))
    return issue(database, bucket, manifest, out, order), tuple(left_out)


def _reported_sales(path: Path) -> list[_ReportedSale]:
    table = read_table(path)
    lacking = [name for name in _COLUMNS if name not in table.rows.column_names]
    if lacking:
        raise UnreadableFile(
            "{}: the columns {} are missing; is this the {} of a report?", path, ", ".join(lacking), REPORT_NAME
        )
    told = {name: table.rows[name].to_pylist() for name in table.rows.column_names}
    told.setdefault("problems", [""] * len(table.rows))
    cells = zip(table.lines.tolist(), *(told[name] for name in (*_COLUMNS, "problems")), strict=True)
    return [
        _ReportedSale(line, as_written(sale_id), status, _listed(missing), _listed(problems))
        for line, sale_id, status, missing, problems in cells
    ]


def _listed(cell: str) -> tuple[str, ...]:
    return tuple(items(cell))


def _left_out(database: Database, bucket: Bucket, sales: list[_ReportedSale], now: datetime) -> list[LeftOut]:
    with database.transaction() as connection:
        pending = sales_with_kyc(connection, bucket, [sale.sale_id for sale in sales], now)
    found = []
    for sale in sales:
        unknown = next((each for each in _UNKNOWN if each in sale.problems), None)
        if unknown is not None:
            found.append(LeftOut(sale.line, sale.sale_id, LeftOutReason(unknown)))
        elif sale.status == Status.CONFLICT:
            found.append(LeftOut(sale.line, sale.sale_id, LeftOutReason.CONFLICT))
        elif sale.missing and sale.sale_id in pending:
            found.append(LeftOut(sale.line, sale.sale_id, LeftOutReason.KYC_PENDING))
    return found


def _bodies(sale: _ReportedSale) -> Iterator[tuple[int, dict[str, str]]]:
    safe = _UNSAFE.sub("_", sale.sale_id)[:_SAFE_NAME]
    for missing in sale.missing:
        audio = missing in set(EvidenceType) and KIND_OF[EvidenceType(missing)] is FileKind.AUDIO
        named = {"saleId": sale.sale_id, "fileName": f"{safe}-{missing}.{'mp3' if audio else 'pdf'}"}
        kinds = dict.fromkeys(("fileFormat", "type"), "audio/mpeg" if audio else "application/pdf")
        yield sale.line, named | kinds | {"evidenceType": missing}
