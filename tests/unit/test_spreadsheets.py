from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import openpyxl
import pytest
import xlsxwriter

from toolkit.errors import UnreadableFile
from toolkit.intake.sources import Reading, find_sources
from toolkit.intake.tables import open_table, read_table

TEXT = "saleId;cidade\r\n001;São Paulo\r\n\r\n002;\r\n"


def file(folder: Path, contents: bytes, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(contents)
    return path


@pytest.mark.parametrize(
    ("encoding", "called"),
    [
        ("utf-8", "UTF-8"),
        ("utf-8-sig", "UTF-8 with BOM"),
        ("cp1252", "Windows-1252"),
        ("utf-16", "UTF-16"),
    ],
)
def test_the_encoding_is_found_out(tmp_path: Path, encoding: str, called: str):
    table = read_table(file(tmp_path, TEXT.encode(encoding)))
    assert table.layout.encoding == called
    assert table.rows.to_pydict() == {"saleId": ["001", "002"], "cidade": ["São Paulo", ""]}
    assert table.lines.tolist() == [2, 4]


@pytest.mark.parametrize("delimiter", [";", ",", "\t", "|"])
def test_the_delimiter_is_found_out(tmp_path: Path, delimiter: str):
    table = read_table(file(tmp_path, TEXT.replace(";", delimiter).encode()))
    assert table.layout.delimiter == delimiter
    assert table.rows.column_names == ["saleId", "cidade"]


def test_a_person_may_know_better(tmp_path: Path):
    path = file(tmp_path, "a;b,c\n1;2,3é\n".encode("cp1252"))
    table = read_table(path, Reading(encoding="cp1252", delimiter=","))
    assert table.rows.to_pydict() == {"a;b": ["1;2"], "c": ["3é"]}
    assert str(table.layout) == "text, cp1252, separated by “,”, headings on line 1"


def test_the_digest_is_of_what_is_inside(tmp_path: Path):
    plain = file(tmp_path, TEXT.encode())
    packed = file(tmp_path, gzip.compress(TEXT.encode()), "a.csv.gz")
    assert read_table(plain).layout.sha256 == read_table(packed).layout.sha256


def test_folders_and_archives_stand_for_what_is_in_them(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        for name in ("x/b1.csv", "b2.TXT", "__MACOSX/._b1.csv", "photo.jpg"):
            archive.writestr(name, TEXT)
    file(tmp_path, TEXT.encode())
    (tmp_path / "sub").mkdir()
    for name in ("sub/c.csv", ".hidden.csv", "~$open.xlsx", "a.csv.rejected.csv", "a.csv.skipped.csv", "notes.md"):
        file(tmp_path, TEXT.encode(), name)
    sources = find_sources([tmp_path, tmp_path / "a.csv"])
    assert [source.name for source in sources] == ["a.csv", "b.zip/b2.TXT", "b.zip/x/b1.csv", "c.csv"]
    assert [source.flat_name for source in sources] == ["a.csv", "b.zip.b2.TXT", "b.zip.x.b1.csv", "c.csv"]
    assert [len(next(open_table(source).chunks())) for source in sources] == [2, 2, 2, 2]


def test_workbooks_are_read_by_the_type_of_their_cells(tmp_path: Path):
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet["B3"], sheet["C3"] = "saleId", "n"
    sheet["B5"], sheet["C5"] = "007", 12.0
    sheet["B6"], sheet["C6"] = 8, 1.25
    book.save(tmp_path / "a.xlsx")
    table = read_table(tmp_path / "a.xlsx")
    assert table.rows.to_pydict() == {"saleId": ["007", "8"], "n": ["12", "1.25"]}
    assert table.lines.tolist() == [5, 6]
    assert str(table.layout) == "workbook, sheet “Sheet”, headings on line 3"


def test_a_workbook_may_be_packed_and_have_rows_of_white_space(tmp_path: Path):
    book = openpyxl.Workbook()
    for row in (["saleId", "cidade"], ["1", "São Paulo"], [" ", None], ["\u00a0", "\u200b"], [0, None]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    packed = file(tmp_path, gzip.compress((tmp_path / "a.xlsx").read_bytes()), "a.xlsx.gz")
    table = read_table(packed)
    assert table.rows.to_pydict() == {"saleId": ["1", "0"], "cidade": ["São Paulo", ""]}
    assert table.lines.tolist() == [2, 5]


@pytest.mark.parametrize(
    "contents",
    [
        "nome\nÂngela\n".encode("utf-8-sig") + "João\n".encode("cp1252"),
        "nome\nConceição\n".encode() + "João\n".encode("cp1252"),
        "nome\nConceição\nJoã".encode()[:-1],
    ],
)
def test_what_is_only_partly_utf8_is_not_read_as_something_else(tmp_path: Path, contents: bytes):
    path = file(tmp_path, contents)
    with pytest.raises(UnreadableFile, match=r"a\.csv: is partly UTF-8 and partly not; .*--encoding"):
        read_table(path)
    assert len(read_table(path, Reading(encoding="cp1252")).rows)  # when a person says so


def two_sheets(path: Path) -> Path:
    book = xlsxwriter.Workbook(str(path))
    for name in ("janeiro", "fevereiro"):
        book.add_worksheet(name).write_row(0, 0, ["saleId", "cidade"])
    book.close()
    return path


def wants_both(cells: object) -> bool:
    return isinstance(cells, (list, tuple)) and {"saleId", "cidade"} <= set(cells)


def test_of_several_sheets_with_the_headings_a_person_chooses(tmp_path: Path):
    (source,) = find_sources([two_sheets(tmp_path / "a.xlsx")])
    with pytest.raises(
        UnreadableFile, match=r"“janeiro”, “fevereiro” all have the headings; choose one by --sheet"
    ):
        open_table(source, Reading(recognises=wants_both))
    assert open_table(source, Reading(sheet="fevereiro")).layout.sheet == "fevereiro"
    with pytest.raises(UnreadableFile, match=r"has no sheet “março”; there are “janeiro”, “fevereiro”"):
        open_table(source, Reading(sheet="março"))


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "the file is empty"),
        (b" \r\n \r\n", "the file is empty"),
        (
            b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9,
            "is not text in Windows-1252; save it as CSV in UTF-8 or as XLSX",
        ),
        (b"PK\x03\x04 cut off", "damaged or incomplete"),
        (b"\x1f\x8b cut off", "archive is damaged"),
        (b"\xd0\xcf\x11\xe0 cut off", "no workbook that can be read"),
        (b"a;b\n1;2;3\n", "line 2: More cells than headings"),
        (b'a;b\n1;"2\n', "line 2: The quotation marks of this line do not match"),
        (b"a;a\n1;2\n", "a heading stands there twice"),
        (b"a;b\n\x81;1\n", "is not text in Windows-1252"),
        ("a;b\n1;é\n".encode("utf-16-le"), "is not text in Windows-1252"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_sentence(tmp_path: Path, contents: bytes, message: str):
    with pytest.raises(UnreadableFile, match=message):
        read_table(file(tmp_path, contents))


def test_a_wrong_override_is_named(tmp_path: Path):
    path = file(tmp_path, "a;b\n1;é\n".encode("cp1252"))
    with pytest.raises(UnreadableFile, match="is not text in utf-8"):
        read_table(path, Reading(encoding="utf-8"))
    with pytest.raises(UnreadableFile, match="No such encoding: klingon"):
        read_table(path, Reading(encoding="klingon"))
    with pytest.raises(UnreadableFile, match="No such encoding: base64"):
        read_table(path, Reading(encoding="base64"))
    with pytest.raises(UnreadableFile, match="delimiter must be a single character"):
        read_table(path, Reading(delimiter="::"))


def test_a_zip_with_a_password_is_named(tmp_path: Path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", TEXT)
    locked = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(signature) + offset] |= 1  # the flag of an encrypted member
    path.write_bytes(locked)
    with pytest.raises(UnreadableFile, match="protected by a password"):
        read_table(path)
