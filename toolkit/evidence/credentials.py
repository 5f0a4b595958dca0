"""Issue upload credentials for one file (contract, "2. Request evidence upload credentials") or a manifest."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, TextIO
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection, Row
from sqlalchemy.exc import IntegrityError

from toolkit.atomic_files import atomic_file, to_disk
from toolkit.bucket.client import Bucket, UploadForm, ask_each
from toolkit.contract.evidence import EvidenceRequest, UtilityGroup, object_key
from toolkit.contract.fields import REQUIRED, parse, pick_camel
from toolkit.contract.people import PartnerAccess
from toolkit.contract.resources import SaleId, UploadCredentials, is_possible_sale_id
from toolkit.contract.rules import EvidenceState
from toolkit.database.belonging import BUCKET_OF_DATABASE, check_bucket
from toolkit.database.connection import Database, Lock, among, database_of, raw, take
from toolkit.database.observations import withdrawal_of
from toolkit.database.service import COLUMNS, Service, create_new, evidences, one_row, service_of
from toolkit.database.tables import evidence_requests, new_id
from toolkit.errors import InvalidField, InvalidFields, InvalidInput, SaleNotFound, TooManyForms
from toolkit.evidence.access import one_sale, own_sale, own_sale_parameters, own_sales
from toolkit.evidence.records import EvidenceRecord, records_where
from toolkit.evidence.upload import journal_of
from toolkit.intake.headings import Headings
from toolkit.intake.registration import refusals
from toolkit.intake.sources import source_of
from toolkit.intake.tables import Rejected, Table, valid_rows
from toolkit.log.events import RECORD_ISSUED, record_reissued
from toolkit.progress import Progress

REQUIRED_FOR_GROUP_D: Final = "evidenceType is required for a sale of utility group D"
"""The contract's own case: ``evidenceType`` missing for a sale of utility group D."""


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """The life of upload credentials in seconds, and the largest file in bytes."""

    ttl_seconds: int
    max_bytes: int


def request_upload(
    database: Database,
    bucket: Bucket,
    sale_id: str,
    body: Mapping[str, Any],
    access: PartnerAccess,
    limits: UploadLimits,
) -> UploadCredentials:
    """Validate ``body`` (contract names), sign a form, and store the evidence record, every time anew.

    Raises:
        InvalidFields: every invalid field of the body at once, whether the sale is known or not.
        AlreadyThere: the service keeps something of the record only once.
        SaleNotFound: no sale has this id, whatever it looks like, or it is not the partner's.
        DatabaseError: several sales have it.
        WrongBucket: the database belongs to another bucket.
        TooManyForms: the sale has as many valid credentials for this type as ``access`` allows.
        BucketError: the form cannot be signed. In all these cases nothing was stored.
    """
    database.service.require("add_records")
    request = _parsed(database, body, access, sale_id)
    if not is_possible_sale_id(sale_id):
        raise SaleNotFound
    evidence_id, requested_at = new_id(), database.clock()
    form = bucket.presign_post(
        object_key(evidence_id, request.file_name, requested_at),
        max_bytes=limits.max_bytes,
        expires_at=requested_at + timedelta(seconds=limits.ttl_seconds),
    )
    record = {
        **request.model_dump(mode="json"),
        **own_sale_parameters(access, sale_id),
        "requested_by": access.subject,
        "bucket": bucket.address,
        "id": evidence_id,
        "object_key": form.fields["key"],
        "requested_at": requested_at,
        "expires_at": form.expires_at,
        "account": access.subject,
    }
    _store(database, bucket, record, access)
    return UploadCredentials(id=evidence_id, url=form.url, fields=form.fields)


def _store(database: Database, bucket: Bucket, record: Mapping[str, Any], access: PartnerAccess) -> None:
    """Store the record where the bucket is the database's, and the sale the requester's own with room for a form.

    Far below the limit nobody waits for anybody. Near it the requests for a sale come one after the other, so
    that those that come at once do not pass it together. What another service stored is read back first.
    """
    # A record that the service refuses, as its sale is just being deleted for instance, is looked at again.
    if database.service.is_own:
        with database.statement() as connection, refusals(), suppress(IntegrityError):
            if _is_issued(connection, {**record, "open_forms": access.open_forms // 2}):
                return
    with database.transaction() as connection, refusals():
        connection.execute(sa.text("SET CONSTRAINTS ALL IMMEDIATE"))
        check_bucket(connection, bucket)
        # Before the lock: whose sale it is not must neither wait for those whose it is, nor make them wait.
        one_sale(connection, access, record["sale_id"])
        take(connection, Lock.OPEN_FORMS, record["sale_id"])
        if _is_issued(connection, {**record, "open_forms": access.open_forms}):
            return
        first = sa.text(f"SELECT min(expires_at) FROM ({_open_forms(database.service)}) AS open")
        if (open_until := connection.execute(first, record).scalar_one()) is None:  # a rule dropped it
            database.service.check_stored(connection, "add_records", record)
    raise TooManyForms(open_until - record["requested_at"])


def _is_issued(connection: Connection, record: Mapping[str, Any]) -> bool:
    """Issue the record where its sale and the limit allow it; tell whether they did."""
    service = service_of(connection)
    if connection.execute(_issue(service), record).rowcount and service.is_own:
        return True
    asked = connection.scalar(sa.select(sa.exists().where(evidence_requests.c.evidence_id == record["id"])))
    if asked:
        service.check_stored(connection, "add_records", record)
    return bool(asked)


def _open_forms(service: Service) -> str:
    return f"""
    SELECT expires_at FROM {service.one("records", "sale_id", ":sale_id")} AS record
    WHERE evidence_type = :evidence_type AND expires_at > :requested_at
"""


@cache
def _issue(service: Service) -> sa.TextClause:
    """Return the statement that finds the sale, stores the record and records the event, all at once."""
    condition = f"""
        FROM own_sale
        WHERE coalesce({BUCKET_OF_DATABASE} = :bucket, TRUE) AND (SELECT count(*) FROM own_sale) = 1
          AND (SELECT count(*) FROM ({_open_forms(service)} LIMIT :open_forms) AS open) < :open_forms
    """
    return service.over(
        "add_records",
        f"""
        {own_sale(service)},
        {one_row("new_records", condition)},
        asked AS (
            INSERT INTO {evidence_requests} (evidence_id, account, partner)
            SELECT new_records.id, :account, own_sale.acting_partner FROM new_records, own_sale
        ),
        told AS ({RECORD_ISSUED})
        """,
    )


def _parsed(database: Database, body: Mapping[str, Any], access: PartnerAccess, sale_id: str) -> EvidenceRequest:
    try:
        return parse(EvidenceRequest, body)
    except InvalidFields as error:
        if InvalidField("evidenceType", REQUIRED) not in error.invalid:
            raise
        # Only whose sale it is learns that it is there, and of which group.
        with database.statement() as connection:
            found = own_sales(connection, access, sale_id)
        if not found or found[0].utility_group != UtilityGroup.D:
            raise
        raise InvalidFields(error.invalid, REQUIRED_FOR_GROUP_D) from None


MANIFEST: Final = Headings(dict.fromkeys(("saleId", "fileName", "fileFormat", "type", "evidenceType"), ()))
"""The columns of a manifest, in any order; others are ignored."""


class ManifestRow(EvidenceRequest):
    """The contract's evidence upload request, and the sale that it is for."""

    sale_id: SaleId


_IDENTITY: Final = ("sale_id", "evidence_type", "file_name")
"""The values by which a row and a record are known to be about the same file."""


@dataclass(frozen=True, slots=True)
class ManifestResult:
    """The result for each row of a manifest.

    ``issued`` have a new record; ``reissued`` had one whose credentials are still valid, and have a new form for
    that same record; both are in the file. ``skipped`` are uploaded and not in it: their lines, and the ids of
    their records. Where rows are ``rejected``, nothing was issued and the file was not touched.
    """

    rows: int
    issued: int = 0
    reissued: int = 0
    skipped: tuple[tuple[int, UUID], ...] = ()
    rejected: Rejected = field(default_factory=dict)


_REPEATED: Final = InvalidField("fileName", "The sale, the type and the file name stand in line {} already")
_NO_SALE: Final = (InvalidField("saleId", "No sale has this id"),)


def request_manifest(
    database: Database, bucket: Bucket, path: Path, out: Path, limits: UploadLimits, progress: Progress
) -> ManifestResult:
    """Issue credentials for every row of the manifest ``path`` into ``out``, or for none, to who is signed in.

    ``out`` gets one JSON object a line, in the manifest's order; its mode is 0600 and it is replaced as a whole,
    after the records were committed. A call that was killed in between is repeated: what it stored is reissued.

    Raises:
        UnreadableFile: the manifest cannot be read, or lacks a column.
        InvalidInput: ``out`` cannot be written, or is the manifest.
        WrongBucket: the database belongs to another bucket.
        BucketError: forms cannot be signed. In all these cases nothing was stored or written.
    """
    if out.exists() and path.exists() and out.samefile(path):
        raise InvalidInput("{} is read and cannot be written, too; name another file for the credentials.", out)
    database.service.require("add_records")
    table = Table(source_of(path), MANIFEST)
    valid, unreadable = valid_rows(table.bodies(), ManifestRow, attrgetter(*_IDENTITY), _REPEATED)
    rows = len(valid) + len(unreadable)
    # The database commits before the file appears: there is no form without a record.
    with atomic_file(out) as draft, database.transaction() as connection:
        check_bucket(connection, bucket)
        take(connection, Lock.CREDENTIALS)
        known_sales = sa.text(_WITHOUT_SALE.format(sales=service_of(connection).text("sales")))
        unknown = set(connection.scalars(known_sales, {"sales": list({row.sale_id for row in valid.values()})}))
        without = {line: _NO_SALE for line, row in valid.items() if row.sale_id in unknown}
        if rejected := dict(sorted((unreadable | without).items())):
            draft.close()
            return ManifestResult(rows, rejected=rejected)
        now = database.clock()
        uploaded, still_valid = _known_records(connection, bucket, valid, now)
        wanted = {line: row for line, row in valid.items() if line not in uploaded}
        issued = _write(connection, bucket, limits, progress, now, wanted, still_valid, draft)
        to_disk(draft)
        # The journal of an earlier file's uploads says nothing about this file.
        journal_of(out).unlink(missing_ok=True)
    return ManifestResult(rows, issued, rows - issued - len(uploaded), tuple(uploaded.items()))


def _write(
    connection: Connection,
    bucket: Bucket,
    limits: UploadLimits,
    progress: Progress,
    now: datetime,
    wanted: Mapping[int, ManifestRow],
    still_valid: Mapping[int, EvidenceRecord],
    file: TextIO,
) -> int:
    """Write a line for each wanted row, store the records that are new, and count those."""
    issued, reissued, account = 0, list[UUID](), database_of(connection).account
    create_new(connection, "new_records")
    progress.begin("Signing", len(wanted), "forms")
    with raw(connection).cursor().copy(_COPY_RECORDS) as copy:
        for line, row in wanted.items():
            record = still_valid.get(line)
            if record is None:
                evidence_id = new_id()
                key = object_key(evidence_id, row.file_name, now)
                expires_at = now + timedelta(seconds=limits.ttl_seconds)
            else:
                assert record.expires_at is not None, "its credentials are valid until then"
                evidence_id, key, expires_at = record.id, record.object_key, record.expires_at
                reissued.append(evidence_id)
            form = bucket.presign_post(key, max_bytes=limits.max_bytes, expires_at=expires_at)
            file.write(_line(row, evidence_id, form))
            if record is None:
                issued += 1
                asked = (row.sale_id, row.file_name, row.file_format, row.type, row.evidence_type.value)
                copy.write_row((evidence_id, *asked, key, account, now, form.expires_at))
            progress.advance(1)
    if issued:
        service_of(connection).run(connection, "add_records")
        connection.execute(sa.text(RECORD_ISSUED))
        connection.execute(sa.text(_ASKED_BY_OPERATOR), {"account": account})
    record_reissued(connection, reissued)
    progress.end()
    return issued


def _line(row: ManifestRow, evidence_id: UUID, form: UploadForm) -> str:
    """Return the line of a credentials file for one form."""
    asked, issued = pick_camel(row, "sale_id", "file_name", "evidence_type"), pick_camel(form, "url", "fields")
    record = {"id": str(evidence_id), "expiresAt": form.expires_at.isoformat()}
    return json.dumps(asked | record | issued, ensure_ascii=False) + "\n"


_COPY_RECORDS: Final = f"COPY new_records ({', '.join(COLUMNS['records'])}) FROM STDIN"

_ASKED_BY_OPERATOR: Final = (
    f"INSERT INTO {evidence_requests} (evidence_id, account) SELECT id, :account FROM new_records"
)


def stored_records(database: Database, sale_ids: Sequence[str]) -> Sequence[Row[Any]]:
    """Return the evidence records of these sales, in whatever state: with the names of their files."""
    withdrawn = sa.exists().where(withdrawal_of(*evidences.c["id", "sale_id", "object_key"]))
    query = sa.select(evidences, withdrawn.label("withdrawn")).where(evidences.c.sale_id.in_(sale_ids))
    with database.transaction() as connection:
        return connection.execute(query).all()


def _known_records(
    connection: Connection, bucket: Bucket, wanted: Mapping[int, ManifestRow], now: datetime
) -> tuple[dict[int, UUID], dict[int, EvidenceRecord]]:
    """Return by line the record whose file is there, and the one whose credentials are valid for longest."""
    query = sa.text(_RECORDS.format(records=service_of(connection).text("records")))
    asked = {name: [getattr(row, name) for row in wanted.values()] for name in _IDENTITY} | {"line": list(wanted)}
    lines = {row.id: row.line for row in connection.execute(query, asked)}
    records = records_where(connection, among(evidences.c.id, lines), now)
    records = [each for each in records if each.withdrawal is None and each.object_key]
    [found] = ask_each(bucket.head, [[each.object_key for each in records]])
    objects = {item.key: item for item in found if item is not None}
    uploaded, still_valid = dict[int, UUID](), dict[int, EvidenceRecord]()
    for record in sorted(records, key=lambda each: each.expires_at or datetime.min.replace(tzinfo=UTC)):
        if record.state_by(objects.get(record.object_key)) is EvidenceState.COUNTED:
            uploaded[lines[record.id]] = record.id
        elif record.expired is False:
            still_valid[lines[record.id]] = record
    return uploaded, still_valid


_WITHOUT_SALE: Final = """
    SELECT wanted.id FROM unnest(CAST(:sales AS text[])) AS wanted (id)
    WHERE NOT EXISTS (SELECT FROM {sales} AS sale WHERE sale.id = wanted.id)
"""

_RECORDS: Final = """
    SELECT line, record.id
    FROM unnest(CAST(:line AS bigint[]), CAST(:sale_id AS text[]), CAST(:evidence_type AS text[]),
                CAST(:file_name AS text[])) AS wanted (line, sale_id, evidence_type, file_name)
    JOIN {records} AS record USING (sale_id, evidence_type, file_name)
"""
