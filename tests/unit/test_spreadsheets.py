"""Tables in files as they arrive: their encoding, delimiter and cells, and the bounds of memory and time."""

import io
import resource
import zipfile
from itertools import chain

import openpyxl
import pytest
import xlsxwriter

from toolkit.errors import UnreadableFile
from toolkit.intake import tables
from toolkit.intake import workbooks as workbook
from toolkit.intake.headings import Headings
from toolkit.intake.sources import source_of
from toolkit.intake.tables import IS_ROUNDED, Table

TEXT = "saleId;cidade\r\n001;São Paulo\r\n\r\n002;\r\n"


def read(path, headings=None, sheet=None):
    return Table(source_of(path), headings or Headings({}), sheet)


def lines(table):
    return [line for chunk in table.whole for line in chunk.lines.tolist()]


@pytest.mark.parametrize("delimiter", [";", ",", "\t", "|"])
def test_the_delimiter_is_found_out(tmp_path, delimiter):
    (tmp_path / "a.csv").write_bytes(TEXT.replace(";", delimiter).encode())
    table = read(tmp_path / "a.csv")
    assert table.layout.delimiter == delimiter
    assert table.headings == ("saleId", "cidade")


def test_a_number_whose_last_digits_are_lost_is_no_sale(tmp_path):
    book = openpyxl.Workbook()
    for row in (["saleId", "cidade"], [123456789012345, ""], [1234567890123456, ""], ["1,23457E+11", ""]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    bodies = read(tmp_path / "a.xlsx", Headings({"saleId": ()})).bodies()
    assert [str(body["saleId"]) for _, body in bodies] == ["123456789012345", IS_ROUNDED, IS_ROUNDED]


def test_a_workbook_whose_errors_of_formulas_look_empty_is_refused(tmp_path):
    places = " ".join(
        f'xmlns:{each}="urn:oasis:names:tc:opendocument:xmlns:{each}:1.0"' for each in ("office", "table")
    )
    cell = '<table:table-cell office:value-type="string" office:string-value="" calcext:value-type="error"/>'
    with zipfile.ZipFile(tmp_path / "a.ods", "w") as book:
        book.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        book.writestr("META-INF/manifest.xml", "<manifest/>")
        book.writestr(
            "content.xml",
            f'<a {places} xmlns:calcext="c"><office:body><office:spreadsheet><table:table table:name="1">'
            f"<table:table-row>{cell}</table:table-row></table:table></office:spreadsheet></office:body></a>",
        )
    with pytest.raises(UnreadableFile, match="has errors of formulas"):
        read(tmp_path / "a.ods")


def test_a_workbook_may_have_rows_of_white_space(tmp_path):
    book = openpyxl.Workbook()
    for row in (["saleId", "cidade"], ["1", "São Paulo"], [" ", None], ["\u00a0", "\u200b"], [0, None]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    table = read(tmp_path / "a.xlsx")
    assert table.headings == ("saleId", "cidade")
    [chunk] = table.whole
    assert [each.to_pylist() for each in chunk.columns] == [["1", "0"], ["São Paulo", ""]]
    assert lines(table) == [2, 5]


def test_of_several_sheets_with_the_headings_a_person_chooses(tmp_path):
    with xlsxwriter.Workbook(str(tmp_path / "a.xlsx")) as book:
        for name in ("janeiro", "fevereiro"):
            book.add_worksheet(name).write_row(0, 0, ["saleId", "cidade", "CEP"])
    path, known = tmp_path / "a.xlsx", Headings({"saleId": (), "cidade": (), "CEP": ()})
    with pytest.raises(
        UnreadableFile, match=r"“janeiro”, “fevereiro” all have the headings; choose one by --sheet"
    ):
        read(path, known)
    assert read(path, sheet="fevereiro").layout.sheet == "fevereiro"
    with pytest.raises(UnreadableFile, match=r"has no sheet “março”; there are “janeiro”, “fevereiro”"):
        read(path, sheet="março")


MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
FIRST = '<row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c></row>'


def rows_of(path):
    return lines(read(path))


def cell(place=""):
    return f'<c {place} t="inlineStr"><is><t>x</t></is></c>'


def book(path, rows, strings=()):
    """A workbook with these parts between the tags of its sheet and of its shared strings."""
    made = io.BytesIO()
    with xlsxwriter.Workbook(made) as written:
        written.add_worksheet("clientes").write_string(0, 0, "a")
    parts = {
        "sheet1.xml": chain([f'<worksheet xmlns="{MAIN}"><sheetData>'], rows, ["</sheetData></worksheet>"]),
        "sharedStrings.xml": chain([f'<sst xmlns="{MAIN}">'], strings, ["</sst>"]),
    }
    with zipfile.ZipFile(made) as given, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in given.namelist():
            with archive.open(name, "w", force_zip64=True) as part:
                for text in parts.get(name.rpartition("/")[2], [given.read(name)]):
                    part.write(text if isinstance(text, bytes) else text.encode())
    return path


def test_cells_far_apart_end_in_a_sentence(tmp_path):
    far = '<row r="1048576">' + cell('r="XFD1048576"') + "</row>"
    with pytest.raises(UnreadableFile, match=r"far\.xlsx: takes more than 3 GiB of memory .* lie too far apart"):
        rows_of(book(tmp_path / "far.xlsx", [FIRST, far]))


SHARING = '<row r="{0}"><c r="A{0}" t="s"><v>0</v></c></row>'


@pytest.mark.parametrize(
    ("rows", "strings"),
    [
        ([FIRST, *[b" " * 1_000_000] * 300], []),
        ([FIRST], [b"<si><t>x</t></si>" * 50_000] * 100),
        ([FIRST, *map(SHARING.format, range(2, 2_000))], [b"<si><t>", b"y" * 1_000_000, b"</t></si>"]),
    ],
    ids=["padding", "shared strings", "a long text that many cells share"],
)
def test_what_a_workbook_unpacks_to_is_bounded(rows, strings, tmp_path, monkeypatch):
    monkeypatch.setattr(workbook, "MEMORY_BYTES", 256 * 1024**2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UnreadableFile, match=r"packed\.xlsx: takes more than .* GiB of memory"):
        rows_of(book(tmp_path / "packed.xlsx", rows, strings))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024


def test_the_time_for_a_workbook_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(workbook, "SECONDS", 1)
    rows = (f"<row>{cell() * 8}</row>" for _ in range(300_000))
    with pytest.raises(UnreadableFile, match=r"slow\.xlsx: takes more than 1 seconds to read"):
        rows_of(book(tmp_path / "slow.xlsx", rows))


def test_a_large_sheet_is_read(tmp_path):
    rows = [FIRST, '<row r="50000">' + cell('r="Z50000"') + "</row>"]
    assert rows_of(book(tmp_path / "large.xlsx", rows)) == [50_000]


def test_bytes_that_no_longer_fit_the_encoding_are_refused(tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text(TEXT, encoding="utf-8")
    table = Table(source_of(path), Headings({}))
    path.write_text(TEXT, encoding="cp1252")
    with pytest.raises(UnreadableFile, match="is no text that can be read"):
        list(table.chunks())


def test_a_table_is_read_as_a_whole_up_to_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "WHOLE_BYTES", 300_000)
    path = tmp_path / "long.csv"
    path.write_bytes(b"a;b\n1;" + b"x" * 300_000 + b"\n" + b"1;2\n" * 1000)
    with pytest.raises(UnreadableFile, match=r"long\.csv: holds more than 0 MiB of text"):
        rows_of(path)
    monkeypatch.undo()
    assert len(rows_of(path)) == 1001  # one long cell makes no room for as much in every row


@pytest.mark.parametrize(
    ("module", "bound", "name"), [(workbook, "FILE_BYTES", "a.xlsx"), (tables, "TEXT_BYTES", "a.csv")]
)
def test_a_file_is_read_up_to_a_size(module, bound, name, tmp_path, monkeypatch):
    path = book(tmp_path / "a.xlsx", [FIRST])
    monkeypatch.setattr(module, bound, 100)
    (tmp_path / "a.csv").write_bytes(b"a;b\n" + b"1;2\n" * 100)
    with pytest.raises(UnreadableFile, match=r"holds more than 0 .iB"):
        rows_of(path.with_name(name))
