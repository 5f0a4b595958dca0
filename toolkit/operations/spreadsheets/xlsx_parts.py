"""The parts of a workbook (XLSX) beside its cells: styles, the layout of a sheet, and the parts that link sheets.

Source: ECMA-376, part 1, "SpreadsheetML".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, Self
from xml.sax.saxutils import escape, quoteattr

NAMESPACE: Final = "http://schemas.openxmlformats.org"
MAIN: Final = f"{NAMESPACE}/spreadsheetml/2006/main"
_OFFICE: Final = f"{NAMESPACE}/officeDocument/2006/relationships"
_RELATIONS: Final = f"{NAMESPACE}/package/2006/relationships"
_RELATIONS_TYPE: Final = "application/vnd.openxmlformats-package.relationships+xml"
_TYPE: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_PROPERTIES: Final = f"{_RELATIONS}/metadata/core-properties"
HEAD: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'


_FONTS: Final = (
    "",
    "<b/>",
    '<b/><sz val="18"/>',
    '<b/><sz val="13"/>',
    '<color rgb="FF5D646C"/>',
    '<color rgb="FF7A4A00"/>',
    '<color rgb="FF8C1F37"/>',
)
_FILLS: Final = ("", "", "FFEFECE4", "FFFBEED6", "FFF8E1E4")
"""The first two belong to the format itself."""
_DAY_AND_TIME: Final = 22
"""A built-in number format: a day and a time as the reader's country writes them."""
_DAY: Final = 14
_THOUSANDS: Final = 3
_TOP: Final = '<alignment vertical="top"/>'
_WRAP: Final = '<alignment vertical="top" wrapText="1"/>'


class Style(IntEnum):
    """The styles that a cell can have: number format, font, fill, border and alignment; a cell says its place."""

    looks: tuple[int, int, int, int, str]

    def __new__(cls, *looks: Any) -> Self:
        """Number the styles in their order."""
        style = int.__new__(cls, len(cls.__members__))
        style._value_, style.looks = len(cls.__members__), looks
        return style

    PLAIN = (0, 0, 0, 0, "")
    WRAPPED = (0, 0, 0, 0, _WRAP)
    HEADING = (0, 1, 2, 1, _WRAP)
    TITLE = (0, 2, 0, 0, "")
    SECTION = (0, 3, 0, 0, "")
    SOFT = (0, 4, 0, 0, "")
    BOLD = (0, 1, 0, 0, _TOP)
    NUMBER = (_THOUSANDS, 0, 0, 0, _TOP)
    MOMENT = (_DAY_AND_TIME, 0, 0, 0, '<alignment vertical="top" horizontal="left"/>')
    AMBER = (0, 5, 3, 0, _WRAP)
    RED = (0, 6, 4, 0, _WRAP)
    DAY = (_DAY, 0, 0, 0, "")


@dataclass(frozen=True, slots=True)
class Looks:
    """The looks of a sheet: widths of its columns in characters, and the rows and columns that stay in sight."""

    widths: Sequence[float] = ()
    frozen_columns: int = 0
    table: bool = True
    """One heading, frozen, repeated on each printed page, with a filter for each column."""


def before_rows(looks: Looks) -> str:
    """Return the XML of a sheet until its rows."""
    columns = "".join(
        f'<col min="{place}" max="{place}" width="{width:.1f}" customWidth="1"/>'
        for place, width in enumerate(looks.widths, 1)
    )
    pane = ""
    if looks.table:
        across = f' xSplit="{looks.frozen_columns}"' if looks.frozen_columns else ""
        corner = f"{column_name(looks.frozen_columns)}2"
        active = "bottomRight" if looks.frozen_columns else "bottomLeft"
        pane = f'<pane{across} ySplit="1" topLeftCell="{corner}" activePane="{active}" state="frozen"/>'
    return (
        f'{HEAD}<worksheet xmlns="{MAIN}"><sheetPr><pageSetUpPr fitToPage="1"/></sheetPr>'
        f'<sheetViews><sheetView workbookViewId="0">{pane}</sheetView></sheetViews>'
        f"{f'<cols>{columns}</cols>' if columns else ''}<sheetData>"
    )


def after_rows(looks: Looks, rows: int, bars: Mapping[str, str]) -> str:
    """Return the XML of a sheet after its rows: filter, bars, and landscape pages as wide as the sheet."""
    filtered = ""
    if looks.table and looks.widths:
        filtered = f'<autoFilter ref="A1:{column_name(len(looks.widths) - 1)}{max(rows, 1)}"/>'
    shown = "".join(
        f'<conditionalFormatting sqref="{cells}"><cfRule type="dataBar" priority="{place}"><dataBar>'
        f'<cfvo type="num" val="0"/><cfvo type="max"/><color rgb="FF{colour.lstrip("#").upper()}"/>'
        "</dataBar></cfRule></conditionalFormatting>"
        for place, (cells, colour) in enumerate(bars.items(), 1)
    )
    return (
        f'</sheetData>{filtered}{shown}<pageMargins left="0.4" right="0.4" top="0.5" bottom="0.6" header="0.3" '
        'footer="0.3"/><pageSetup paperSize="9" orientation="landscape" fitToHeight="0"/>'
        "<headerFooter><oddFooter>&amp;L&amp;A&amp;R&amp;P / &amp;N</oddFooter></headerFooter></worksheet>"
    )


def column_name(place: int) -> str:
    """``A`` for 0, ``AA`` for 26."""
    before, letter = divmod(place, 26)
    return (column_name(before - 1) if before else "") + chr(ord("A") + letter)


def parts(sheets: Sequence[tuple[str, Looks]], title: str, created: str) -> dict[str, str]:
    """Return the parts of a workbook beside its sheets; nobody is named as its author."""
    numbered = list(enumerate((name for name, _ in sheets), 1))
    listed = "".join(f'<sheet name={quoteattr(name)} sheetId="{at}" r:id="rId{at}"/>' for at, name in numbered)
    titles = "".join(
        f'<definedName name="_xlnm.Print_Titles" localSheetId="{at}">{_quoted(name)}!$1:$1</definedName>'
        for at, (name, looks) in enumerate(sheets)
        if looks.table
    )
    styles = len(sheets) + 1
    relations = "".join(
        f'<Relationship Id="rId{at}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{at}.xml"/>'
        for at, _ in numbered
    )
    types = "".join(
        f'<Override PartName="/xl/worksheets/sheet{at}.xml" ContentType="{_TYPE}.worksheet+xml"/>'
        for at, _ in numbered
    )
    return {
        "xl/workbook.xml": (
            f'<workbook xmlns="{MAIN}" xmlns:r="{_OFFICE}"><sheets>{listed}</sheets>'
            f"{f'<definedNames>{titles}</definedNames>' if titles else ''}</workbook>"
        ),
        "xl/styles.xml": _styles(),
        "xl/_rels/workbook.xml.rels": (
            f'<Relationships xmlns="{_RELATIONS}">{relations}'
            f'<Relationship Id="rId{styles}" Type="{_OFFICE}/styles" Target="styles.xml"/></Relationships>'
        ),
        "docProps/core.xml": (
            f'<cp:coreProperties xmlns:cp="{NAMESPACE}/package/2006/metadata/core-properties" '
            'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/" '
            f'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><dc:title>{escape(title)}</dc:title><dc:creator/>'
            + (f'<dcterms:created xsi:type="dcterms:W3CDTF">{created}</dcterms:created>' if created else "")
            + "</cp:coreProperties>"
        ),
        "_rels/.rels": (
            f'<Relationships xmlns="{_RELATIONS}">'
            f'<Relationship Id="rId1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
            f'<Relationship Id="rId2" Type="{_PROPERTIES}" Target="docProps/core.xml"/></Relationships>'
        ),
        "[Content_Types].xml": (
            f'<Types xmlns="{NAMESPACE}/package/2006/content-types">'
            f'<Default Extension="rels" ContentType="{_RELATIONS_TYPE}"/>'
            '<Default Extension="xml" ContentType="application/xml"/>'
            '<Override PartName="/docProps/core.xml" '
            'ContentType="application/vnd.openxmlformats-package.core-properties+xml"/>'
            f'<Override PartName="/xl/styles.xml" ContentType="{_TYPE}.styles+xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>{types}</Types>'
        ),
    }


def _quoted(name: str) -> str:
    return "'" + escape(name.replace("'", "''")) + "'"


def _styles() -> str:
    fonts = "".join(f"<font>{_font(each)}</font>" for each in _FONTS)
    fills = '<fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill>'
    fills += "".join(
        f'<fill><patternFill patternType="solid"><fgColor rgb="{each}"/></patternFill></fill>'
        for each in _FILLS[2:]
    )
    formats = "".join(
        f'<xf numFmtId="{number}" fontId="{font}" fillId="{fill}" borderId="{border}" xfId="0" '
        'applyNumberFormat="1" applyFont="1" applyFill="1" applyBorder="1" applyAlignment="1">'
        f"{alignment}</xf>"
        for number, font, fill, border, alignment in (style.looks for style in Style)
    )
    return (
        f'<styleSheet xmlns="{MAIN}"><fonts count="{len(_FONTS)}">{fonts}</fonts>'
        f'<fills count="{len(_FILLS)}">{fills}</fills><borders count="2"><border/>'
        '<border><left/><right/><top/><bottom style="thin"/><diagonal/></border></borders>'
        '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
        f'<cellXfs count="{len(Style)}">{formats}</cellXfs>'
        '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
    )


def _font(given: str) -> str:
    size = "" if "<sz" in given else '<sz val="11"/>'
    bold, colour = "<b/>" * ("<b/>" in given), given.replace("<b/>", "")
    return f'{bold}{size}{colour}<name val="Calibri"/><family val="2"/>'
