"""A chunk of a table's rows, column by column, and the recognised layout of its file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Lines = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive rows of a table, blank ones left out, every cell as text.

    ``kinds`` has an array of ``CellKind`` for each column (by position) that holds more than text.
    ``faults`` has the reason for each row (by position) that is none: its cells cannot be told apart.
    ``size`` is how much of the source was read for it: bytes of a text file, rows of a workbook.
    """

    columns: Sequence[pa.StringArray]
    lines: Lines
    size: int
    kinds: Mapping[int, npt.NDArray[np.uint8]] = field(default_factory=dict)
    faults: Mapping[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lines)

    def take(self, rows: npt.NDArray[np.int64]) -> Chunk:
        """Return only these rows, without keeping the memory of the others."""
        return Chunk(
            [column.take(pa.array(rows)) for column in self.columns],
            self.lines[rows],
            0,
            {column: kinds[rows] for column, kinds in self.kinds.items()},
        )


Recognises = Callable[[Sequence[str]], bool]
"""Tells whether the cells of a row are the headings that the caller looks for."""


def any_cell(cells: Sequence[str]) -> bool:
    """Recognise the first row that is not blank as the headings."""
    return any(cell.strip() for cell in cells)


@dataclass(frozen=True, slots=True)
class Reading:
    """The properties of a file that a person states; ``None``: to be found out."""

    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None
    recognises: Recognises = any_cell


HEADING_ROWS: Final = 30
"""The number of rows from the top that are looked at for the headings; titles may stand above them."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The recognised layout of a file, known before its rows are read."""

    kind: str
    headings: tuple[str, ...]
    heading_line: int
    sha256: str
    """Of the uncompressed bytes."""
    size: int
    """Bytes of a text file, rows of a workbook."""
    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None

    @property
    def unit(self) -> str:
        """The unit of ``size``."""
        return "B" if self.kind == "text" else "rows"

    def __str__(self) -> str:
        if self.kind == "text":
            delimiter = {"\t": "tab"}.get(self.delimiter or "", f"“{self.delimiter}”")
            how = f"text, {self.encoding}, separated by {delimiter}"
        else:
            how = f"workbook, sheet “{self.sheet}”"
        return f"{how}, headings on line {self.heading_line}"
