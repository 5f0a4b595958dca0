"""A table: its file, its recognised layout, its rows in chunks, and the texts of its columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.contract.fields import TRIMMED
from toolkit.errors import UnreadableFile
from toolkit.message import Message

Lines = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive rows of a table, blank ones left out, every cell as text.

    ``numbers`` marks the cells of a workbook that are numbers, in each column (by position) that has some.
    ``faults`` has the reason for each row (by position) that is none: its cells cannot be told apart.
    """

    columns: Sequence[pa.StringArray]
    lines: Lines
    numbers: Mapping[int, Mask] = field(default_factory=dict)
    faults: Mapping[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lines)

    def take(self, rows: npt.NDArray[np.int64]) -> Chunk:
        """Return only these rows, without keeping the memory of the others."""
        return Chunk(
            [column.take(pa.array(rows)) for column in self.columns],
            self.lines[rows],
            {column: numbers[rows] for column, numbers in self.numbers.items()},
        )


@dataclass(frozen=True, slots=True)
class Record:
    """One row as it is read: its line, that of the next, its cells, why they cannot be trusted if they cannot.

    ``numbers`` are the places of the cells that are numbers in a workbook.
    """

    line: int
    next_line: int
    cells: Sequence[str]
    fault: str | None = None
    numbers: Sequence[int] = ()


def chunk_of(records: Iterable[Record], width: int) -> Chunk:
    """Return the records that are not blank as columns."""
    kept = [each for each in records if any(cell.strip(TRIMMED) for cell in each.cells)]
    rows = [[*each.cells, *[""] * (width - len(each.cells))] for each in kept]
    columns = [pa.array([row[place] for row in rows], pa.string()) for place in range(width)]
    numbers = {place for each in kept for place in each.numbers if place < width}
    return Chunk(
        columns,
        np.array([each.line for each in kept], np.int64),
        numbers={place: np.array([place in each.numbers for each in kept]) for place in numbers},
        faults={row: each.fault for row, each in enumerate(kept) if each.fault is not None},
    )


Recognises = Callable[[Sequence[str]], bool]  # are these cells the headings that the caller looks for?


def any_cell(cells: Sequence[str]) -> bool:
    """Recognise the first row that is not blank as the headings."""
    return any(cell.strip() for cell in cells)


OWN: Final = ("line", "errors")  # columns that a load adds to rejected rows; ignored when they are loaded again
REJECTED_SHEET: Final = "rejected"  # the name of the sheet of rejected rows
HEADING_ROWS: Final = 30  # rows from the top that are looked at for the headings; titles may stand above them


@dataclass(frozen=True, slots=True)
class Layout:
    """The recognised layout of a file, known before its rows are read."""

    headings: tuple[str, ...]
    heading_line: int
    sha256: str
    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None

    def __str__(self) -> str:
        if self.sheet is None:
            delimiter = {"\t": "tab"}.get(self.delimiter or "", f"“{self.delimiter}”")
            return Message(
                "text, {}, separated by {}, headings on line {}", self.encoding, delimiter, self.heading_line
            )
        return Message("workbook, sheet “{}”, headings on line {}", self.sheet, self.heading_line)


_ZIP: Final = b"PK\x03\x04"
_OLE: Final = b"\xd0\xcf\x11\xe0"
_GZIP: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class TableSource:
    """A file that holds one table."""

    path: Path
    name: str  # for people: the file name, behind folders where another file has the same
    workbook: bool

    @property
    def flat_name(self) -> str:
        """A file name of its own for what is written about it."""
        return self.name.replace("/", ".").replace("\\", ".")

    def stamp(self) -> tuple[int, int, int]:
        """Return the values that change when somebody writes the file: its size, its time, and its identity."""
        status = self.path.stat()
        return status.st_size, status.st_mtime_ns, status.st_ino


def source_of(path: Path) -> TableSource:
    """Return the table in a file.

    Raises:
        UnreadableFile: nothing is there, or it is no file, or one that has to be unpacked.
    """
    if not path.exists():
        raise UnreadableFile("{}: no such file.", path)
    if path.is_dir():
        raise UnreadableFile("{}: is a folder; name the files in it.", path)
    if not path.is_file():  # a pipe could be read only once
        raise UnreadableFile("{}: is not a file; save the contents into one first.", path)
    try:
        with path.open("rb") as stream:
            head = stream.read(4)
    except OSError as error:
        raise UnreadableFile("{}: cannot be read: {}.", path, error.strerror) from None
    if head.startswith(_GZIP):
        raise UnreadableFile("{}: is compressed; unpack it first.", path)
    return TableSource(path, _utf8(path.name), workbook=head in (_ZIP, _OLE))


def _utf8(name: str) -> str:
    """Return the name of a file as every database and output can hold it, whatever its bytes are."""
    return name.encode("utf-8", "backslashreplace").decode()


def distinct(sources: Iterable[TableSource]) -> list[TableSource]:
    """Return each source once; of files with the same name, as many folders as it takes are part of it."""
    found = list({source.path.resolve(): source for source in sources}.values())
    places = [(source.path.parent.resolve() / source.path.name).parts for source in found]
    for depth in range(2, max(map(len, places), default=0)):
        named = Counter(source.flat_name for source in found)
        found = [
            replace(source, name=_utf8("/".join(place[-depth:]))) if named[source.flat_name] > 1 else source
            for source, place in zip(found, places, strict=True)
        ]
    return found


def values(column: pa.StringArray) -> Bytes:
    """Return the bytes of the texts of a column, one after the other, without copying them."""
    ends, data = column.buffers()[1:]
    if data is None or not len(column):
        return np.empty(0, np.uint8)
    last = np.frombuffer(ends, np.int32, 1, (column.offset + len(column)) * 4)[0]
    return np.frombuffer(data, np.uint8)[:last]


def mask_of(found: pa.BooleanArray) -> Mask:
    """Return the answers of a condition; that about an absent value is no."""
    return np.asarray(pc.fill_null(found, False).to_numpy(zero_copy_only=False))


ERROR_OF_FORMULA: Final = (
    r"^(#(N/[AD]|N/DISP|DIV/0!|REF!|VALUE!|VALOR!|NAME\?|NOME\?|NULL!|NULO!|NUM!|NÚM!|SPILL!|DESPEJAR!|CALC!|CÁLC!"
    r"|##+)|Err:[0-9]{3})$"
)
"""Errors that Excel and LibreOffice show instead of a value, in both languages; ### where a column is narrow."""

IS_ERROR: Final = Message("Holds an error of a formula instead of a value")

ROUNDED: Final = r"^[0-9]([.,][0-9]+)?[Ee]\+[0-9]+$"
"""A long number as a spreadsheet shortens it."""

IS_ROUNDED: Final = Message("Is a number in scientific notation, whose last digits may be lost")

_FORMULA: Final = "'*[=+\\-@\t\r\n]"  # the start of a formula, however many apostrophes stand before it

_PATTERN: Final = re.compile(_FORMULA)


def harmless(text: str) -> str:
    """Return the text with one apostrophe more where a spreadsheet would take it for a formula."""
    return f"'{text}" if _PATTERN.match(text) else text


def escape(cells: pa.StringArray) -> pa.StringArray:
    """Return the cells of a column, each ``harmless``."""
    return pc.replace_substring_regex(cells, f"^({_FORMULA})", r"'\1")


def unescape(cells: pa.StringArray) -> pa.StringArray:
    """Return the cells of a column as they were before ``escape``."""
    return pc.replace_substring_regex(cells, f"^'({_FORMULA})", r"\1")
