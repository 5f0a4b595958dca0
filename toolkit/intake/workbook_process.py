"""Read a workbook in a process of its own, in bounds of memory and time, since nobody trusts the file.

It runs as a script and imports nothing else of the toolkit, so that it starts at once. Its arguments are the
number of an open file and the bounds. It answers two questions, one JSON line each: the first rows of each sheet,
then the rows of one sheet, column by column. It writes no file and gets nothing of the parent's environment.
"""

import datetime
import io
import json
import os
import re
import resource
import sys
import threading
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from enum import IntEnum, StrEnum
from html import unescape
from itertools import count, islice
from pathlib import PurePosixPath
from typing import Any, Final

import python_calamine as calamine

ROWS: Final = 20_000
"""Rows that are handed over together."""
LARGEST: Final = 256 * 1024 * 1024
"""Bytes that are handed over together at most."""
EXACT: Final = 10**15
"""Workbooks keep 15 digits of a number; from here on the last ones are lost."""
SEPARATOR: Final = "\x1f"
"""Separates the cells of a column; a column with a cell that holds it is sent as JSON."""
_FEW: Final = 500


class CellKind(IntEnum):
    """The type of a cell in a workbook; in a text file every cell is ``TEXT``."""

    TEXT = 0
    NUMBER = 1
    NUMBER_1904 = 2
    """A number in a workbook that counts its days from 1904 on, as Excel for the Mac once did."""
    DATE = 3
    OTHER = 4
    ERROR = 5
    """An error that a formula has instead of a value, such as #N/A."""


class Fault(StrEnum):
    """The reason why a workbook is not read."""

    PROTECTED = "PROTECTED"
    DAMAGED = "DAMAGED"
    SHEET_DAMAGED = "SHEET_DAMAGED"
    NO_SHEET = "NO_SHEET"
    MEMORY = "MEMORY"
    SECONDS = "SECONDS"


class CellError(str):
    """The error that stands in a cell instead of a value."""

    __slots__ = ()


class _Refused(Exception):
    def __init__(self, fault: Fault, about: str = "") -> None:
        super().__init__(fault, about)
        self.fault, self.about = fault, about


Errors = Mapping[int, Mapping[int, CellError]]
"""The errors by line and column, both counted as in the sheet: from line 1, and from column 0."""


def main(descriptor: int, memory: int, seconds: int) -> None:
    """Answer the questions about the workbook in the open file."""
    _confine(memory, seconds)
    try:
        with os.fdopen(descriptor, "rb") as file:
            _answer_all(file.read())
    except _Refused as refused:
        _say({"fault": refused.fault, "about": refused.about})
    except MemoryError:
        _say({"fault": Fault.MEMORY, "about": ""})
    except BaseException:  # a panic of the reader is no Exception
        _say({"fault": Fault.DAMAGED, "about": ""})


def _confine(memory: int, seconds: int) -> None:
    limits = {
        resource.RLIMIT_DATA: (memory, memory),
        resource.RLIMIT_CPU: (seconds, seconds + 1),  # at the first the process ends by SIGXCPU
        resource.RLIMIT_FSIZE: (0, 0),
        resource.RLIMIT_CORE: (0, 0),
    }
    for limit, bounds in limits.items():
        with suppress(OSError, ValueError):  # not every system knows every limit
            resource.setrlimit(limit, bounds)


def _answer_all(contents: bytes) -> None:
    asked = json.loads(sys.stdin.readline())
    try:
        book = calamine.load_workbook(io.BytesIO(contents))
    except calamine.PasswordError:
        raise _Refused(Fault.PROTECTED) from None
    except (calamine.CalamineError, OSError, ValueError):
        raise _Refused(Fault.DAMAGED) from None
    names = [sheet.name for sheet in book.sheets_metadata if sheet.visible == calamine.SheetVisibleEnum.Visible]
    if asked["sheet"] is not None:
        if asked["sheet"] not in book.sheet_names:
            raise _Refused(Fault.NO_SHEET, ", ".join(f"“{name}”" for name in names))
        names = [asked["sheet"]]
    with ThreadPoolExecutor(1) as looking:  # while the reader, which needs no lock of Python's, takes its time
        errors = {name: looking.submit(_errors_of, contents, name) for name in names}
        sheets = {name: _sheet(book, name) for name in names}
    found = []
    for name, sheet in sheets.items():
        head = [[_text(cell) for cell in row] for row in islice(_rows(sheet), asked["rows"])]
        found.append({"name": name, "height": sheet.total_height, "head": head})
    _say({"sheets": found})
    chosen = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sheet = sheets.pop(chosen["sheet"])
    sheets.clear()
    number = CellKind.NUMBER_1904 if _counts_from_1904(contents) else CellKind.NUMBER
    _hand_over(sheet, errors[chosen["sheet"]].result(), chosen["skip"], chosen["width"], chosen["trimmed"], number)


def _sheet(book: calamine.CalamineWorkbook, name: str) -> calamine.CalamineSheet:
    try:
        return book.get_sheet_by_name(name)
    except calamine.CalamineError:
        raise _Refused(Fault.SHEET_DAMAGED, name) from None


def _end_with_parent() -> None:
    """End at once where the parent process is gone."""
    sys.stdin.read()
    os._exit(1)


def _say(answer: Mapping[str, Any], *payload: bytes) -> None:
    head = json.dumps(answer).encode()
    if len(head) + sum(map(len, payload)) > LARGEST:
        raise MemoryError
    for part in (head, b"\n", *payload):
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


def _rows(sheet: calamine.CalamineSheet) -> Iterator[list[Any]]:
    """Return all rows from the first line on; empty columns to the left are left out."""
    return iter(()) if sheet.start is None else sheet.iter_rows()


def _hand_over(
    sheet: calamine.CalamineSheet, errors: Errors, skip: int, width: int, trimmed: str, number: CellKind
) -> None:
    """Write the rows after the first ``skip``, some at a time, and a line at their end."""
    kinds = defaultdict(lambda: int(CellKind.OTHER), _KINDS | dict.fromkeys((float, int), int(number)))
    left = sheet.start[1] if sheet.start else 0
    rows = _with_errors(_rows(sheet), errors, left) if errors else _rows(sheet)
    line = skip + 1
    for _ in islice(rows, skip):
        pass
    while few := list(islice(rows, _FEW)):
        columns: list[list[Any]] = [[] for _ in range(width)]
        lines: list[int] = []
        size = 0
        # A few at a time: rows that live longer keep the garbage collector busy.
        while few:
            kept = [(place, row) for place, row in enumerate(few, line + size) if not _is_blank(row, trimmed)]
            for column, cells in zip(columns, zip(*(row for _, row in kept), strict=True), strict=False):
                column.extend(cells)
            lines.extend(place for place, _ in kept)
            size += len(few)
            few = list(islice(rows, _FEW)) if size < ROWS else []
        line += size
        _say_stretch(columns, lines, size, kinds)
    _say({"end": True})


def _say_stretch(columns: list[list[Any]], lines: list[int], size: int, kinds: Mapping[type, int]) -> None:
    payload, described = [], []
    for cells in columns:
        mixed = set(map(type, cells)) - {str}
        of_cells = bytes(map(kinds.__getitem__, map(type, cells))) if mixed else b""
        texts: Sequence[str] = list(map(_text, cells)) if mixed else cells
        joined = SEPARATOR.join(texts)
        plain = joined.count(SEPARATOR) == max(0, len(texts) - 1)
        data = (joined if plain else json.dumps(texts)).encode()
        payload += [data, of_cells]
        described.append({"bytes": len(data), "plain": plain, "kinds": len(of_cells)})
    _say({"size": size, "lines": lines, "columns": described}, *payload)


_KINDS: Final[dict[type, int]] = {
    str: int(CellKind.TEXT),
    datetime.date: int(CellKind.DATE),
    datetime.datetime: int(CellKind.DATE),
    CellError: int(CellKind.ERROR),
}


def _is_blank(row: list[Any], trimmed: str) -> bool:
    first = next(filter(None, row), "")
    if type(first) is str and first.strip(trimmed):
        return False  # nearly always
    # Formulas that were filled in below the table find nothing there.
    return all(isinstance(cell, str) and (type(cell) is CellError or not cell.strip(trimmed)) for cell in row)


def _text(cell: Any) -> str:
    """Return a cell as people see it: whole numbers without a point, dates as YYYY-MM-DD."""
    if type(cell) is str:
        return cell
    if type(cell) is datetime.date:
        return cell.isoformat()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < EXACT else repr(cell)
    if isinstance(cell, datetime.datetime):
        return cell.date().isoformat() if cell.time() == datetime.time() else cell.isoformat(" ")
    if isinstance(cell, bool):
        return str(cell).upper()
    return str(cell)


def _with_errors(rows: Iterator[list[Any]], errors: Errors, left: int) -> Iterator[list[Any]]:
    """Yield the rows with the errors, which the reader hands out as empty cells, in their places."""
    for line, row in zip(count(1), rows, strict=False):
        for column, error in errors.get(line, {}).items():
            if left <= column < left + len(row):
                row[column - left] = error
        yield row


def _counts_from_1904(contents: bytes) -> bool:
    """Tell whether day numbers of this workbook count from 1904; only XLSX says so."""
    try:
        with zipfile.ZipFile(io.BytesIO(contents)) as parts:
            return re.search(rb"""\bdate1904=["'](1|true)["']""", parts.read("xl/workbook.xml")) is not None
    except (zipfile.BadZipFile, KeyError):
        return False


_BLOCK: Final = 4 * 1024 * 1024
_ATTRIBUTE: Final = re.compile(rb"([\w:]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_CELL: Final = re.compile(rb"<(?:\w+:)?c\s([^>]*\bt\s*=\s*[\"']e[\"'][^>]*)>.*?<(?:\w+:)?v>([^<]*)<", re.DOTALL)
_LINE: Final = re.compile(rb"<row\s[^>]*?\br\s*=\s*[\"']([0-9]{1,7})[\"']")
_ANY_CELL: Final = re.compile(rb"<c[\s>]")
_PLACE: Final = re.compile(rb"\br\s*=\s*[\"']([A-Z]{1,3})([0-9]{1,7})[\"']")


def _errors_of(contents: bytes, sheet: str) -> Errors:
    """Return the errors in one sheet of an XLSX file, which the reader does not tell; none in any other file."""
    found: dict[int, dict[int, CellError]] = {}
    rest = b""
    try:
        with zipfile.ZipFile(io.BytesIO(contents)) as archive, archive.open(_part(archive, sheet)) as stream:
            while block := stream.read(_BLOCK):
                text = rest + block
                cut = max(text.rfind(b"<row"), text.rfind(b":row"), 0) or text.rfind(b">") + 1
                _add_errors(found, text[:cut])
                rest = text[cut:]
            _add_errors(found, rest)
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, RuntimeError, OSError, EOFError):
        return {}
    return found


def _part(archive: zipfile.ZipFile, sheet: str) -> str:
    """Return the part of the archive that the sheet is in."""
    sheets = {tag["name"]: tag for tag in _tags(archive.read("xl/workbook.xml"), b"sheet")}
    targets = {
        tag["Id"]: tag["Target"] for tag in _tags(archive.read("xl/_rels/workbook.xml.rels"), b"Relationship")
    }
    (key,) = [value for name, value in sheets[sheet].items() if name.endswith(":id")]
    return str(PurePosixPath("/xl", targets[key])).removeprefix("/")


def _tags(xml: bytes, wanted: bytes) -> Iterator[dict[str, str]]:
    for attributes in re.findall(rb"<(?:\w+:)?" + wanted + rb"\s([^>]*)>", xml):
        yield {
            name.decode(): unescape((double or single).decode())
            for name, double, single in _ATTRIBUTE.findall(attributes)
        }


def _add_errors(found: dict[int, dict[int, CellError]], xml: bytes) -> None:
    if b'"e"' not in xml and b"'e'" not in xml:
        return
    for cell in _CELL.finditer(xml):
        row = xml.rfind(b"<row", 0, cell.start())
        if (place := _PLACE.search(cell[1])) is not None:
            line, column = int(place[2]), 0
            for letter in place[1]:
                column = column * 26 + letter - ord("A") + 1
        elif (number := _LINE.match(xml, row)) is not None:  # the cell follows the one before it
            line, column = int(number[1]), len(_ANY_CELL.findall(xml, row, cell.start())) + 1
        else:
            continue
        found.setdefault(line, {})[column - 1] = CellError(unescape(cell[2].decode()))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
