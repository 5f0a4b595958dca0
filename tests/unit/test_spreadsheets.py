import openpyxl
import pytest
import xlsxwriter

from toolkit.errors import UnreadableFile
from toolkit.intake.headings import Headings
from toolkit.intake.sources import source_of
from toolkit.intake.tables import open_table, read_table

TEXT = "saleId;cidade\r\n001;São Paulo\r\n\r\n002;\r\n"


def read(path):
    return read_table(path, Headings({}))


def cells(table):
    texts = [column.to_pylist() for column in table.rows.columns]
    return dict(zip(table.headings, texts, strict=True))


def file(folder, contents, name="a.csv"):
    path = folder / name
    path.write_bytes(contents)
    return path


ENCODINGS = {"utf-8": "UTF-8", "utf-8-sig": "UTF-8 with BOM", "cp1252": "Windows-1252", "utf-16": "UTF-16"}


@pytest.mark.parametrize(("encoding", "called"), ENCODINGS.items())
def test_the_encoding_is_found_out(tmp_path, encoding, called):
    table = read(file(tmp_path, TEXT.encode(encoding)))
    assert table.layout.encoding == called
    assert cells(table) == {"saleId": ["001", "002"], "cidade": ["São Paulo", ""]}
    assert table.rows.lines.tolist() == [2, 4]


@pytest.mark.parametrize("delimiter", [";", ",", "\t", "|"])
def test_the_delimiter_is_found_out(tmp_path, delimiter):
    table = read(file(tmp_path, TEXT.replace(";", delimiter).encode()))
    assert table.layout.delimiter == delimiter
    assert table.headings == ("saleId", "cidade")


def test_workbooks_are_read_by_the_type_of_their_cells(tmp_path):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet["B3"], sheet["C3"] = "saleId", "n"
    sheet["B5"], sheet["C5"] = "007", 12.0
    sheet["B6"], sheet["C6"] = 8, 1.25
    book.save(tmp_path / "a.xlsx")
    table = read(tmp_path / "a.xlsx")
    assert cells(table) == {"saleId": ["007", "8"], "n": ["12", "1.25"]}
    assert table.rows.lines.tolist() == [5, 6]
    assert str(table.layout) == "workbook, sheet “Sheet”, headings on line 3"


def test_a_workbook_may_have_rows_of_white_space(tmp_path):
    book = openpyxl.Workbook()
    for row in (["saleId", "cidade"], ["1", "São Paulo"], [" ", None], ["\u00a0", "\u200b"], [0, None]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    table = read(tmp_path / "a.xlsx")
    assert cells(table) == {"saleId": ["1", "0"], "cidade": ["São Paulo", ""]}
    assert table.rows.lines.tolist() == [2, 5]


@pytest.mark.parametrize(
    "contents",
    [
        "nome\nÂngela\n".encode("utf-8-sig") + "João\n".encode("cp1252"),
        "nome\nConceição\n".encode() + "João\n".encode("cp1252"),
        "nome\nConceição\nJoã".encode()[:-1],
    ],
)
def test_what_is_only_partly_utf8_is_not_read_as_something_else(tmp_path, contents):
    path = file(tmp_path, contents)
    with pytest.raises(UnreadableFile, match=r"a\.csv: is partly UTF-8 and partly not; save it"):
        read(path)


def test_of_several_sheets_with_the_headings_a_person_chooses(tmp_path):
    with xlsxwriter.Workbook(str(tmp_path / "a.xlsx")) as book:
        for name in ("janeiro", "fevereiro"):
            book.add_worksheet(name).write_row(0, 0, ["saleId", "cidade"])
    source = source_of(tmp_path / "a.xlsx")
    with pytest.raises(
        UnreadableFile, match=r"“janeiro”, “fevereiro” all have the headings; choose one by --sheet"
    ):
        open_table(source, lambda cells: {"saleId", "cidade"} <= set(cells))
    assert open_table(source, sheet="fevereiro").layout.sheet == "fevereiro"
    with pytest.raises(UnreadableFile, match=r"has no sheet “março”; there are “janeiro”, “fevereiro”"):
        open_table(source, sheet="março")


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "the file is empty"),
        (b" \r\n \r\n", "the file is empty"),
        (
            b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9,
            "is no text that can be read; save the table as CSV in UTF-8",
        ),
        (b"PK\x03\x04 cut off", "no workbook that can be read"),
        (b"\x1f\x8b cut off", "is compressed; unpack it first"),
        (b"\xd0\xcf\x11\xe0 cut off", "no workbook that can be read"),
        (b"a;b\n1;2;3\n", "line 2: More cells than headings"),
        (b'a;b\n1;"2\n', "line 2: The quotation marks of this line do not match"),
        (b"a;b\n\x81;1\n", "is no text that can be read"),
        ("a;b\n1;é\n".encode("utf-16-le"), "is no text that can be read"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_sentence(tmp_path, contents, message):
    with pytest.raises(UnreadableFile, match=message):
        read(file(tmp_path, contents))
