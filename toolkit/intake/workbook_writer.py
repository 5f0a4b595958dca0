"""Write a workbook (XLSX) at the speed of columns: texts, numbers, times and booleans, in a few styles.

A whole column of cells becomes XML at once. XlsxWriter takes twelve times as long, a call for each cell (20,000
rows of 18 cells: 2.5 s and 0.2 s), more than a whole report may take; the writers in Rust cannot set the moment
of creation, so that the same report would have other bytes each time. Every text is an inline string, so that
nothing can be taken for a formula or a link, and nothing but the workbook itself is written to the disk.

Source: ECMA-376, part 1, "SpreadsheetML".
"""

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from math import ceil
from pathlib import Path
from string import Template
from textwrap import wrap
from typing import IO, Final
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.intake.sources import Mask, values

_TEMPLATES: Final = Path(__file__).with_name("templates")
_WORKSHEET: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"
_WORKSHEET_TYPE: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"


class Style(IntEnum):
    """The styles that a cell can have: the place of its ``xf`` in ``templates/styles.xml``."""

    PLAIN, WRAPPED, HEADING, TITLE, SECTION, SOFT, BOLD, NUMBER, MOMENT, AMBER, RED, DAY, DECIMAL = range(13)
    CHANGE, NUMBER_HEADING = 13, 14


@dataclass(frozen=True, slots=True)
class SheetLooks:
    """The looks of a sheet: widths of its columns in characters, and the columns that stay in sight."""

    widths: Sequence[float]
    frozen_columns: int = 0
    """Columns of a table, whose first row are headings with filters; both are repeated on each printed page."""
    pages: int = 0  # the printed pages that it is made to fit on; 0 for as many as it takes
    choices: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """The words that may be chosen in the cells of a column, by its place from 0; none has a comma."""


_ON_A_PAGE: Final = 200
"""Digits side by side that can be read on a printed page; a wider sheet takes several pages across."""


def _before_rows(looks: SheetLooks) -> str:
    """Return the XML of a sheet until its rows."""
    columns = (
        f'<col min="{place}" max="{place}" width="{width:.1f}" customWidth="1"/>'
        for place, width in enumerate(looks.widths, 1)
    )
    frozen, pane = looks.frozen_columns, ""
    if frozen:
        corner = f'topLeftCell="{column_name(frozen)}2" activePane="bottomRight"'
        pane = f'<pane xSplit="{frozen}" ySplit="1" {corner} state="frozen"/>'
    return _filled("sheet_begin.xml", pane=pane, columns="".join(columns))


def _after_rows(looks: SheetLooks, rows: int, bars: Mapping[str, str], across: Sequence[int]) -> str:
    """Return the XML of a sheet after its rows: filter, bars, and the landscape pages that it is printed on."""
    last = column_name(len(looks.widths) - 1)
    return _filled(
        "sheet_end.xml",
        filtered=f'<autoFilter ref="A1:{last}{rows}"/>' if looks.frozen_columns else "",
        merged=_several("mergeCells", (f'<mergeCell ref="A{row}:{last}{row}"/>' for row in across)),
        bars="".join(
            f'<conditionalFormatting sqref="{cells}"><cfRule type="dataBar" priority="{place}"><dataBar>'
            f'<cfvo type="num" val="0"/><cfvo type="max"/><color rgb="FF{colour.lstrip("#").upper()}"/>'
            "</dataBar></cfRule></conditionalFormatting>"
            for place, (cells, colour) in enumerate(bars.items(), 1)
        ),
        choices=_several(
            "dataValidations",
            (
                f'<dataValidation type="list" allowBlank="1" sqref="{column}2:{column}{max(rows, 2)}">'
                f'<formula1>"{escape(",".join(words))}"</formula1></dataValidation>'
                for column, words in ((column_name(place), words) for place, words in looks.choices.items())
            ),
        ),
        across=ceil(sum(looks.widths) / _ON_A_PAGE),
        pages=looks.pages,
    )


def column_name(place: int) -> str:
    """``A`` for 0, ``AA`` for 26."""
    before, letter = divmod(place, 26)
    return (column_name(before - 1) if before else "") + chr(ord("A") + letter)


def _several(tag: str, parts: Iterable[str]) -> str:
    """Return an element with these parts, nothing where there are none."""
    inside = "".join(parts)
    return inside and f"<{tag}>{inside}</{tag}>"


def _filled(template: str, **values: object) -> str:
    return Template((_TEMPLATES / template).read_text("utf-8")).substitute(values)


def _parts(
    sheets: Sequence[tuple[str, SheetLooks]], title: str, created: str, day: str
) -> Iterator[tuple[str, str]]:
    """Yield the parts of a workbook beside its sheets; nobody is named as its author."""
    listed, targets, types, titles = "", "", "", ""
    for at, (name, looks) in enumerate(sheets, 1):
        listed += f'<sheet name={quoteattr(name)} sheetId="{at}" r:id="rId{at}"/>'
        targets += f'<Relationship Id="rId{at}" Type="{_WORKSHEET}" Target="worksheets/sheet{at}.xml"/>'
        types += f'<Override PartName="/xl/worksheets/sheet{at}.xml" ContentType="{_WORKSHEET_TYPE}"/>'
        if looks.frozen_columns:
            sheet, last = escape(name.replace("'", "''")), column_name(looks.frozen_columns - 1)
            printed = f"'{sheet}'!$A:${last},'{sheet}'!$1:$1"
            titles += f'<definedName name="_xlnm.Print_Titles" localSheetId="{at - 1}">{printed}</definedName>'
    created = created and f'<dcterms:created xsi:type="dcterms:W3CDTF">{created}</dcterms:created>'
    titles = _several("definedNames", titles)
    yield "xl/workbook.xml", _filled("workbook.xml", sheets=listed, titles=titles)
    yield "xl/styles.xml", _filled("styles.xml", day=day)
    yield "xl/_rels/workbook.xml.rels", _filled("workbook.xml.rels", sheets=targets)
    yield "docProps/core.xml", _filled("core.xml", title=escape(title), created=created)
    yield "_rels/.rels", _filled("package.rels")
    yield "[Content_Types].xml", _filled("content_types.xml", sheets=types)


SHEET_ROWS: Final = 1_048_576  # rows that a sheet has room for
SHEET_NAME: Final = 31  # characters that the name of a sheet has room for
CELL_CHARACTERS: Final = 32_767  # characters that a cell has room for
SHEET_BYTES: Final = 2_000_000_000  # bytes of a sheet's XML that every program can unpack

_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f]")
_ENCODED: Final = "_(x[0-9A-Fa-f]{4}_)"
"""The form of a control character in a workbook; where a text looks like it, its underscore is written so."""


class Form(Enum):
    """The forms of a cell: the XML around its text, after the style."""

    TEXT = (' t="inlineStr"><is><t xml:space="preserve">', "</t></is></c>")
    NUMBER = ("><v>", "</v></c>")
    EMPTY = ("/>", "")


@dataclass(frozen=True, slots=True)
class Cells:
    """A column of cells: their texts, null for empty ones, with the form and the style of most and of some."""

    texts: pa.StringArray
    form: Form = Form.TEXT
    style: Style = Style.PLAIN
    forms: Mapping[Form, Mask] = field(default_factory=dict)
    styles: Mapping[Style, Mask] = field(default_factory=dict)

    def xml(self) -> list[str | pa.StringArray]:
        """Return the XML of the cells in pieces: that before each text, the texts, and that after each."""
        forms, texts = dict(self.forms), self.texts
        if texts.null_count:
            forms[Form.EMPTY] = texts.is_null().to_numpy(zero_copy_only=False)
            texts = pc.fill_null(texts, "")
        tag: str | pa.StringArray = _tag(self.style)
        for style, mask in self.styles.items():
            tag = pc.if_else(pa.array(mask), _tag(style), tag)
        before, after = self.form.value
        for form, mask in forms.items():
            before = pc.if_else(pa.array(mask), form.value[0], before)
            after = pc.if_else(pa.array(mask), form.value[1], after)
        return [tag, before, _as_xml(texts), after]


def _tag(style: Style) -> str:
    return f'<c s="{int(style)}"' if style else "<c"


class _Archive(zipfile.ZipFile):
    def __del__(self) -> None:
        """Leave one alone that was not finished: on a full disk it would fail once more, and print that."""


class Workbook:
    """A workbook that is being written: ``begin_sheet``, rows by ``add``, the next sheet, and last ``close``.

    ``problem`` says why the workbook cannot hold what it was given; it is of no use then.
    """

    def __init__(self, path: Path, *, title: str = "", created: str = "", day: str = "yyyy-mm-dd") -> None:
        """Write it at ``path``; ``day`` is the form of days, ``dd/mm/yyyy`` for instance."""
        self.path = path
        self.problem: str | None = None
        self.row = 0
        self._of_all = title, created, day
        self._across: list[int] = []
        self._sheets: list[tuple[str, SheetLooks]] = []
        self._archive = _Archive(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        self._sheet: IO[bytes] | None = None
        self._size = 0
        self._closed = False

    def begin_sheet(self, name: str, looks: SheetLooks) -> None:
        """End the sheet before, and begin one."""
        self.end_sheet()
        self._sheets.append((name, looks))
        part = zipfile.ZipInfo(f"xl/worksheets/sheet{len(self._sheets)}.xml")
        part.compress_type = zipfile.ZIP_DEFLATED
        self._sheet = self._archive.open(part, "w")
        self._sheet.write(_before_rows(looks).encode())
        self.row = self._size = 0
        self._across = []

    def add_across(self, text: str) -> None:
        """Add one row with a text over all columns, on as many lines as it takes."""
        self._across.append(self.row + 1)
        self.add([_column([text], Style.WRAPPED)], [sum(self._sheets[-1][1].widths)])

    def add(self, columns: Sequence[Cells], widths: Sequence[float] | None = None) -> None:
        """Add rows below those that are there; their heights follow from the widths, by default the sheet's."""
        if self.problem is not None or not columns or not len(columns[0].texts):
            return
        rows = self._rows(columns, widths or self._sheets[-1][1].widths)
        self.problem = self._too_much([column.texts for column in columns], rows)
        if self.problem is None:
            assert self._sheet is not None
            written = values(rows).data
            self._sheet.write(written)
            self._size += len(written)
            self.row += len(rows)

    def add_row(self, *cells: str | int | None, style: Style = Style.PLAIN) -> None:
        """Add one row of texts and numbers."""
        self.add_rows([cells], style)

    def add_rows(self, rows: Iterable[Sequence[str | int | None]], style: Style = Style.PLAIN) -> None:
        """Add rows whose columns hold texts or numbers."""
        self.add([_column(cells, style) for cells in zip(*rows, strict=True)])

    def end_sheet(self, bars: Mapping[str, str] | None = None) -> None:
        """End the sheet; ``bars`` are cells such as ``B5:B9`` that show their numbers as bars, too."""
        sheet, self._sheet = self._sheet, None  # one that the disk has no room for is not ended again
        if sheet is None:
            return
        sheet.write(_after_rows(self._sheets[-1][1], self.row, bars or {}, self._across).encode())
        sheet.close()

    def close(self) -> None:
        """Write the parts beside the sheets, and finish the file; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self.end_sheet()
        with self._archive as archive:
            for name, xml in _parts(self._sheets, *self._of_all):
                archive.writestr(zipfile.ZipInfo(name), xml, zipfile.ZIP_DEFLATED)

    def _too_much(self, columns: Sequence[pa.StringArray], rows: pa.StringArray) -> str | None:
        if self.row + len(rows) > SHEET_ROWS:
            return f"a sheet has no more than {SHEET_ROWS:,} rows"
        longest = pc.max(pc.binary_length(rows)).as_py()  # a character takes a byte or more
        if longest > CELL_CHARACTERS and any(
            pc.any(pc.greater(pc.utf8_length(each), CELL_CHARACTERS)).as_py() for each in columns
        ):
            return f"a cell has more than {CELL_CHARACTERS:,} characters"
        if self._size > SHEET_BYTES:
            return "a sheet has no room for as much text"
        if has_unwritable(rows):
            return "a cell has a character that workbooks cannot hold"
        return None

    def _rows(self, columns: Sequence[Cells], widths: Sequence[float]) -> pa.StringArray:
        """Return the XML of rows."""
        count = len(columns[0].texts)
        row = pc.cast(pa.array(np.arange(self.row + 1, self.row + count + 1)), pa.string())
        pieces: list[pa.StringArray | str] = ['<row r="', row, _heights(columns, widths)]
        for column in columns:
            pieces += column.xml()
        return pc.binary_join_element_wise(*pieces, "</row>", "")


_WRAPPED: Final = (Style.WRAPPED, Style.HEADING, Style.NUMBER_HEADING, Style.AMBER, Style.RED)
_LETTERS: Final = 1.15  # letters of a text that are as wide as a digit, by which widths of columns are told
_BUTTON: Final = 3  # digits that the button of a filter takes in a heading
_MANY: Final = 3  # lines from which on a text takes one more, because long words leave the ends of lines empty
_LARGE: Final = {Style.TITLE: 1.8, Style.SECTION: 1.2}  # the lines that a row in a larger font takes


def _heights(columns: Sequence[Cells], widths: Sequence[float]) -> str | pa.StringArray:
    """Return the end of the opening tag of rows, with the height of those of many lines."""
    lines = np.full(len(columns[0].texts), _LARGE.get(columns[0].style, 1.0))
    for column, width in zip(columns, widths, strict=False):
        if column.style not in _WRAPPED:
            continue
        if column.style in (Style.HEADING, Style.NUMBER_HEADING):
            (name,) = column.texts.to_pylist()
            lines = np.maximum(lines, len(wrap(name, max(int(width) - _BUTTON, 1))))
            continue
        parts = pc.split_pattern(pc.fill_null(column.texts, ""), "\n")
        letters = pc.utf8_length(parts.flatten()).to_numpy(zero_copy_only=False)
        taken = np.maximum(np.ceil(letters / (width * _LETTERS)), 1)
        taken += taken > _MANY
        lines = np.maximum(lines, np.bincount(pc.list_parent_indices(parts), taken))
    if lines.max() == 1:
        return '">'
    heights = pc.cast(pa.array(np.minimum(lines * 15, 409).astype(np.int64)), pa.string())
    return pc.binary_join_element_wise('" ht="', heights, '" customHeight="1">', "")


def _column(cells: Sequence[str | int | None], style: Style) -> Cells:
    if isinstance(cells[0], int):
        numbers = pa.array([*map(str, cells)])
        return Cells(numbers, Form.NUMBER, Style.NUMBER if style is Style.PLAIN else style)
    return Cells(pa.array(cells, pa.string()), style=style)


def has_unwritable(column: pa.StringArray) -> bool:
    """Tell whether U+FFFE or U+FFFF is in a cell."""
    data = values(column)
    return bool(((data[:-2] == 0xEF) & (data[1:-1] == 0xBF) & (data[2:] >= 0xBE)).any())


_CONTROLS: Final = np.array([_CONTROL.match(chr(code)) is not None for code in range(256)])
_MARKED: Final = _CONTROLS | np.isin(np.arange(256), [*b"&<>_"])
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
