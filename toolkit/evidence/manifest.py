"""Read the rows that upload credentials are wanted for: those of a manifest, or those that a report misses."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from toolkit.contract.evidence import KIND_OF, EvidenceRequest, EvidenceType, FileKind
from toolkit.contract.fields import parse
from toolkit.contract.findings import REPORT, items
from toolkit.contract.sales import SaleId
from toolkit.errors import InvalidField, InvalidFields
from toolkit.intake.cells import as_written
from toolkit.intake.tables import NamedColumns, RejectedRow, read_table
from toolkit.message import Message

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
            reason = Message("The sale, the type and the file name stand in line {} already", first)
            rejected.append(RejectedRow(line, (InvalidField("fileName", reason),)))
    return Manifest(wanted, rejected)


REPORT_NAME: Final = f"{REPORT}.csv"
"""The file of a report folder that lists what is missing."""

_REPORT: Final = NamedColumns(REPORT_NAME, ("saleId", "status", "missing"), ("problems",))
_SAFE_NAME: Final = 200
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class ReportedSale:
    """A sale of a report: its line, its status, the types that it misses, and its problems."""

    line: int
    sale_id: str
    status: str
    missing: tuple[str, ...]
    problems: tuple[str, ...]

    def bodies(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield a row of a manifest for each missing file, named after the sale and the type."""
        safe = _UNSAFE.sub("_", self.sale_id)[:_SAFE_NAME]
        for missing in self.missing:
            audio = missing in set(EvidenceType) and KIND_OF[EvidenceType(missing)] is FileKind.AUDIO
            named = {"saleId": self.sale_id, "fileName": f"{safe}-{missing}.{'mp3' if audio else 'pdf'}"}
            kinds = dict.fromkeys(("fileFormat", "type"), "audio/mpeg" if audio else "application/pdf")
            yield self.line, named | kinds | {"evidenceType": missing}


def read_report(path: Path) -> list[ReportedSale]:
    """Read the sales of a ``missing-evidence.csv``.

    Raises:
        UnreadableFile: it cannot be read, or lacks a column.
    """
    table = read_table(path)
    return [
        ReportedSale(
            line,
            as_written(body["saleId"] or ""),
            body["status"] or "",
            *(tuple(items(body.get(name) or "")) for name in ("missing", "problems")),
        )
        for line, body in _REPORT.bodies(table, _REPORT.headings(table, path))
    ]
