"""Read a manifest: one row for each file that credentials are wanted for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from toolkit.domain.evidence import EvidenceRequest, EvidenceType
from toolkit.domain.requests import parse
from toolkit.domain.sales import SaleId
from toolkit.errors import InvalidField, InvalidFields
from toolkit.operations.spreadsheets import read_table
from toolkit.operations.spreadsheets.named_columns import NamedColumns, RejectedRow

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
