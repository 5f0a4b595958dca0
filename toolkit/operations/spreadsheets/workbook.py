"""Workbooks (XLSX and its kin): every cell as text, with what the workbook says of its type."""

from __future__ import annotations

import datetime
import hashlib
import io
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import count, islice
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetVisibleEnum,
    load_workbook,
)

from toolkit.domain.fields import TRIMMED
from toolkit.errors import UnreadableFile
from toolkit.operations.spreadsheets.chunks import HEADING_ROWS, CellKind, Chunk, Layout, Reading, any_cell
from toolkit.operations.spreadsheets.sources import TableSource
from toolkit.operations.spreadsheets.workbook_bounds import is_too_wide_apart
from toolkit.operations.spreadsheets.workbook_errors import CellError, Errors, errors_of

ROWS: Final = 20_000
"""Rows of a chunk."""
_FEW: Final = 500
EXACT: Final = 10**15
"""Workbooks keep 15 digits of a number; from here on the last ones are lost."""


class Workbook:
    """A workbook whose layout is understood: one sheet of it holds the table."""

    def __init__(self, source: TableSource, reading: Reading) -> None:
        self.source = source
        self._stamp = source.stamp()
        contents = _contents(source)
        self._book: CalamineWorkbook | None = _open(source, contents)
        self._from_1904 = _counts_from_1904(contents)
        self._sheet: CalamineSheet | None
        self._sheet, name, row, headings, self._errors = _find_sheet(source, self._book, contents, reading)
        self.layout = Layout(
            kind="workbook",
            headings=headings,
            heading_line=row + 1,
            sha256=hashlib.sha256(contents).hexdigest(),
            size=self._sheet.total_height - row - 1,
            sheet=name,
        )

    def chunks(self) -> Iterator[Chunk]:
        """The rows below the headings."""
        assert self.layout.sheet is not None
        sheet = self._sheet or _sheet(self.source, _open(self.source, _contents(self.source)), self.layout.sheet)
        rows = _with_errors(_rows(sheet), self._errors, left=sheet.start[1] if sheet.start else 0)
        line = self.layout.heading_line + 1
        for _ in islice(rows, self.layout.heading_line):
            pass
        while stretch := _next_stretch(rows, line, len(self.layout.headings)):
            chunk = _chunk(stretch)
            yield _with_days_from_1904(chunk) if self._from_1904 else chunk
            line += stretch.size

    def check_unchanged(self) -> None:
        """Make sure that the file is still the one that was understood.

        Raises:
            UnreadableFile: somebody wrote it meanwhile.
        """
        if self.source.stamp() != self._stamp:
            raise UnreadableFile(f"{self.source.name}: was changed while it was read; try again.")

    def release(self) -> None:
        """Give up the cells that are held between two readings."""
        self._book = self._sheet = None


def _counts_from_1904(contents: bytes) -> bool:
    """Tell whether day numbers of this workbook count from 1904; only XLSX says so."""
    try:
        with zipfile.ZipFile(io.BytesIO(contents)) as parts:
            return re.search(rb"""\bdate1904=["'](1|true)["']""", parts.read("xl/workbook.xml")) is not None
    except (zipfile.BadZipFile, KeyError):
        return False


def _with_days_from_1904(chunk: Chunk) -> Chunk:
    kinds = {
        column: np.where(cells == CellKind.NUMBER, np.uint8(CellKind.NUMBER_1904), cells)
        for column, cells in chunk.kinds.items()
    }
    return replace(chunk, kinds=kinds)


def _contents(source: TableSource) -> bytes:
    with source.open() as stream:
        return stream.read()


def _open(source: TableSource, contents: bytes) -> CalamineWorkbook:
    if is_too_wide_apart(contents):
        raise UnreadableFile(
            f"{source.name}: its cells lie too far apart to be read; delete what stands far outside of the table."
        )
    try:
        return load_workbook(io.BytesIO(contents))
    except PasswordError:
        raise UnreadableFile(f"{source.name}: protected by a password; save it without one.") from None
    except (CalamineError, OSError, ValueError):
        raise UnreadableFile(
            f"{source.name}: is no workbook that can be read, or is damaged; save it again as XLSX."
        ) from None


def _sheet(source: TableSource, book: CalamineWorkbook, name: str) -> CalamineSheet:
    try:
        return book.get_sheet_by_name(name)
    except CalamineError:
        raise UnreadableFile(f"{source.name}: the sheet “{name}” is damaged; save it again as XLSX.") from None


def _find_sheet(
    source: TableSource, book: CalamineWorkbook, contents: bytes, reading: Reading
) -> tuple[CalamineSheet, str, int, tuple[str, ...], Errors]:
    """The one sheet that has the headings, the row they are in, the headings, and the errors in the sheet."""
    names = [sheet.name for sheet in book.sheets_metadata if sheet.visible == SheetVisibleEnum.Visible]
    if reading.sheet is not None:
        if reading.sheet not in book.sheet_names:
            listed = ", ".join(f"“{name}”" for name in names)
            raise UnreadableFile(f"{source.name}: has no sheet “{reading.sheet}”; there are {listed}.")
        names = [reading.sheet]
    with ThreadPoolExecutor(1) as looking:  # while the reader, which needs no lock of Python's, takes its time
        errors = {name: looking.submit(errors_of, contents, name) for name in names}
        sheets = [(name, _sheet(source, book, name)) for name in names]
    for recognises in (reading.recognises, any_cell):
        found = []
        for name, sheet in sheets:
            for number, row in enumerate(islice(_rows(sheet), HEADING_ROWS)):
                cells = [_text(cell) for cell in row]
                if recognises(cells):
                    found.append((sheet, name, number, tuple(cell.strip() for cell in cells)))
                    break
        if len(found) > 1 and recognises is not any_cell:
            listed = ", ".join(f"“{name}”" for _, name, _, _ in found)
            raise UnreadableFile(
                f"{source.name}: the sheets {listed} all have the headings; choose one by --sheet."
            )
        if found:
            return *found[0], errors[found[0][1]].result()
    raise UnreadableFile(f"{source.name}: the workbook is empty.")


def _rows(sheet: CalamineSheet) -> Iterator[list[Any]]:
    """All rows from the first line on; empty columns to the left are left out."""
    return iter(()) if sheet.start is None else sheet.iter_rows()


def _with_errors(rows: Iterator[list[Any]], errors: Errors, *, left: int) -> Iterator[list[Any]]:
    """The rows with the errors in their places; ``left`` columns are left out."""
    return map(partial(_with_its_errors, errors, left), count(1), rows) if errors else rows


def _with_its_errors(errors: Errors, left: int, line: int, row: list[Any]) -> list[Any]:
    for column, error in errors.get(line, {}).items():
        if left <= column < left + len(row):
            row[column - left] = error
    return row


class _Stretch(NamedTuple):
    """Cells of the next rows column by column, the lines of those that are not blank, and how many were read."""

    columns: list[list[Any]]
    lines: list[int]
    size: int


def _next_stretch(rows: Iterator[list[Any]], first_line: int, width: int) -> _Stretch | None:
    """The next rows as columns, a few at a time: rows that live longer keep the garbage collector busy."""
    columns: list[list[Any]] = [[] for _ in range(width)]
    lines: list[int] = []
    size = 0
    while size < ROWS and (few := list(islice(rows, _FEW))):
        kept = [(number, row) for number, row in enumerate(few, first_line + size) if not _is_blank(row)]
        for column, cells in zip(columns, zip(*(row for _, row in kept), strict=True), strict=False):
            column.extend(cells)
        lines.extend(number for number, _ in kept)
        size += len(few)
    return _Stretch(columns, lines, size) if size else None


def _is_blank(row: list[Any]) -> bool:
    first = next(filter(None, row), "")
    if type(first) is str and first.strip(TRIMMED):
        return False  # nearly always
    # Formulas that were filled in below the table find nothing there.
    return all(isinstance(cell, str) and (type(cell) is CellError or not cell.strip(TRIMMED)) for cell in row)


def _chunk(stretch: _Stretch) -> Chunk:
    columns, kinds = [], {}
    for position, cells in enumerate(stretch.columns):
        column, kinds_of_cells = _column(cells)
        columns.append(column)
        if kinds_of_cells is not None:
            kinds[position] = kinds_of_cells
    return Chunk(columns, np.asarray(stretch.lines, dtype=np.int64), stretch.size, kinds=kinds)


def _column(cells: Sequence[Any]) -> tuple[pa.StringArray, npt.NDArray[np.uint8] | None]:
    types = set(map(type, cells))
    if types <= {str}:
        return _text_column(cells), None
    kinds = np.fromiter(map(_KINDS.__getitem__, map(type, cells)), np.uint8, len(cells))
    is_number = kinds == CellKind.NUMBER
    if types <= {str, float}:
        numbers = np.array([cell for cell in cells if type(cell) is float])
        if (np.abs(numbers) < EXACT).all() and (numbers == np.floor(numbers)).all():
            whole = pa.array(numbers.astype(np.int64)).cast(pa.string())
            if is_number.all():
                return whole, kinds
            texts = _text_column(["" if type(cell) is float else cell for cell in cells])
            return pc.replace_with_mask(texts, pa.array(is_number), whole), kinds
    return _text_column([_text(cell) for cell in cells]), kinds


_KINDS: Final[Mapping[type, int]] = defaultdict(
    lambda: int(CellKind.OTHER),
    {
        str: int(CellKind.TEXT),
        float: int(CellKind.NUMBER),
        int: int(CellKind.NUMBER),
        datetime.date: int(CellKind.DATE),
        datetime.datetime: int(CellKind.DATE),
        CellError: int(CellKind.ERROR),
    },
)

_SEPARATOR: Final = "\x1f"


def _text_column(cells: Sequence[str]) -> pa.StringArray:
    """Texts as a column, joined and cut again, which is twice as fast as one by one."""
    if not cells:
        return pa.array([], pa.string())
    joined = np.frombuffer(_SEPARATOR.join(cells).encode(), np.uint8)
    separators = np.flatnonzero(joined == ord(_SEPARATOR))
    if len(separators) != len(cells) - 1:
        return pa.array(list(cells), pa.string())
    ends = np.concatenate(([0], separators - np.arange(len(separators)), [len(joined) - len(separators)]))
    return pa.StringArray.from_buffers(
        len(cells), pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(joined[joined != ord(_SEPARATOR)])
    )


def _text(cell: Any) -> str:
    """A cell as people see it: whole numbers without a point, dates as YYYY-MM-DD."""
    if type(cell) is datetime.date:
        return cell.isoformat()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < EXACT else repr(cell)
    if isinstance(cell, datetime.datetime):
        return cell.date().isoformat() if cell.time() == datetime.time() else cell.isoformat(" ")
    if isinstance(cell, bool):
        return str(cell).upper()
    return str(cell)
