"""Rows of clients that are repaired, warned of, or rejected and come back to be corrected."""

import stat

import openpyxl
import pytest
import xlsxwriter

from tests.support.client_rows import FIELDS, client, cpf, read_csv, write_csv
from tests.support.loads import counts, registered
from toolkit.errors import UnreadableFile


def test_rejected_rows_come_back_untouched_with_line_and_all_reasons(load, tmp_path):
    wrong = client(2, cpf="11111111111", firstName="=1+1", email="", address__zipCode="123")
    source = write_csv(tmp_path / "a.csv", [client(1), wrong, client(3)])
    result = load(source)

    assert counts(result) == (2, 1, 0)
    csv_file, workbook = result.rejected_files
    assert [csv_file.name, workbook.name] == ["a.csv.rejected.csv", "a.csv.rejected.xlsx"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in result.rejected_files} == {0o600}
    (row,) = read_csv(csv_file)
    assert row == wrong | {
        "firstName": "'=1+1",  # never run as a formula
        "line": "3",
        "errors": "cpf: Must be a valid CPF: the check digits do not fit; "
        "address.zipCode: Must be a postal code (CEP): 8 digits, or 00000-000",
    }
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [csv_file.name, workbook.name]


def test_the_workbook_of_rejected_rows_puts_the_reasons_first_and_marks_the_wrong_cells(load, tmp_path):
    wrong = [client(2, cpf="11111111111"), client(3, cpf="2", address__zipCode="123")]
    result = load(write_csv(tmp_path / "a.csv", wrong))
    sheet = openpyxl.load_workbook(result.rejected_files[1])["rejected"]
    headings, *rows = sheet.iter_rows()
    assert [cell.value for cell in headings][:4] == ["errors", "line", "externalId", "cpf"]
    marked = [[headings[cell.column - 1].value for cell in row if cell.fill.fill_type == "solid"] for row in rows]
    assert marked == [["cpf"], ["cpf", "address.zipCode"]]
    assert [row[1].value for row in rows] == [2, 3]
    assert sheet.freeze_panes == "C2"
    assert sheet.column_dimensions["A"].width > 40


@pytest.mark.parametrize("kind", [".csv", ".xlsx"])
def test_a_corrected_file_loads_only_what_is_new(database, load, tmp_path, kind):
    wrong = [client(2, firstName="=Ana", cpf="1"), client(3, firstName="'-x", cpf="2")]
    first = load(write_csv(tmp_path / "a.csv", [client(1), *wrong]))
    (rejected,) = [path for path in first.rejected_files if path.suffix == kind]

    corrected = tmp_path / f"corrected{kind}"
    correct(rejected, corrected, {"1": cpf(2), "2": cpf(3)})
    second = load(corrected)

    assert counts(second) == (2, 0, 0)
    assert [row["first_name"] for row in registered(database)] == ["=Ana", "'-x", "Conceição"]


def correct(rejected, corrected, cells):
    """Write other values into single cells, as a person would in a spreadsheet program."""
    if rejected.suffix == ".csv":
        text = rejected.read_text("utf-8")
        for old, new in cells.items():
            text = text.replace(f";{old};;", f";{new};;")
        corrected.write_text(text, "utf-8")
        return
    book = openpyxl.load_workbook(rejected)
    for row in book["rejected"].iter_rows(min_row=2):
        row[3].value = cells[row[3].value]
    book.save(corrected)


def test_zeros_lost_in_a_text_are_not_guessed(load, tmp_path):
    source = write_csv(tmp_path / "a.csv", [client(1, cpf="191", address__zipCode="1310100")])
    assert counts(load(source)) == (0, 1, 0)


def test_a_workbook_that_counts_its_days_from_1904_is_refused(load, tmp_path):
    with xlsxwriter.Workbook(tmp_path / "a.xlsx", {"date_1904": True}) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, FIELDS)
        sheet.write_row(1, 0, list(client(1).values()))
        sheet.write_number(1, FIELDS.index("birthdate"), 29222)
    with pytest.raises(UnreadableFile, match="counts its days from 1904"):
        load(tmp_path / "a.xlsx")


def test_an_error_of_a_formula_is_no_blank_cell(load, tmp_path):
    book = xlsxwriter.Workbook(str(tmp_path / "a.xlsx"))
    sheet = book.add_worksheet("A & B")
    sheet.write_row(1, 1, [*FIELDS, "comissão"])
    for number in range(3):
        sheet.write_row(2 + number, 1, [*client(number).values(), "10"])
    sheet.write_formula(2, 1 + FIELDS.index("email"), "=NA()", None, "#N/A")
    sheet.write_formula(3, 1 + FIELDS.index("firstName"), "=1/0", None, "#DIV/0!")
    sheet.write_formula(4, 1 + len(FIELDS), "=NA()", None, "#N/A")  # in a column that is not loaded
    sheet.write_formula(5, 1 + FIELDS.index("address.city"), "=NA()", None, "#N/A")  # below the table
    book.close()
    result = load(tmp_path / "a.xlsx")

    assert counts(result) == (1, 2, 0)
    assert result.reasons == {
        "email: Holds an error of a formula instead of a value": 1,
        "firstName: Holds an error of a formula instead of a value": 1,
    }
    csv_file, workbook = result.rejected_files
    assert [(row["line"], row["email"], row["firstName"]) for row in read_csv(csv_file)] == [
        ("3", "#N/A", "Conceição"),
        ("4", client(1)["email"], "#DIV/0!"),
    ]
    assert counts(load(workbook)) == (0, 2, 0)
