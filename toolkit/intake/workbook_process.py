"""Read a workbook in a process of its own, in bounds of memory, time and size, since nobody trusts the file.

It runs as a script and imports nothing else of the toolkit, so that it starts at once. For each visible sheet it
prints a line of JSON with its name, and one for each row that is not blank: its line in the sheet, its
cells as texts, and the places of those that are numbers. Where it refuses the workbook, it ends with a ``Fault``
as its status. It writes no other file and gets nothing of the parent's environment.
"""

import datetime
import io
import json
import os
import re
import resource
import sys
import threading
import time
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import IntEnum
from html import unescape
from itertools import count
from pathlib import PurePosixPath
from typing import Any, Final, NoReturn
from xml.etree import ElementTree

import python_calamine as calamine

_ENCRYPTED: Final = "EncryptedPackage".encode("utf-16-le")  # in an XLSX with a password, which the reader refuses
EXACT: Final = 10**15  # workbooks keep 15 digits of a number; from here on the last ones are lost


class Fault(IntEnum):
    """The reason why a workbook is not read."""

    DAMAGED = 1
    PROTECTED = 11
    SHEET_DAMAGED = 12
    NO_SHEET = 13
    MEMORY = 14
    SECONDS = 15
    DAYS_FROM_1904 = 16
    ERRORS = 17


def main(descriptor: int, memory: int, seconds: int, size: int, *, wanted: str) -> None:
    """Print the sheets of the workbook in the open file, or only the one that is wanted."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    limits = {
        resource.RLIMIT_DATA: (memory, memory),
        resource.RLIMIT_CPU: (seconds, seconds + 1),  # at the first the process ends by SIGXCPU
        resource.RLIMIT_FSIZE: (size, size),
        resource.RLIMIT_CORE: (0, 0),
    }
    for limit, bounds in limits.items():
        with suppress(OSError, ValueError):  # not every system knows every limit
            resource.setrlimit(limit, bounds)
    try:
        with os.fdopen(descriptor, "rb") as file:
            _print_sheets(file.read(), wanted)
        sys.stdout.flush()
    except (MemoryError, OSError):  # what is printed is larger than allowed, too
        _refuse(Fault.MEMORY)
    except BaseException:  # a panic of the reader is no Exception
        _refuse(Fault.DAMAGED)


def _refuse(fault: Fault, about: str = "") -> NoReturn:
    sys.stderr.write(about)
    sys.stderr.flush()
    os._exit(fault)


def _end_with(parent: int) -> None:
    """End soon after the parent process is gone."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _print_sheets(contents: bytes, wanted: str) -> None:
    try:
        book = calamine.load_workbook(io.BytesIO(contents))
    except (calamine.CalamineError, OSError, ValueError) as error:
        protected = isinstance(error, calamine.PasswordError) or _ENCRYPTED in contents
        _refuse(Fault.PROTECTED if protected else Fault.DAMAGED)
    names = [sheet.name for sheet in book.sheets_metadata if sheet.visible == calamine.SheetVisibleEnum.Visible]
    if wanted and wanted not in book.sheet_names:
        _refuse(Fault.NO_SHEET, ", ".join(f"“{name}”" for name in names))
    parts = _Parts(contents)
    if parts.count_from_1904:
        _refuse(Fault.DAYS_FROM_1904)
    if parts.errors_untold:
        _refuse(Fault.ERRORS)
    for name in [wanted] if wanted else names:
        try:
            sheet = book.get_sheet_by_name(name)
        except calamine.CalamineError:
            _refuse(Fault.SHEET_DAMAGED, name)
        _print_sheet(sheet, parts.shown(name))


def _print_sheet(sheet: calamine.CalamineSheet, other: Mapping[int, Mapping[int, str | int]]) -> None:
    write = sys.stdout.write
    write(json.dumps({"name": sheet.name}) + "\n")
    if sheet.start is None:
        return
    left = sheet.start[1]  # empty columns to the left are left out
    for line, row in zip(count(1), sheet.iter_rows(), strict=False):
        if all(cell == "" for cell in row):
            continue  # formulas that were filled in below the table find nothing there
        for column, shown in other.get(line, {}).items():
            if left <= column < left + len(row):
                row[column - left] = shown if isinstance(shown, str) else _padded(row[column - left], shown)
        cells = [cell if type(cell) is str else _text(cell) for cell in row]
        numbers = [place for place, cell in enumerate(row) if type(cell) in (float, int)]
        write(json.dumps([line, cells, numbers]) + "\n")


def _padded(cell: Any, width: int) -> Any:
    """Return a number that is shown with zeros in front as that text, any other cell as it is."""
    whole = isinstance(cell, float) and cell.is_integer() and 0 <= cell < EXACT
    return text if whole and (text := f"{cell:0{width}.0f}").startswith("0") else cell


def _text(cell: Any) -> str:
    """Return a cell as people see it: whole numbers without a point, dates as YYYY-MM-DD."""
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < EXACT else f"{cell:.15g}"
    if isinstance(cell, datetime.datetime):
        return cell.date().isoformat() if cell.time() == datetime.time() else cell.isoformat(" ")
    return str(cell).upper() if isinstance(cell, bool) else str(cell)


_BLOCK: Final = 4 * 1024 * 1024
_LONGEST_CELL: Final = 64 * 1024
_ERROR: Final = re.compile(
    rb"<(?:\w+:)?c\s[^>]*?\br=\"([A-Z]{1,3})([0-9]{1,7})\"[^>]*?\bt=\"e\"[^>]*>[^\0]{0,9999}?<(?:\w+:)?v>([^<]*)<"
)
_NOT_COMPUTED: Final = re.compile(
    rb"<(?:\w+:)?c\s(?![^>]*\bt=\"str\")[^>]*?\br=\"([A-Z]{1,3})([0-9]{1,7})\"[^>]*>"
    rb"<(?:\w+:)?f\b[^>]*>(?:[^<]*</(?:\w+:)?f>)?(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v></(?:\w+:)?v>)?()</"
)
"""A formula without a value, as libraries write it; the text that a formula gives may be empty."""
_STYLED: Final = rb"<(?:\w+:)?c\s(?=[^>]*\bs=\"(%b)\")[^>]*?\br=\"([A-Z]{1,3})([0-9]{1,7})\""
_UNREADABLE: Final = (
    *(zipfile.BadZipFile, zlib.error, KeyError, ValueError, RuntimeError, OSError, EOFError),
    ElementTree.ParseError,
)
_NAMESPACES: Final = re.compile(r"\{[^}]*\}")


class _Parts:
    """The parts of an XLSX or ODS file that say what the reader does not tell; others have none."""

    def __init__(self, contents: bytes) -> None:
        self._sheets: dict[str, str] = {}
        self._zeros: dict[bytes, int] = {}
        self.count_from_1904 = self.errors_untold = False
        with suppress(*_UNREADABLE):
            self._archive = zipfile.ZipFile(io.BytesIO(contents))
            if "content.xml" in self._archive.namelist():  # of an ODS
                self.errors_untold = b'calcext:value-type="error"' in self._archive.read("content.xml")
            relations = self._tags("xl/_rels/workbook.xml.rels")
            targets = {each["Id"]: each["Target"] for tag, each in relations if tag == "Relationship"}
            for tag, each in self._tags("xl/workbook.xml"):
                if tag == "sheet":
                    part = str(PurePosixPath("/xl", targets[each["id"]])).removeprefix("/")
                    self._sheets[each["name"]] = part
                self.count_from_1904 |= tag == "workbookPr" and each.get("date1904") in ("1", "true")
            codes, styles = dict[str, str](), list[str]()
            for tag, each in self._tags("xl/styles.xml"):
                if tag == "numFmt":
                    codes[each["numFmtId"]] = each["formatCode"]
                elif tag == "xf":
                    styles.append(codes.get(each.get("numFmtId", ""), ""))
                elif tag == "cellXfs":  # those before are of named styles, which no cell names
                    styles = []
            self._zeros = {b"%d" % at: len(code) for at, code in enumerate(styles) if re.fullmatch("0+", code)}

    def _tags(self, part: str) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield the tags of a part with their attributes, both without namespaces."""
        for each in ElementTree.fromstring(self._archive.read(part)).iter():  # noqa: S314  # this process is bounded
            attributes = {_NAMESPACES.sub("", name): value for name, value in each.attrib.items()}
            yield _NAMESPACES.sub("", each.tag), attributes

    def shown(self, sheet: str) -> dict[int, dict[int, str | int]]:
        """Return what the reader does not hand out, by line and column.

        These are the errors of formulas, as one of which a formula counts that no program has computed, and the
        digits that a number is shown with, where its format has zeros only.
        """
        found: dict[int, dict[int, str | int]] = {}
        styled = re.compile(_STYLED % b"|".join(self._zeros)) if self._zeros else None
        if sheet not in self._sheets:
            return found
        with suppress(*_UNREADABLE), self._archive.open(self._sheets[sheet]) as stream:
            text = b""
            while block := stream.read(_BLOCK):
                text = text[-_LONGEST_CELL:] + block
                cells = [] if styled is None else [(*at, self._zeros[s]) for s, *at in styled.findall(text)]
                cells += _ERROR.findall(text) if b't="e"' in text else []
                cells += _NOT_COMPUTED.findall(text) if b"f>" in text else []
                for letters, line, shown in cells:
                    column = 0
                    for letter in letters:
                        column = column * 26 + letter - ord("A") + 1
                    value = shown if isinstance(shown, int) else unescape(shown.decode()) or "#CALC!"
                    found.setdefault(int(line), {})[column - 1] = value
        return found


if __name__ == "__main__":
    main(*map(int, sys.argv[1:-1]), wanted=sys.argv[-1])
