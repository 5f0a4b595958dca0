"""Write a workbook (XLSX) at the speed of columns: texts, numbers, times, booleans and errors, in a few styles.

A library takes a call for each cell, which was two thirds of the time of a dry run. Here a whole column of
cells becomes XML at once. Every text is an inline string, so that nothing can be taken for a formula or a
link, and nothing but the workbook itself is ever written to the disk.

Source: ECMA-376, part 1, "SpreadsheetML".
"""

import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import IO, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.operations.spreadsheets.text_bytes import may_have_outer_space, offsets, values
from toolkit.operations.spreadsheets.xlsx_parts import HEAD, Looks, Style, after_rows, before_rows, parts

SHEET_ROWS: Final = 1_048_576
"""Rows that a sheet has room for."""
SHEET_NAME: Final = 31
"""Characters that the name of a sheet has room for."""
CELL_CHARACTERS: Final = 32_767
"""Characters that a cell has room for."""
SHEET_BYTES: Final = 2_000_000_000
"""Bytes of a sheet's XML that every program can unpack."""

_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f]")
_ENCODED: Final = "_(x[0-9A-Fa-f]{4}_)"
"""The form of a control character in a workbook; where a text looks like it, its underscore is written so."""

Mask = npt.NDArray[np.bool_]


class Form(Enum):
    """The forms of a cell: the XML around its text, after the style."""

    TEXT = (' t="inlineStr"><is><t>', "</t></is></c>")
    SPACED_TEXT = (' t="inlineStr"><is><t xml:space="preserve">', "</t></is></c>")
    NUMBER = ("><v>", "</v></c>")
    BOOLEAN = (' t="b"><v>', "</v></c>")
    ERROR = (' t="e"><v>', "</v></c>")
    EMPTY = ("/>", "")


@dataclass(frozen=True, slots=True)
class Cells:
    """A column of cells: their texts, null for empty ones, with the form and the style of most and of some."""

    texts: pa.StringArray
    form: Form = Form.TEXT
    style: Style = Style.PLAIN
    forms: Mapping[Form, Mask] = field(default_factory=dict)
    styles: Mapping[Style, Mask] = field(default_factory=dict)

    def xml(self) -> tuple[str | pa.StringArray, pa.StringArray, str | pa.StringArray]:
        """Return the XML of the cells: that before each text, the texts, and that after each."""
        spaced = self.form is Form.TEXT and may_have_outer_space(self.texts)
        usual = Form.SPACED_TEXT if spaced else self.form
        before, after, texts = self._opening(usual), usual.value[1], self.texts
        forms = dict(self.forms)
        if texts.null_count:
            forms[Form.EMPTY] = texts.is_null().to_numpy(zero_copy_only=False)
            texts = pc.fill_null(texts, "")
        for form, mask in forms.items():
            before = pc.if_else(pa.array(mask), self._opening(form), before)
            after = pc.if_else(pa.array(mask), form.value[1], after)
        return before, _as_xml(texts), after

    def _opening(self, form: Form) -> str | pa.StringArray:
        opening: str | pa.StringArray = _cell(self.style, form)
        for style, mask in self.styles.items():
            opening = pc.if_else(pa.array(mask), _cell(style, form), opening)
        return opening


def _cell(style: Style, form: Form) -> str:
    return f'<c s="{int(style)}"{form.value[0]}' if style else f"<c{form.value[0]}"


class Workbook:
    """A workbook that is being written: ``begin_sheet``, rows by ``add``, the next sheet, and last ``close``.

    ``problem`` says why the workbook cannot hold what it was given; it is of no use then.
    """

    def __init__(self, path: Path, *, title: str = "", created: str = "") -> None:
        self.path = path
        self.problem: str | None = None
        self.row = 0
        self._title, self._created = title, created
        self._sheets: list[tuple[str, Looks]] = []
        self._archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        self._sheet: IO[bytes] | None = None
        self._size = 0
        self._closed = False

    def begin_sheet(self, name: str, looks: Looks) -> None:
        """End the sheet before, and begin one."""
        self.end_sheet()
        self._sheets.append((name, looks))
        part = zipfile.ZipInfo(f"xl/worksheets/sheet{len(self._sheets)}.xml")
        part.compress_type = zipfile.ZIP_DEFLATED
        self._sheet = self._archive.open(part, "w")
        self._sheet.write(before_rows(looks).encode())
        self.row = self._size = 0

    def add(self, columns: Sequence[Cells]) -> None:
        """Add rows below those that are there."""
        if self.problem is not None or not columns or not len(columns[0].texts):
            return
        self.problem = self._too_much([column.texts for column in columns])
        if self.problem is None:
            self._write(columns)

    def add_row(self, *cells: str | int | None, style: Style = Style.PLAIN) -> None:
        """Add one row of texts and numbers."""
        self.add([_one(cell, style) for cell in cells])

    def end_sheet(self, bars: Mapping[str, str] | None = None) -> None:
        """End the sheet; ``bars`` are cells such as ``B5:B9`` that show their numbers as bars, too."""
        sheet, self._sheet = self._sheet, None  # one that the disk has no room for is not ended again
        if sheet is None:
            return
        sheet.write(after_rows(self._sheets[-1][1], self.row, bars or {}).encode())
        sheet.close()

    def close(self) -> None:
        """Write the parts beside the sheets, and finish the file; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self.end_sheet()
        with self._archive as archive:
            for name, xml in parts(self._sheets, self._title, self._created).items():
                archive.writestr(zipfile.ZipInfo(name), HEAD + xml, zipfile.ZIP_DEFLATED)

    def _too_much(self, columns: Sequence[pa.StringArray]) -> str | None:
        if self.row + len(columns[0]) > SHEET_ROWS:
            return f"a sheet has no more than {SHEET_ROWS:,} rows"
        if any(_has_too_long(column) for column in columns):
            return f"a cell has more than {CELL_CHARACTERS:,} characters"
        if self._size > SHEET_BYTES:
            return "a sheet has no room for as much text"
        if any(has_unwritable(column) for column in columns):
            return "a cell has a character that workbooks cannot hold"
        return None

    def _write(self, columns: Sequence[Cells]) -> None:
        count = len(columns[0].texts)
        row = pc.cast(pa.array(np.arange(self.row + 1, self.row + count + 1)), pa.string())
        pieces: list[pa.StringArray | str] = ['<row r="', row, '">']
        for column in columns:
            pieces += column.xml()
        xml = pc.binary_join_element_wise(*pieces, "</row>", "")
        assert self._sheet is not None
        written = values(xml).data
        self._sheet.write(written)
        self._size += len(written)
        self.row += count


def _one(cell: str | int | None, style: Style) -> Cells:
    if isinstance(cell, int):
        return Cells(pa.array([str(cell)]), Form.NUMBER, Style.NUMBER if style is Style.PLAIN else style)
    return Cells(pa.array([cell], pa.string()), style=style)


def _has_too_long(column: pa.StringArray) -> bool:
    if np.diff(offsets(column)).max() <= CELL_CHARACTERS:  # a character takes a byte or more
        return False
    return bool(pc.max(pc.utf8_length(column)).as_py() > CELL_CHARACTERS)


def has_unwritable(column: pa.StringArray) -> bool:
    """Tell whether U+FFFE or U+FFFF is in a cell."""
    data = values(column)
    return bool(((data[:-2] == 0xEF) & (data[1:-1] == 0xBF) & (data[2:] >= 0xBE)).any())


_CONTROLS: Final = np.array([_CONTROL.match(chr(code)) is not None for code in range(256)])
_MARKED: Final = _CONTROLS.copy()
_MARKED[[*b"&<>_"]] = True
"""Bytes that may have to be written otherwise; most columns hold none."""


def _as_xml(column: pa.StringArray) -> pa.StringArray:
    if not _MARKED[values(column)].any():
        return column
    if pc.any(pc.match_substring(column, "_x")).as_py():
        column = pc.replace_substring_regex(column, _ENCODED, r"_x005F_\1")
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        column = pc.replace_substring(column, character, entity)
    if _CONTROLS[values(column)].any():
        column = pa.array(
            [_CONTROL.sub(lambda found: f"_x{ord(found.group()):04X}_", cell) for cell in column.to_pylist()],
            pa.string(),
        )
    return column
