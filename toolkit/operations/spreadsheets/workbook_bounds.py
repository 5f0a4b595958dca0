"""Refuse a workbook whose cells lie so far apart that reading it would take all memory.

The reader makes room for the whole rectangle from the first to the last cell. One stray cell in the last
corner of a sheet asks for half a terabyte, and the process ends there without an exception.
"""

from __future__ import annotations

import io
import re
import zipfile
from typing import Final

CELLS: Final = 60_000_000
"""Cells of the rectangle that are still read: a full sheet of 57 columns."""

_SCANNED: Final = 64_000_000
"""Bytes of a sheet's XML that are looked through; a larger one is full of cells by itself."""

_CELL: Final = re.compile(rb"<c\s[^>]*?\br\s*=\s*[\"']([A-Za-z]{1,3})([0-9]{1,7})[\"']")


def is_too_wide_apart(contents: bytes) -> bool:
    """Tell whether some sheet of the workbook spans more than ``CELLS`` cells; ``False`` for what is no XLSX."""
    try:
        with zipfile.ZipFile(io.BytesIO(contents)) as archive:
            sheets = [item for item in archive.infolist() if item.filename.startswith("xl/worksheets/")]
            return any(_spans(archive.read(item)) for item in sheets if item.file_size <= _SCANNED)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError):
        return False  # the reader says what is wrong with it


def _spans(sheet: bytes) -> bool:
    if b"<c" not in sheet or not _could_span(sheet):
        return False
    cells = [(column_number(column), int(row)) for column, row in _CELL.findall(sheet)]
    return bool(cells) and max(column for column, _ in cells) * max(row for _, row in cells) > CELLS


def _could_span(sheet: bytes) -> bool:
    """Tell whether any cell names a column of two letters or more: up to column Z no sheet is too large."""
    if sheet.count(b' r="') < sheet.count(b"<c ") + sheet.count(b"<row "):  # written in some unusual way
        return re.search(rb"\br\s*=\s*[\"'][A-Za-z]{2,3}[0-9]", sheet) is not None
    return re.search(rb' r="[A-Za-z]{2,3}[0-9]', sheet) is not None


def column_number(column: bytes) -> int:
    """The number of a column by its letters: 1 for A, 27 for AA."""
    number = 0
    for letter in column.upper():
        number = number * 26 + letter - ord("A") + 1
    return number
