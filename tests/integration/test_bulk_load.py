from __future__ import annotations

import gzip
import re
import stat
import threading
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import sqlalchemy as sa
import xlsxwriter

from tests.client_rows import FIELDS, body, client, cpf, read_csv, write_csv
from toolkit.errors import InvalidInput, UnreadableFile
from toolkit.operations.register.bulk_load import LoadOptions, LoadResult, OnDuplicate, load_clients
from toolkit.operations.register.registration import register_client
from toolkit.storage.database import Database
from toolkit.storage.tables import addresses, clients, load_batches

Loads = Callable[..., LoadResult]


@pytest.fixture
def load(database: Database, clock: Any, tmp_path: Path) -> Loads:
    def load(*files: Path, dry_run: bool = False, **options: Any) -> LoadResult:
        return load_clients(
            database, files, out=tmp_path / "out", dry_run=dry_run, options=LoadOptions(**options), clock=clock
        )

    return load


def registered(database: Database) -> list[dict[str, Any]]:
    query = sa.select(clients, addresses).join(addresses, addresses.c.client_id == clients.c.id)
    with database.transaction() as connection:
        return [dict(row) for row in connection.execute(query.order_by(clients.c.cpf)).mappings()]


def counts(result: LoadResult) -> tuple[int, int, int]:
    return result.accepted, result.rejected, result.skipped


def test_accepted_rows_are_registered_as_one_by_one(database: Database, load: Loads, clock: Any, tmp_path: Path):
    row = client(1, cpf="  529.982.247-25", email="Ana@EXAMPLE.com", phoneNumber="", rg="12")
    result = load(write_csv(tmp_path / "a.csv", [row]))
    register_client(database, body(row), clock)

    assert counts(result) == (1, 0, 0)
    loaded, alone = registered(database)
    different = {name for name in loaded if loaded[name] != alone[name]}
    assert different == {"id", "id_1", "client_id"}
    assert loaded["created_at"] == clock.now


@pytest.mark.parametrize("name", ["\\", "\\N", "\\.", "a\\tb", 'Ana "Nina"', "a,b;c|d", "\\\\x01", "😀"])
def test_names_reach_the_database_as_they_are_written(database: Database, load: Loads, tmp_path: Path, name: str):
    rows = [client(1, firstName=name, address__city=name), client(2, lastName=name)]
    assert counts(load(write_csv(tmp_path / "a.csv", rows))) == (2, 0, 0)
    first, second = registered(database)
    assert (first["first_name"], first["city"], second["last_name"]) == (name, name, name)


def test_rejected_rows_come_back_untouched_with_line_and_all_reasons(load: Loads, tmp_path: Path):
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


def test_the_workbook_of_rejected_rows_puts_the_reasons_first_and_marks_the_wrong_cells(
    load: Loads, tmp_path: Path
):
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
def test_a_corrected_file_loads_only_what_is_new(database: Database, load: Loads, tmp_path: Path, kind: str):
    wrong = [client(2, firstName="=Ana", cpf="1"), client(3, firstName="'-x", cpf="2")]
    first = load(write_csv(tmp_path / "a.csv", [client(1), *wrong]))
    (rejected,) = [path for path in first.rejected_files if path.suffix == kind]

    corrected = tmp_path / f"corrected{kind}"
    correct(rejected, corrected, {"1": cpf(2), "2": cpf(3)})
    second = load(corrected)

    assert counts(second) == (2, 0, 0)
    assert [row["first_name"] for row in registered(database)] == ["=Ana", "'-x", "Conceição"]


def correct(rejected: Path, corrected: Path, cells: dict[str, str]) -> None:
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


def test_empty_columns_that_a_spreadsheet_adds_change_no_cell(database: Database, load: Loads, tmp_path: Path):
    first = load(write_csv(tmp_path / "a.csv", [client(1, firstName="=Ana", cpf="1")]))
    corrected = tmp_path / "corrected.csv"
    lines = first.rejected_files[0].read_text("utf-8-sig").replace(";1;;", f";{cpf(1)};;").splitlines()
    corrected.write_text("".join(f"{line};;\n" for line in lines), "utf-8")
    assert counts(load(corrected)) == (1, 0, 0)
    assert [row["first_name"] for row in registered(database)] == ["=Ana"]


@pytest.mark.parametrize("kind", [".csv", ".xlsx"])
def test_day_numbers_from_1904_are_the_same_day_in_rejected_rows(
    database: Database, load: Loads, tmp_path: Path, kind: str
):
    book = xlsxwriter.Workbook(str(tmp_path / "1904.xlsx"), {"date_1904": True})
    sheet = book.add_worksheet()
    sheet.write_row(0, 0, FIELDS)
    sheet.write_row(1, 0, list(client(1, cpf="1").values()))
    sheet.write_number(1, FIELDS.index("birthdate"), 29222)
    book.close()
    (rejected,) = [path for path in load(tmp_path / "1904.xlsx").rejected_files if path.suffix == kind]
    corrected = tmp_path / f"corrected{kind}"
    correct(rejected, corrected, {"1": cpf(1)})
    assert counts(load(corrected)) == (1, 0, 0)
    assert [str(row["birthdate"]) for row in registered(database)] == ["1984-01-03"]


def test_the_same_contents_again_change_nothing(database: Database, load: Loads, clock: Any, tmp_path: Path):
    rows = [client(1), client(2), client(3, cpf="0")]
    first = load(write_csv(tmp_path / "a.csv", rows), on_duplicate=OnDuplicate.REGISTER)
    again = load(write_csv(tmp_path / "copy.csv", rows), on_duplicate=OnDuplicate.REGISTER)

    assert counts(first) == (2, 1, 0)
    assert counts(again) == (0, 1, 2)
    assert again.files[0].already_loaded_at == clock.now
    assert len(again.rejected_files) == 2
    assert len(registered(database)) == 2


def test_a_client_who_is_registered_already_is_skipped_and_listed(
    database: Database, load: Loads, clock: Any, tmp_path: Path
):
    known = register_client(database, body(client(1)), clock)
    elsewhere = client(1, address__installationNumber="9999999")
    result = load(write_csv(tmp_path / "a.csv", [client(2), client(1), elsewhere, client(2)]))

    assert counts(result) == (2, 0, 2)
    skipped = result.files[0].skipped_file
    assert skipped is not None
    assert stat.S_IMODE(skipped.stat().st_mode) == 0o600
    ids = {row["cpf"]: str(row["client_id"]) for row in registered(database)}
    assert read_csv(skipped) == [
        {"line": "3", "clientId": str(known.client_id)},
        {"line": "5", "clientId": ids[client(2)["cpf"]]},
    ]


@pytest.mark.parametrize(
    ("choice", "expected"), [("skip", (1, 0, 2)), ("reject", (1, 2, 0)), ("register", (3, 0, 0))]
)
def test_duplicates_are_what_the_analyst_says(
    database: Database, load: Loads, clock: Any, tmp_path: Path, choice: str, expected: tuple[int, int, int]
):
    known = register_client(database, body(client(1)), clock)
    rows = write_csv(tmp_path / "a.csv", [client(1), client(2), client(2)])
    assert counts(load(rows, on_duplicate=OnDuplicate(choice), dry_run=True)) == expected
    result = load(rows, on_duplicate=OnDuplicate(choice))

    assert counts(result) == expected
    assert len(registered(database)) == 1 + expected[0]
    if choice == "reject":
        errors = [row["errors"] for row in read_csv(result.rejected_files[0])]
        assert errors[0] == f"row: Registered already, clientId {known.client_id}"
        assert result.reasons == {"row: Registered already": 2}


def test_keys_that_share_a_hash_are_told_apart(
    database: Database, load: Loads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    import numpy as np

    from toolkit.operations.register.bulk_load import registering

    monkeypatch.setattr(registering, "hash_keys", lambda settled: np.ones(len(settled["cpf"]), np.uint64))
    result = load(write_csv(tmp_path / "a.csv", [client(1), client(2), client(1), client(3)]))

    assert counts(result) == (3, 0, 1)
    assert len(registered(database)) == 3


def test_a_dry_run_tells_all_and_writes_nothing_to_the_database(database: Database, load: Loads, tmp_path: Path):
    source = write_csv(tmp_path / "a.csv", [client(1), client(2, cpf="0"), client(1)])
    tried = load(source, dry_run=True)

    assert counts(tried) == (1, 1, 1)
    assert tried.dry_run
    assert len(tried.rejected_files) == 2
    assert registered(database) == []
    with database.transaction() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(load_batches)) == 0
    assert counts(load(source)) == (1, 1, 1)


def test_a_dry_run_of_several_files_tells_what_loading_them_would(load: Loads, tmp_path: Path):
    first = write_csv(tmp_path / "a.csv", [client(1), client(2)])
    second = write_csv(tmp_path / "b.csv", [client(3), client(2), client(1)])
    tried = load(first, second, dry_run=True)
    assert [file.tally.skipped for file in tried.files] == [0, 2]
    assert counts(tried) == counts(load(first, second)) == (3, 0, 2)


def test_two_people_who_load_the_same_file_register_it_once(database: Database, load: Loads, tmp_path: Path):
    source = write_csv(tmp_path / "a.csv", [client(number) for number in range(500)])
    results: list[LoadResult] = []
    people = [threading.Thread(target=lambda: results.append(load(source))) for _ in range(2)]
    for person in people:
        person.start()
    for person in people:
        person.join()

    assert sorted(map(counts, results)) == [(0, 0, 500), (500, 0, 0)]
    assert len(registered(database)) == 500


def test_a_folder_that_another_load_clears_away_too_soon_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from toolkit.operations import private_folder

    made: list[str] = []
    make = private_folder.tempfile.mkdtemp

    def make_and_lose(**named: Any) -> str:
        made.append(make(**named))
        if len(made) == 1:
            private_folder._remove_leftovers(tmp_path)
        return made[-1]

    monkeypatch.setattr(private_folder.tempfile, "mkdtemp", make_and_lose)
    folder = private_folder.PrivateFolder(tmp_path)
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    private_folder._remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == [folder.path]
    folder.remove()
    assert list(tmp_path.iterdir()) == []


def test_one_unreadable_file_is_named_and_the_others_are_loaded(database: Database, load: Loads, tmp_path: Path):
    good = write_csv(tmp_path / "a.csv", [client(1)])
    bad = write_csv(tmp_path / "b.csv", [client(2)], headings=["x" * (n + 1) for n in range(len(FIELDS))])
    result = load(good, bad)
    assert [row["cpf"] for row in registered(database)] == [client(1)["cpf"]]
    (sentence,) = result.unreadable
    assert re.match(r"b\.csv: no heading for cpf, .*No heading on line 1 is known.*--map", sentence)
    with pytest.raises(UnreadableFile, match=r"^b\.csv: no heading for cpf"):
        load(bad)


def test_a_damaged_workbook_in_a_folder_is_named_and_the_others_are_loaded(
    database: Database, load: Loads, tmp_path: Path
):
    write_csv(tmp_path / "a.csv", [client(1)])
    (tmp_path / "b.xlsx").write_bytes(b"PK\x03\x04 and no more")
    result = load(tmp_path, tmp_path / "none.csv")
    assert [row["cpf"] for row in registered(database)] == [client(1)["cpf"]]
    assert [re.sub(r".*/", "", sentence) for sentence in result.unreadable] == [
        "b.xlsx: the file is damaged or incomplete; ask for it again.",
        "none.csv: no such file.",
    ]


def test_headings_as_distributors_write_them_are_understood(database: Database, load: Loads, tmp_path: Path):
    written = {
        "cpf": "CPF/CNPJ",
        "numberOnDealership": "Cód. Cliente Distribuidora",
        "birthdate": "Dt. Nasc.",
        "address.installationNumber": "Nº Instalação",
    }
    headings = [written.get(name, name) for name in FIELDS]
    assert counts(load(write_csv(tmp_path / "a.csv", [client(1)], headings=headings))) == (1, 0, 0)


def test_a_whole_name_is_asked_back_and_never_guessed_apart(load: Loads, tmp_path: Path):
    headings = [{"firstName": "Nome completo", "lastName": "x"}.get(name, name) for name in FIELDS]
    with pytest.raises(UnreadableFile, match="Nome completo holds the first and the last name together"):
        load(write_csv(tmp_path / "a.csv", [client(1)], headings=headings))


def test_the_number_of_a_consumer_unit_is_rejected_with_a_reason_of_its_own(load: Loads, tmp_path: Path):
    rows = [
        client(1, address__installationNumber="123456789012345"),
        client(2, address__installationNumber="1" * 12),
    ]
    result = load(write_csv(tmp_path / "a.csv", rows))
    reasons = list(result.reasons)
    assert "15 digits; the installation number of 7 to 11 characters is wanted" in reasons[0]
    assert "Must have 7 to 11 characters" in reasons[1]


def test_a_file_without_headings_is_refused_without_quoting_its_first_person(load: Loads, tmp_path: Path):
    people = tmp_path / "people.csv"
    people.write_text("Nome;Maria da Silva;529.982.247-25;maria@example.com\n;;;\n", encoding="utf-8")
    with pytest.raises(UnreadableFile, match=r"Found on line 1: Nome\. Rename"):
        load(people)


def test_several_files_count_together(load: Loads, tmp_path: Path):
    folder = tmp_path / "in"
    folder.mkdir()
    write_csv(folder / "a.csv", [client(1), client(2, cpf="0")])
    write_csv(folder / "b.csv", [client(1), client(3)], delimiter=",", encoding="utf-16")
    result = load(folder)

    assert counts(result) == (2, 1, 1)
    assert [file.source for file in result.files] == ["a.csv", "b.csv"]


def test_files_of_the_same_name_leave_each_other_their_rejected_rows(load: Loads, tmp_path: Path):
    for number, folder in enumerate(("norte", "sul")):
        (tmp_path / folder).mkdir()
        write_csv(tmp_path / folder / "a.csv", [client(number, cpf="0")])
    result = load(tmp_path / "norte", tmp_path / "sul")
    rejected = [path for path in result.rejected_files if path.suffix == ".csv"]
    assert [path.name for path in rejected] == ["norte.a.csv.rejected.csv", "sul.a.csv.rejected.csv"]
    assert [read_csv(path)[0]["externalId"] for path in rejected] == ["P-0", "P-1"]


def test_warnings_are_reported_and_rejected_only_on_request(load: Loads, tmp_path: Path):
    rows = [
        client(1, phoneNumber="20987654321"),
        client(2, address__zipCode="78950000", birthdate="2090-01-01"),
        client(3, birthdate="1880-01-01"),
        client(4, numberOnDealership="1,23457E+10"),
    ]
    source = write_csv(tmp_path / "a.csv", rows)
    told = load(source, dry_run=True)
    assert counts(told) == (4, 0, 0)
    assert told.warnings == {
        "AREA_CODE_UNKNOWN": 1,
        "CEP_UNASSIGNED": 1,
        "BIRTHDATE_IN_FUTURE": 1,
        "BIRTHDATE_TOO_OLD": 1,
        "NUMBER_ROUNDED": 1,
    }
    strict = load(source, warnings_as_errors=True)
    assert counts(strict) == (0, 4, 0)
    assert read_csv(strict.rejected_files[0])[1]["errors"] == (
        "address.zipCode: lies in a range that is not assigned; birthdate: lies in the future"
    )


@pytest.mark.parametrize(
    ("repair", "cells"),
    [
        ("white_space", {"numberOnDealership": "\u00a0D1\u200b "}),
        ("white_space", {"birthdate": "1980-\u200b01-02"}),
        ("cpf_mask", {"cpf": "529.982.247-25"}),
        ("cep_mask", {"address__zipCode": "01310-100"}),
        ("cep_mask", {"address__zipCode": "01.310-100"}),
        ("phone_mask", {"phoneNumber": "(11) 98765-4321"}),
        ("phone_country_code", {"phoneNumber": "+5511987654321"}),
        ("date_day_first", {"birthdate": "02/01/1980"}),
        ("date_midnight", {"birthdate": "1980-01-02 00:00:00"}),
        ("excel_date", {"birthdate": "29222"}),
    ],
)
def test_each_repair_is_counted_and_can_be_switched_off(
    database: Database, load: Loads, tmp_path: Path, repair: str, cells: dict[str, str]
):
    source = write_csv(tmp_path / "a.csv", [client(1, **cells)])
    strict = load(source, strict=True, dry_run=True)
    repaired = load(source)

    assert strict.repairs == {}
    # What the contract accepts as it stands is no matter of repairs.
    by_itself = (
        "numberOnDealership" in cells or repair == "cpf_mask" or cells.get("address__zipCode") == "01310-100"
    )
    assert counts(strict) == ((1, 0, 0) if by_itself else (0, 1, 0))
    assert counts(repaired) == (1, 0, 0)
    assert repaired.repairs == {repair: 1}
    if "birthdate" in cells:
        assert [str(row["birthdate"]) for row in registered(database)] == ["1980-01-02"]


def test_zeros_lost_in_a_text_come_back_only_on_request(database: Database, load: Loads, tmp_path: Path):
    source = write_csv(tmp_path / "a.csv", [client(1, cpf="191", address__zipCode="1310100")])
    assert counts(load(source)) == (0, 1, 0)
    padded = load(source, pad_cpf=True)
    assert counts(padded) == (1, 0, 0)
    assert padded.repairs == {"cpf_zeros": 1, "cep_zeros": 1}
    assert [(row["cpf"], row["zip_code"]) for row in registered(database)] == [("00000000191", "01310100")]


def test_zeros_and_day_numbers_of_number_cells_come_back(database: Database, load: Loads, tmp_path: Path):
    for name, epoch in (("1900.xlsx", False), ("1904.xlsx", True)):
        book = xlsxwriter.Workbook(str(tmp_path / name), {"date_1904": epoch})
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, FIELDS)
        sheet.write_row(1, 0, list(client(1, enrollment=name).values()))
        sheet.write_number(1, FIELDS.index("cpf"), 191)
        sheet.write_number(1, FIELDS.index("address.zipCode"), 1310100)
        sheet.write_number(1, FIELDS.index("birthdate"), 29222)
        book.close()
        result = load(tmp_path / name, on_duplicate=OnDuplicate.REGISTER)
        assert counts(result) == (1, 0, 0)
        assert result.repairs == {"cpf_zeros": 1, "cep_zeros": 1, "excel_date": 1}
    assert {
        (row["enrollment"], row["cpf"], row["zip_code"], str(row["birthdate"])) for row in registered(database)
    } == {
        ("1900.xlsx", "00000000191", "01310100", "1980-01-02"),
        ("1904.xlsx", "00000000191", "01310100", "1984-01-03"),
    }


def test_an_error_of_a_formula_is_no_blank_cell(load: Loads, tmp_path: Path):
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


def test_archives_are_loaded_as_what_they_hold(database: Database, load: Loads, tmp_path: Path):
    plain = write_csv(tmp_path / "a.csv", [client(1), client(2, cpf="0")])
    packed = tmp_path / "b.csv.gz"
    packed.write_bytes(gzip.compress(write_csv(tmp_path / "b.csv", [client(3)]).read_bytes()))
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        archive.write(plain, "janeiro/a.csv")
        archive.write(write_csv(tmp_path / "d.csv", [client(4)]), "d.csv")
    result = load(packed, tmp_path / "c.zip")

    assert counts(result) == (3, 1, 0)
    assert result.rejected_files[0].name == "c.zip.janeiro.a.csv.rejected.csv"
    again = load(plain)  # the same contents as in the archive
    assert again.files[0].already_loaded_at is not None
    assert len(registered(database)) == 3


def test_the_examples_are_the_first_rows_with_a_reason(load: Loads, tmp_path: Path):
    rows = [client(n, address__zipCode="1", cpf="1" if n > 3 else client(n)["cpf"]) for n in range(8)]
    result = load(write_csv(tmp_path / "a.csv", rows))
    assert {tuple(item.line for item in found) for found in result.examples.values()} == {(2, 3, 4), (6, 7, 8)}


def test_examples_are_masked(load: Loads, tmp_path: Path):
    result = load(write_csv(tmp_path / "a.csv", [client(1, cpf="12345678900", address__neighborhood="Qx")]))
    shown = {reason.partition(":")[0]: found for reason, found in result.examples.items()}
    assert [(item.line, item.value) for item in shown["cpf"]] == [(2, "***.456.789-**")]
    assert [item.value for item in shown["address.neighborhood"]] == ["Q..."]


def test_a_folder_that_cannot_be_written_is_named_before_anything_is_registered(
    database: Database, clock: Any, tmp_path: Path
):
    source = write_csv(tmp_path / "a.csv", [client(1), client(2, cpf="0")])
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="--out"):
        load_clients(database, [source], out=tmp_path / "file" / "out", clock=clock)
    assert registered(database) == []


def test_a_file_that_changes_while_it_is_read_is_not_loaded(
    database: Database, load: Loads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from toolkit.operations.register.bulk_load import loads

    source = write_csv(tmp_path / "a.csv", [client(1)])
    judged = loads.decide

    def decide_while_somebody_saves(*arguments: Any) -> Any:
        write_csv(source, [client(1), client(2)])
        return judged(*arguments)

    monkeypatch.setattr(loads, "decide", decide_while_somebody_saves)
    with pytest.raises(UnreadableFile, match="was changed while it was read"):
        load(source)
    assert registered(database) == []


def test_what_killed_loads_left_is_removed(load: Loads, tmp_path: Path):
    leftover = tmp_path / "out" / ".toolkit-draft-abc"
    leftover.mkdir(parents=True)
    (leftover / "rejected.csv").write_text("personal data")
    load(write_csv(tmp_path / "a.csv", [client(1, cpf="0")]))
    assert not leftover.exists()


def understood(result: LoadResult) -> Sequence[str]:
    return [str(file.understood) for file in result.files]


def test_what_was_understood_is_told(load: Loads, tmp_path: Path):
    headings = [f"Coluna {name}" if name == "rg" else name for name in FIELDS]
    source = write_csv(tmp_path / "a.csv", [client(1)], headings=headings, delimiter=",", encoding="cp1252")
    (text,) = understood(load(source, dry_run=True))
    assert text.startswith("a.csv: text, Windows-1252, separated by “,”, headings on line 1: externalId, cpf, ")
    assert text.endswith("; not used: Coluna rg")
