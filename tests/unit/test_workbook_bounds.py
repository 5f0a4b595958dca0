"""No workbook and no text file takes more memory or time than stated, whoever made it."""

from __future__ import annotations

import resource
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from toolkit.errors import UnreadableFile
from toolkit.intake import tables, text_tables
from toolkit.intake import workbooks as workbook
from toolkit.intake.headings import Headings
from toolkit.intake.sources import Chunk
from toolkit.intake.tables import read_table

RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
FIRST = '<row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c></row>'
BLANKS = b" " * 1_000_000


def read(path: Path) -> Chunk:
    return read_table(path, Headings(())).rows


def cell(place: str = "") -> str:
    return f'<c {place} t="inlineStr"><is><t>x</t></is></c>'


def book(path: Path, rows: Iterable[str | bytes], strings: Iterable[bytes] = ()) -> Path:
    """A workbook with these parts between the tags of its sheet and of its shared strings."""
    relation = f'<Relationship Id="{{}}" Type="{RELATIONS}/{{}}" Target="{{}}"/>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, root, inside in (
            ("_rels/.rels", f'Relationships xmlns="{PACKAGE}"', [("r1", "officeDocument", "xl/workbook.xml")]),
            (
                "xl/_rels/workbook.xml.rels",
                f'Relationships xmlns="{PACKAGE}"',
                [("r1", "worksheet", "worksheets/sheet1.xml"), ("r2", "sharedStrings", "sharedStrings.xml")],
            ),
        ):
            written = "".join(relation.format(*each) for each in inside)
            archive.writestr(name, f"<{root}>{written}</Relationships>")
        sheets = '<sheets><sheet name="clientes" sheetId="1" r:id="r1"/></sheets>'
        archive.writestr("xl/workbook.xml", f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}">{sheets}</workbook>')
        for name, start, parts, end in (
            (
                "xl/worksheets/sheet1.xml",
                f'<worksheet xmlns="{MAIN}"><sheetData>',
                rows,
                "</sheetData></worksheet>",
            ),
            ("xl/sharedStrings.xml", f'<sst xmlns="{MAIN}">', strings, "</sst>"),
        ):
            with archive.open(name, "w", force_zip64=True) as part:
                for text in (start, *parts, end):
                    part.write(text if isinstance(text, bytes) else text.encode())
    return path


FAR = '<row r="1048576">' + cell('r="XFD1048576"') + "</row>"
FAR_APART: dict[str, list[str | bytes]] = {
    "the last corner": [FIRST, FAR],
    "a row that no sheet has": [FIRST, '<row r="4294967295">' + cell('r="B4294967295"') + "</row>"],
    "cells without a place": [FIRST, '<row r="1048576">' + "<c/>" * 16_000 + cell() + "</row>"],
    "far behind blanks": [FIRST, *[BLANKS] * 65, FAR],
}


@pytest.mark.parametrize("rows", [pytest.param(rows, id=name) for name, rows in FAR_APART.items()])
def test_cells_far_apart_end_in_a_sentence(rows, tmp_path):
    with pytest.raises(UnreadableFile, match=r"far\.xlsx: takes more than 3 GiB of memory .* lie too far apart"):
        read(book(tmp_path / "far.xlsx", rows))


@pytest.mark.parametrize(
    ("rows", "strings"),
    [
        pytest.param([FIRST, *[BLANKS] * 300], [], id="padding"),
        pytest.param([FIRST], [b"<si><t>x</t></si>" * 50_000] * 100, id="shared strings"),
        pytest.param(
            [FIRST, *(f'<row r="{row}"><c r="A{row}" t="s"><v>0</v></c></row>' for row in range(2, 2_000))],
            [b"<si><t>", b"y" * 1_000_000, b"</t></si>"],
            id="a long text that many cells share",
        ),
    ],
)
def test_what_a_workbook_unpacks_to_is_bounded(rows, strings, tmp_path, monkeypatch):
    monkeypatch.setattr(workbook, "MEMORY_BYTES", 256 * 1024**2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UnreadableFile, match=r"packed\.xlsx: takes more than .* GiB of memory"):
        read(book(tmp_path / "packed.xlsx", rows, strings))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024


def test_the_time_for_a_workbook_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(workbook, "SECONDS", 1)
    rows = (f"<row>{cell() * 8}</row>" for _ in range(300_000))
    with pytest.raises(UnreadableFile, match=r"slow\.xlsx: takes more than 1 seconds to read"):
        read(book(tmp_path / "slow.xlsx", rows))


def test_a_large_sheet_is_read(tmp_path):
    rows = [FIRST, '<row r="50000">' + cell('r="Z50000"') + "</row>"]
    assert read(book(tmp_path / "large.xlsx", rows)).lines.tolist() == [50_000]


@pytest.mark.parametrize(
    ("contents", "sentence"),
    [
        (b"a" + b";" * 200_000 + b"\n1;2\n", "has more than 16,384 columns"),
        (b"a;b\n" + b";" * 3_000_000 + b"x\n", "line 2: More cells than headings"),
    ],
)
def test_a_text_file_is_bounded_by_columns(contents, sentence, tmp_path):
    path = tmp_path / "wide.csv"
    path.write_bytes(contents)
    with pytest.raises(UnreadableFile, match=rf"wide\.csv.*{sentence}"):
        read(path)


def test_a_table_is_read_as_a_whole_up_to_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "WHOLE_BYTES", 300_000)
    path = tmp_path / "long.csv"
    path.write_bytes(b"a;b\n1;" + b"x" * 300_000 + b"\n" + b"1;2\n" * 1000)
    with pytest.raises(UnreadableFile, match=r"long\.csv: holds more than 0 MiB of text"):
        read(path)
    monkeypatch.undo()
    assert len(read(path)) == 1001  # one long cell makes no room for as much in every row


@pytest.mark.parametrize(
    ("module", "bound", "name"), [(workbook, "FILE_BYTES", "a.xlsx"), (text_tables, "TEXT_BYTES", "a.csv")]
)
def test_a_file_is_read_up_to_a_size(module, bound, name, tmp_path, monkeypatch):
    path = book(tmp_path / "a.xlsx", [FIRST])
    monkeypatch.setattr(module, bound, 100)
    (tmp_path / "a.csv").write_bytes(b"a;b\n" + b"1;2\n" * 100)
    with pytest.raises(UnreadableFile, match=r"holds more than 0 .iB"):
        read(path.with_name(name))
