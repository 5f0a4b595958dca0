"""Find the cells of a workbook that hold an error, such as #N/A where a lookup found nothing.

The reader hands them out as empty cells, so that what could not be computed would pass as left out on purpose.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import PurePosixPath
from typing import Final

from toolkit.operations.spreadsheets.workbook_bounds import column_number

_BLOCK: Final = 4 * 1024 * 1024
_TAG: Final = re.compile(rb"<(?:\w+:)?(\w+)\s([^>]*)>")
_ATTRIBUTE: Final = re.compile(rb"([\w:]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_CELL: Final = re.compile(rb"<(?:\w+:)?c\s([^>]*\bt\s*=\s*[\"']e[\"'][^>]*)>.*?<(?:\w+:)?v>([^<]*)<", re.DOTALL)
_PLACE: Final = re.compile(rb"\br\s*=\s*[\"']([A-Za-z]{1,3})([0-9]{1,7})[\"']")
_LINE: Final = re.compile(rb"<row\s[^>]*?\br\s*=\s*[\"']([0-9]{1,7})[\"']")
_ANY_CELL: Final = re.compile(rb"<c[\s>]")


class CellError(str):
    """The error that stands in a cell instead of a value."""

    __slots__ = ()


Errors = Mapping[int, Mapping[int, CellError]]
"""The errors by line and column, both counted as in the sheet: from line 1, and from column 0."""


def errors_of(contents: bytes, sheet: str) -> Errors:
    """The errors in one sheet of an XLSX file; none in any other file."""
    try:
        with zipfile.ZipFile(io.BytesIO(contents)) as archive:
            return _errors(archive, _part(archive, sheet))
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, RuntimeError, OSError, EOFError):
        return {}  # the reader says what is wrong with it


def _part(archive: zipfile.ZipFile, sheet: str) -> str:
    """The part of the archive that the sheet is in."""
    keys = {tag["name"]: _relation(tag) for tag in _tags(archive.read("xl/workbook.xml"), b"sheet")}
    relations = _tags(archive.read("xl/_rels/workbook.xml.rels"), b"Relationship")
    targets = {tag["Id"]: tag["Target"] for tag in relations}
    return str(PurePosixPath("/xl", targets[keys[sheet] or ""])).removeprefix("/")


def _relation(tag: Mapping[str, str]) -> str | None:
    return next((value for name, value in tag.items() if name.endswith(":id")), None)


def _tags(xml: bytes, wanted: bytes) -> Iterator[dict[str, str]]:
    for tag, attributes in _TAG.findall(xml):
        if tag == wanted:
            yield {
                name.decode(): unescape((double or single).decode())
                for name, double, single in _ATTRIBUTE.findall(attributes)
            }


def _errors(archive: zipfile.ZipFile, part: str) -> Errors:
    found: dict[int, dict[int, CellError]] = {}
    rest = b""
    with archive.open(part) as stream:
        while block := stream.read(_BLOCK):
            text = rest + block
            cut = text.rfind(b"<row") if b"<row" in text else text.rfind(b">") + 1
            text, rest = text[:cut], text[cut:]
            _add_errors(found, text)
    _add_errors(found, rest)
    return found


def _add_errors(found: dict[int, dict[int, CellError]], xml: bytes) -> None:
    if b'"e"' not in xml and b"'e'" not in xml:
        return
    for cell in _CELL.finditer(xml):
        line, column = _place(cell, xml)
        found.setdefault(line, {})[column] = CellError(unescape(cell.group(2).decode()))


def _place(cell: re.Match[bytes], xml: bytes) -> tuple[int, int]:
    """Line and column of a cell, which names them or else follows the cell before it."""
    named = _PLACE.search(cell.group(1))
    if named is not None:
        return int(named.group(2)), column_number(named.group(1)) - 1
    row = xml.rfind(b"<row", 0, cell.start())
    line = _LINE.match(xml, row)
    if line is None:
        raise KeyError("A row without a number")
    return int(line.group(1)), len(_ANY_CELL.findall(xml, row, cell.start()))
