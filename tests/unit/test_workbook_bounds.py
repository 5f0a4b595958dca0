"""No workbook and no text file takes more memory or time than stated, whoever made it."""

import io
import resource
import zipfile

import pytest
import xlsxwriter

from toolkit.errors import UnreadableFile
from toolkit.intake import tables
from toolkit.intake import workbooks as workbook
from toolkit.intake.headings import Headings
from toolkit.intake.tables import read_table

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
FIRST = '<row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c></row>'
BLANKS = b" " * 1_000_000


def read(path):
    return read_table(path, Headings({})).rows


def cell(place=""):
    return f'<c {place} t="inlineStr"><is><t>x</t></is></c>'


def book(path, rows, strings=()):
    """A workbook with these parts between the tags of its sheet and of its shared strings."""
    made = io.BytesIO()
    with xlsxwriter.Workbook(made) as written:
        written.add_worksheet("clientes").write_string(0, 0, "a")
    parts = {
        "sheet1.xml": ("worksheet", "<sheetData>", rows, "</sheetData>"),
        "sharedStrings.xml": ("sst", "", strings, ""),
    }
    with zipfile.ZipFile(made) as given, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in given.namelist():
            root, start, inside, end = parts.get(name.rpartition("/")[2], ("", "", [given.read(name)], ""))
            with archive.open(name, "w", force_zip64=True) as part:
                for text in (
                    f'<{root} xmlns="{MAIN}">{start}' * bool(root),
                    *inside,
                    f"{end}</{root}>" * bool(root),
                ):
                    part.write(text if isinstance(text, bytes) else text.encode())
    return path


FAR = '<row r="1048576">' + cell('r="XFD1048576"') + "</row>"
FAR_APART = {
    "the last corner": [FIRST, FAR],
    "a row that no sheet has": [FIRST, '<row r="4294967295">' + cell('r="B4294967295"') + "</row>"],
    "cells without a place": [FIRST, '<row r="1048576">' + "<c/>" * 16_000 + cell() + "</row>"],
    "far behind blanks": [FIRST, *[BLANKS] * 65, FAR],
}


@pytest.mark.parametrize("rows", FAR_APART.values(), ids=FAR_APART)
def test_cells_far_apart_end_in_a_sentence(rows, tmp_path):
    with pytest.raises(UnreadableFile, match=r"far\.xlsx: takes more than 3 GiB of memory .* lie too far apart"):
        read(book(tmp_path / "far.xlsx", rows))


SHARING = '<row r="{0}"><c r="A{0}" t="s"><v>0</v></c></row>'


@pytest.mark.parametrize(
    ("rows", "strings"),
    [
        ([FIRST, *[BLANKS] * 300], []),
        ([FIRST], [b"<si><t>x</t></si>" * 50_000] * 100),
        ([FIRST, *map(SHARING.format, range(2, 2_000))], [b"<si><t>", b"y" * 1_000_000, b"</t></si>"]),
    ],
    ids=["padding", "shared strings", "a long text that many cells share"],
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
    ("module", "bound", "name"), [(workbook, "FILE_BYTES", "a.xlsx"), (tables, "TEXT_BYTES", "a.csv")]
)
def test_a_file_is_read_up_to_a_size(module, bound, name, tmp_path, monkeypatch):
    path = book(tmp_path / "a.xlsx", [FIRST])
    monkeypatch.setattr(module, bound, 100)
    (tmp_path / "a.csv").write_bytes(b"a;b\n" + b"1;2\n" * 100)
    with pytest.raises(UnreadableFile, match=r"holds more than 0 .iB"):
        read(path.with_name(name))
