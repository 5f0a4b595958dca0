"""Read a manifest, one row for each file that credentials are wanted for, beside the records that exist."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection, Row

from toolkit.bucket.client import Bucket
from toolkit.contract.evidence import EvidenceRequest, EvidenceType, FileKind
from toolkit.contract.fields import parse
from toolkit.contract.rules import REPLACES_ALL, EvidenceState, evidence_state, ran_out
from toolkit.contract.sales import SaleId
from toolkit.database.connection import Database, raw
from toolkit.database.service import evidences, service_of
from toolkit.database.tables import withdrawals
from toolkit.errors import InvalidField, InvalidFields
from toolkit.intake.tables import NamedColumns, RejectedRow, read_table

COLUMNS: Final = NamedColumns("A manifest", ("saleId", "fileName", "fileFormat", "type", "evidenceType"))
"""The columns of a manifest, in any order; others are ignored."""


class ManifestRow(EvidenceRequest):
    """The contract's evidence upload request, and the sale that it is for."""

    sale_id: SaleId

    @property
    def identity(self) -> tuple[str, EvidenceType, str]:
        """The values by which a row and a record are known to be about the same file."""
        return self.sale_id, self.evidence_type, self.file_name


@dataclass(frozen=True, slots=True)
class Wanted:
    """A valid row and its line in the file."""

    line: int
    row: ManifestRow


@dataclass(frozen=True, slots=True)
class Manifest:
    """The rows of a manifest in its order, each either wanted or rejected."""

    wanted: list[Wanted]
    rejected: list[RejectedRow]


def read_manifest(path: Path) -> Manifest:
    """Read a CSV or XLSX file with the columns ``COLUMNS`` and judge each row by the contract's rules.

    A row about the same file as one before it is rejected.

    Raises:
        UnreadableFile: it cannot be read, or lacks a column.
    """
    table = read_table(path)
    return judged(COLUMNS.bodies(table, COLUMNS.headings(table, path)))


def judged(bodies: Iterable[tuple[int, Mapping[str, Any]]]) -> Manifest:
    """Judge rows given as their lines and bodies (contract names)."""
    wanted: list[Wanted] = []
    rejected: list[RejectedRow] = []
    first_lines: dict[tuple[str, EvidenceType, str], int] = {}
    for line, body in bodies:
        try:
            row = parse(ManifestRow, body)
        except InvalidFields as error:
            rejected.append(RejectedRow(line, error.invalid))
            continue
        first = first_lines.setdefault(row.identity, line)
        if first == line:
            wanted.append(Wanted(line, row))
        else:
            reason = f"The sale, the type and the file name stand in line {first} already"
            rejected.append(RejectedRow(line, (InvalidField("fileName", reason),)))
    return Manifest(wanted, rejected)


FEW: Final = 50
"""Up to so many keys of one day are asked for one by one; for more, the day is listed."""

_READERS: Final = 16


@dataclass(frozen=True, slots=True)
class KnownRecord:
    """An earlier evidence record about the same file, not withdrawn."""

    evidence_id: UUID
    object_key: str
    expires_at: datetime | None
    uploaded: bool
    """True if a file lies under its key that is not known to be unusable."""


def stored_records(database: Database, sale_ids: Sequence[str]) -> Sequence[Row[Any]]:
    """Return the evidence records of these sales, in whatever state: with the names of their files."""
    withdrawn = sa.exists().where(withdrawals.c.evidence_id == evidences.c.id)
    query = sa.select(evidences, withdrawn.label("withdrawn")).where(evidences.c.sale_id.in_(sale_ids))
    with database.transaction() as connection:
        return connection.execute(query).all()


def stage(connection: Connection, wanted: Sequence[Wanted]) -> None:
    """Store the rows, numbered by their position, in a temporary table for the queries below."""
    connection.execute(sa.text(_CREATE_WANTED))
    with raw(connection).cursor().copy(_COPY_WANTED) as copy:
        for position, item in enumerate(wanted):
            row = item.row
            copy.write_row((position, row.sale_id, row.evidence_type.value, row.file_name))
    connection.execute(sa.text("ANALYZE wanted"))


def without_sale(connection: Connection) -> list[int]:
    """Return the positions of the rows whose sale does not exist."""
    return list(connection.scalars(sa.text(_WITHOUT_SALE.format(sales=service_of(connection).text("sales")))))


def known_records(connection: Connection, bucket: Bucket, now: datetime) -> dict[int, KnownRecord]:
    """Return the record of each position whose file needs no new one.

    That is one whose file is there, else the one whose credentials are valid for longest.
    """
    records = connection.execute(sa.text(_RECORDS.format(records=service_of(connection).text("records")))).all()
    arrived = _in_bucket(bucket, [record.object_key for record in records if record.size is None])
    known: dict[int, KnownRecord] = {}
    for record in records:
        uploaded = record.object_key in arrived or _is_seen_usable(record)
        better = known.get(record.position)
        if (uploaded or _is_valid(record, now)) and (better is None or (uploaded and not better.uploaded)):
            known[record.position] = KnownRecord(record.id, record.object_key, record.expires_at, uploaded)
    return known


def sales_with_kyc(connection: Connection, bucket: Bucket, sale_ids: Sequence[str], now: datetime) -> set[str]:
    """Find the sales that have a KYC file not known to be unusable, or credentials for one."""
    query = _KYC_RECORDS.format(records=service_of(connection).text("records"))
    records = connection.execute(sa.text(query), {"sales": list(sale_ids)}).all()
    ended = [record for record in records if not _is_valid(record, now)]
    arrived = _in_bucket(bucket, [record.object_key for record in ended if record.size is None])
    return {
        record.sale_id
        for record in records
        if _is_valid(record, now) or record.object_key in arrived or _is_seen_usable(record)
    }


def _is_valid(record: Row[Any], now: datetime) -> bool:
    """Tell whether its credentials are known to be valid."""
    return ran_out(record.expires_at, now) is False


def _is_seen_usable(record: Row[Any]) -> bool:
    kind = None if record.kind is None else FileKind(record.kind)
    wanted = EvidenceType(record.evidence_type)
    state = evidence_state(wanted, size=record.size, kind=kind, damaged=record.damaged, expired=False)
    return state is EvidenceState.COUNTED


def _in_bucket(bucket: Bucket, keys: Iterable[str]) -> set[str]:
    """Find the keys that hold an object of at least one byte that no reading of the bucket has seen yet."""
    days = defaultdict(set)
    for key in keys:
        days[key.rpartition("/")[0].rpartition("/")[0]].add(key)
    found: set[str] = set()
    alone = [key for wanted in days.values() if len(wanted) <= FEW for key in wanted]
    with ThreadPoolExecutor(_READERS) as readers:
        found.update(item.key for item in readers.map(bucket.head, alone) if item is not None and item.size)
    for day, wanted in days.items():
        if len(wanted) > FEW:
            found.update(
                item.key for page in bucket.seen(day) for item in page if item.size and item.key in wanted
            )
    return found


_CREATE_WANTED: Final = """
    CREATE TEMPORARY TABLE wanted (
        position bigint PRIMARY KEY, sale_id text NOT NULL, evidence_type text NOT NULL, file_name text NOT NULL
    ) ON COMMIT DROP
"""

_COPY_WANTED: Final = "COPY wanted (position, sale_id, evidence_type, file_name) FROM STDIN"

_WITHOUT_SALE: Final = """
    SELECT position
    FROM wanted
    WHERE NOT EXISTS (SELECT FROM {sales} AS sale WHERE sale.id = wanted.sale_id)
    ORDER BY position
"""

_RECORDS_OF: Final = """
    SELECT {place}, record.id, record.evidence_type, record.object_key, record.expires_at,
           seen.size, looked.kind, coalesce(looked.damaged, false) AS damaged
    FROM {source}
    LEFT JOIN audit.object_observations AS seen
           ON seen.key = record.object_key AND seen.gone_at IS NULL
    LEFT JOIN LATERAL (
        SELECT (array_agg(kind ORDER BY id DESC))[1] AS kind,
               (array_agg(problem ORDER BY id DESC))[1] IS NOT NULL AS damaged
        FROM audit.content_checks
        WHERE observation_id = seen.id
    ) AS looked ON true
    WHERE {condition}
      AND NOT EXISTS (SELECT FROM audit.withdrawals WHERE evidence_id = record.id)
    ORDER BY {place}, record.expires_at DESC NULLS LAST, record.id
"""

_RECORDS: Final = _RECORDS_OF.format(
    place="wanted.position",
    source="wanted JOIN {records} AS record USING (sale_id, evidence_type, file_name)",
    condition="TRUE",
)

_KYC_RECORDS: Final = _RECORDS_OF.format(
    place="record.sale_id",
    source="{records} AS record",
    condition=f"record.sale_id = ANY(:sales) AND record.evidence_type = '{REPLACES_ALL}'",
)
