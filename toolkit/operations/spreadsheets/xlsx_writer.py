"""Write a plain workbook (XLSX) at the speed of columns: text and numbers, nothing else.

XlsxWriter takes a call for each cell, which was two thirds of the time of a dry run. Here a whole column of
cells becomes XML at once. Every text is an inline string, so that nothing can be taken for a formula or a
link, and nothing but the workbook itself is ever written to the disk.

Source: ECMA-376, part 1, "SpreadsheetML".
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final
from xml.sax.saxutils import quoteattr

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.operations.spreadsheets.text_bytes import may_have_outer_space, offsets, values

SHEET_ROWS: Final = 1_048_576
"""Rows that a sheet has room for."""
CELL_CHARACTERS: Final = 32_767
"""Characters that a cell has room for."""
SHEET_BYTES: Final = 2_000_000_000
"""Bytes of a sheet's XML that every program can unpack."""

_NAMESPACE: Final = "http://schemas.openxmlformats.org"
_MAIN: Final = f"{_NAMESPACE}/spreadsheetml/2006/main"
_OFFICE: Final = f"{_NAMESPACE}/officeDocument/2006/relationships"
_RELATIONS: Final = f"{_NAMESPACE}/package/2006/relationships"
_RELATIONS_TYPE: Final = "application/vnd.openxmlformats-package.relationships+xml"
_TYPE: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_HEAD: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_SHEET_HEAD: Final = (
    f'{_HEAD}<worksheet xmlns="{_MAIN}"><sheetViews><sheetView workbookViewId="0">'
    '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews>'
    "<sheetData>"
)
_SHEET_TAIL: Final = "</sheetData></worksheet>"
_TEXT: Final = ('<c t="inlineStr"><is><t>', "</t></is></c>")
_SPACED_TEXT: Final = ('<c t="inlineStr"><is><t xml:space="preserve">', "</t></is></c>")
_NUMBER: Final = ("<c><v>", "</v></c>")
_ERROR: Final = ('<c t="e"><v>', "</v></c>")

_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f]")
_ENCODED: Final = "_(x[0-9A-Fa-f]{4}_)"
"""How a workbook writes a control character; where a text looks like it, its underscore is written so."""

Cells = Mapping[int, npt.NDArray[np.bool_]]
"""Which cells are meant, by column."""


class PlainWorkbook:
    """A workbook in the making: rows of its first sheet, then whole further sheets, then ``close``.

    ``problem`` says why the workbook cannot hold what it was given; it is of no use then.
    """

    def __init__(self, path: Path, sheet: str) -> None:
        self.path = path
        self.problem: str | None = None
        self._names = [sheet]
        self._archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        self._sheet: IO[bytes] | None = self._begin_sheet()
        self._row = self._size = 0

    def add(
        self, columns: Sequence[pa.StringArray], numbers: Cells | None = None, errors: Cells | None = None
    ) -> None:
        """Add rows below those that are there; all cells are texts but ``numbers`` and ``errors``."""
        if self.problem is None and columns and len(columns[0]):
            self.problem = self._too_much(columns)
        if self.problem is None and columns and len(columns[0]):
            self._write(columns, ((_NUMBER, numbers or {}), (_ERROR, errors or {})))

    def add_sheet(self, name: str, rows: Sequence[tuple[str, str | int]]) -> None:
        """Add a small sheet of two columns."""
        self._end_sheet()
        self._names.append(name)
        self._sheet = self._begin_sheet()
        self._row = 0
        amounts = np.array([isinstance(value, int) for _, value in rows], dtype=bool)
        self.add([pa.array([name for name, _ in rows]), pa.array([str(value) for _, value in rows])], {1: amounts})

    def close(self) -> None:
        """Write what holds the sheets together; closing twice does nothing more."""
        if self._sheet is None:
            return
        self._end_sheet()
        with self._archive as archive:
            for name, xml in _parts(self._names).items():
                archive.writestr(zipfile.ZipInfo(name), _HEAD + xml, zipfile.ZIP_DEFLATED)

    def _begin_sheet(self) -> IO[bytes]:
        sheet = zipfile.ZipInfo(f"xl/worksheets/sheet{len(self._names)}.xml")
        sheet.compress_type = zipfile.ZIP_DEFLATED
        stream = self._archive.open(sheet, "w")
        stream.write(_SHEET_HEAD.encode())
        return stream

    def _end_sheet(self) -> None:
        if self._sheet is not None:
            self._sheet.write(_SHEET_TAIL.encode())
            self._sheet.close()
            self._sheet = None

    def _too_much(self, columns: Sequence[pa.StringArray]) -> str | None:
        if self._row + len(columns[0]) > SHEET_ROWS:
            return f"a sheet has no more than {SHEET_ROWS:,} rows"
        if any(_has_too_long(column) for column in columns):
            return f"a cell has more than {CELL_CHARACTERS:,} characters"
        if self._size > SHEET_BYTES:
            return "a sheet has no room for as much text"
        if any(_has_unwritable(column) for column in columns):
            return "a cell has a character that workbooks cannot hold"
        return None

    def _write(self, columns: Sequence[pa.StringArray], kinds: Sequence[tuple[tuple[str, str], Cells]]) -> None:
        count = len(columns[0])
        row = pc.cast(pa.array(np.arange(self._row + 1, self._row + count + 1)), pa.string())
        parts: list[pa.StringArray | str] = ['<row r="', row, '">']
        for position, column in enumerate(columns):
            before, after = _SPACED_TEXT if may_have_outer_space(column) else _TEXT
            for (begin, end), cells in kinds:
                if position in cells:
                    mask = pa.array(cells[position])
                    before, after = pc.if_else(mask, begin, before), pc.if_else(mask, end, after)
            parts += [before, _as_xml(column), after]
        xml = pc.binary_join_element_wise(*parts, "</row>", "")
        assert self._sheet is not None
        written = values(xml).data
        self._sheet.write(written)
        self._size += len(written)
        self._row += count


def _parts(sheets: Sequence[str]) -> dict[str, str]:
    """The parts of a workbook beside its sheets."""
    numbered = list(enumerate(sheets, 1))
    listed = "".join(f'<sheet name={quoteattr(name)} sheetId="{at}" r:id="rId{at}"/>' for at, name in numbered)
    relations = "".join(
        f'<Relationship Id="rId{at}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{at}.xml"/>'
        for at, _ in numbered
    )
    types = "".join(
        f'<Override PartName="/xl/worksheets/sheet{at}.xml" ContentType="{_TYPE}.worksheet+xml"/>'
        for at, _ in numbered
    )
    return {
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_RELATIONS}">{relations}</Relationships>',
        "_rels/.rels": (
            f'<Relationships xmlns="{_RELATIONS}">'
            f'<Relationship Id="rId1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>'
        ),
        "[Content_Types].xml": (
            f'<Types xmlns="{_NAMESPACE}/package/2006/content-types">'
            f'<Default Extension="rels" ContentType="{_RELATIONS_TYPE}"/>'
            '<Default Extension="xml" ContentType="application/xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>{types}</Types>'
        ),
    }


def _has_too_long(column: pa.StringArray) -> bool:
    if np.diff(offsets(column)).max() <= CELL_CHARACTERS:  # a character takes a byte or more
        return False
    return bool(pc.max(pc.utf8_length(column)).as_py() > CELL_CHARACTERS)


def _has_unwritable(column: pa.StringArray) -> bool:
    """Tell whether U+FFFE or U+FFFF is in a cell."""
    data = values(column)
    return bool(((data[:-2] == 0xEF) & (data[1:-1] == 0xBF) & (data[2:] >= 0xBE)).any())


_MARKED: Final = np.zeros(256, dtype=bool)
_MARKED[[*range(0x20), *b"&<>_"]] = True
"""Bytes that may have to be written otherwise; most columns hold none."""


def _as_xml(column: pa.StringArray) -> pa.StringArray:
    if not _MARKED[values(column)].any():
        return column
    if pc.any(pc.match_substring(column, "_x")).as_py():
        column = pc.replace_substring_regex(column, _ENCODED, r"_x005F_\1")
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        column = pc.replace_substring(column, character, entity)
    if (values(column) < ord(" ")).any():
        column = pa.array(
            [_CONTROL.sub(lambda found: f"_x{ord(found.group()):04X}_", cell) for cell in column.to_pylist()],
            pa.string(),
        )
    return column
