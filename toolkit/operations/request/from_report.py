"""Request upload credentials for the evidence that a report lists as missing."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from toolkit.domain.evidence import KIND_OF, EvidenceType, FileKind
from toolkit.domain.findings import Problem, Status
from toolkit.domain.report_cells import REPORT, items
from toolkit.domain.worded import Worded
from toolkit.errors import UnreadableFile
from toolkit.operations.request.bulk import ManifestResult, Order, issue, keep_apart
from toolkit.operations.request.existing_records import sales_with_kyc
from toolkit.operations.request.manifest import judged
from toolkit.operations.spreadsheets import read_table
from toolkit.operations.spreadsheets.formulas import as_written
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database

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
            f"{path}: the columns {', '.join(lacking)} are missing; is this the {REPORT_NAME} of a report?"
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
