"""Clients in files are registered as one by one; what is not comes back, what is doubtful is told."""

import json
import os
import stat
from datetime import date, timedelta
from pathlib import Path

import openpyxl
import pytest
import sqlalchemy as sa
import xlsxwriter

from tests.support.client_rows import FIELDS, body, client, read_csv, write_csv
from tests.support.request_bodies import CLIENT, changed
from tests.support.uploaded_sales import execute
from toolkit.database.tables import addresses, clients
from toolkit.errors import InvalidInput, UnreadableFile
from toolkit.intake.clients import load_clients
from toolkit.intake.registration import Likeness, client_quality, register_client
from toolkit.language import language


def registered(database):
    query = sa.select(clients, addresses).join(addresses, addresses.c.client_id == clients.c.id)
    with database.transaction() as connection:
        return [dict(row) for row in connection.execute(query.order_by(clients.c.number_on_dealership)).mappings()]


def counts(result):
    return result.accepted, result.rejected, result.skipped


def test_accepted_rows_are_registered_as_one_by_one(database, load, clock, tmp_path):
    row = client(1, cpf="  529.982.247-25", email="Ana@EXAMPLE.com", phoneNumber="", rg="12")
    result = load(write_csv(tmp_path / "a.csv", [row]))
    register_client(database, body(row))

    assert counts(result) == (1, 0, 0)
    loaded, alone = registered(database)
    different = {name for name in loaded if loaded[name] != alone[name]}
    assert different == {"id", "id_1", "client_id"}
    assert loaded["created_at"] == clock.now


def test_names_reach_the_database_as_they_are_written(database, load, tmp_path):
    names = ["\\", "\\N", "\\.", "a\\tb", 'Ana "Nina"', "a,b;c|d", "\\\\x01", "😀"]
    people = [client(n, firstName=name, lastName=name, address__city=name) for n, name in enumerate(names)]
    assert counts(load(write_csv(tmp_path / "a.csv", people))) == (len(names), 0, 0)
    stored = sorted((row["first_name"], row["last_name"], row["city"]) for row in registered(database))
    assert stored == sorted((name,) * 3 for name in names)


def test_a_client_who_is_registered_already_is_skipped_and_listed_by_the_first_id(database, load, clock, tmp_path):
    known = register_client(database, body(client(1)))
    clock.now += timedelta(days=1)
    register_client(database, body(client(1)))
    elsewhere = client(1, address__installationNumber="9999999")
    result = load(write_csv(tmp_path / "a.csv", [client(2), client(1), elsewhere, client(2)]))

    assert counts(result) == (2, 0, 2)
    skipped = result.files[0].skipped_file
    assert stat.S_IMODE(skipped.stat().st_mode) == 0o600
    ids = {row["cpf"]: str(row["client_id"]) for row in registered(database)}
    assert read_csv(skipped) == [
        {"line": "3", "clientId": str(known.client_id)},
        {"line": "5", "clientId": ids[client(2)["cpf"]]},
    ]


def test_rows_that_the_service_refuses_are_tried_again_by_the_next_load(database, load, tmp_path):
    of_open_savepoints = "FROM pg_locks WHERE locktype = 'transactionid' AND pid = pg_backend_pid()"
    execute(
        database,
        f"CREATE FUNCTION few() RETURNS bool LANGUAGE sql AS $$ SELECT count(*) < 9 {of_open_savepoints} $$",
        "ALTER TABLE addresses ADD CONSTRAINT few_locks CHECK (few())",
        "ALTER TABLE addresses ADD CONSTRAINT not_here CHECK (city <> 'Here')",
    )
    file = write_csv(tmp_path / "a.csv", [client(n, address__city="Here" if n else "Recife") for n in range(20)])
    refused = load(file)
    assert (counts(refused), refused.reasons) == ((1, 19, 0), {"row: Breaks a rule of the service (not_here)": 19})
    execute(database, "ALTER TABLE addresses DROP CONSTRAINT not_here")
    assert counts(load(file)) == (19, 0, 1)
    assert counts(load(file)) == (0, 0, 20)


def test_the_workbook_of_rejected_rows_puts_the_reasons_first_and_marks_the_wrong_cells(load, tmp_path):
    wrong = [client(2, cpf="11111111111"), client(3, cpf="2", address__zipCode="123")]
    table, workbook = load(write_csv(tmp_path / "a.csv", wrong), language=language("pt-BR")).rejected_files
    sheet = openpyxl.load_workbook(workbook)["rejected"]
    headings, *rows = sheet.iter_rows()
    assert rows[0][0].value == "cpf: Deve ser um CPF válido: os dígitos verificadores não conferem"
    assert read_csv(table)[0]["errors"] == "cpf: Must be a valid CPF: the check digits do not fit"  # for programs
    assert [cell.value for cell in headings][:4] == ["errors", "line", "externalId", "cpf"]
    marked = [[headings[cell.column - 1].value for cell in row if cell.fill.fill_type == "solid"] for row in rows]
    assert marked == [["cpf"], ["cpf", "address.zipCode"]]
    assert [row[1].value for row in rows] == [2, 3]
    assert sheet.freeze_panes == "C2"
    assert sheet.column_dimensions["A"].width > 40


def test_a_row_whose_cells_cannot_be_told_apart_is_rejected_again_as_it_is(load, tmp_path):
    head, row, end = write_csv(tmp_path / "a.csv", [client(1)]).read_text("utf-8").split("\n")
    (tmp_path / "a.csv").write_text("\n".join([head, row + ";fundos", row.replace("Con", '"Con'), end]), "utf-8")
    (path,) = (each for each in load(tmp_path / "a.csv").rejected_files if each.suffix == ".csv")
    assert counts(load(path)) == (0, 2, 0)


@pytest.mark.parametrize("error", [" #N/A ", "#N/DISP", "Err:502", "#DESPEJAR!", "########"])
def test_an_error_of_any_program_is_no_name(load, error, tmp_path):
    result = load(write_csv(tmp_path / "a.csv", [client(1, firstName=error)]))
    assert result.reasons == {"firstName: Holds an error of a formula instead of a value": 1}


@pytest.mark.parametrize(
    ("cell", "doubt"),
    [
        ({"firstName": "João".encode().decode("cp1252")}, "MISREAD"),
        ({"firstName": "Jo?o"}, "MISREAD"),
        ({"address__city": "S\ufffdo Paulo"}, "MISREAD"),
        ({"address__addressNumber": "2026-05-03"}, "NUMBER_IS_DATE"),
        ({"phoneNumber": "20987654321"}, "AREA_CODE_UNKNOWN"),
        ({"address__zipCode": "78900-000"}, "CEP_UNASSIGNED"),
        ({"address__zipCode": "78999999"}, "CEP_UNASSIGNED"),
        ({"birthdate": "2026-03-03"}, "BIRTHDATE_IN_FUTURE"),
        ({"birthdate": "1906-03-01"}, "BIRTHDATE_TOO_OLD"),
    ],
)
def test_what_is_valid_and_odd_is_doubtful(load, cell, doubt, tmp_path):
    assert load(write_csv(tmp_path / "a.csv", [client(1, **cell)])).warnings == {doubt: 1}


def test_a_file_may_be_called_by_any_bytes(load, tmp_path):
    result = load(write_csv(tmp_path / os.fsdecode(b"na\xefve.csv"), [client(1), client(2, cpf="0")]))
    assert counts(result) == (1, 1, 0)
    assert [file.source for file in result.files] == ["na\\udcefve.csv"]
    assert result.rejected_files[0].name == "na.udcefve.csv.rejected.csv"


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


def test_a_formula_that_no_program_has_computed_is_no_blank_cell(load, tmp_path):
    book = openpyxl.Workbook()
    made = client(0, email='=LOWER("ANA@example.com")')
    for row in (FIELDS, made.values(), client(1).values()):
        book.active.append([*row])
    book.save(tmp_path / "a.xlsx")
    result = load(tmp_path / "a.xlsx")
    assert counts(result) == (1, 1, 0)
    assert result.reasons == {"email: Holds an error of a formula instead of a value": 1}


def test_a_number_keeps_the_zeros_that_its_format_shows(database, load, tmp_path):
    book = openpyxl.Workbook()
    for row in (FIELDS, client(1, rg=0.5).values(), client(2, cpf="0").values()):
        book.active.append([*row])
    for line in 2, 3:
        book.active.cell(line, 1 + FIELDS.index("rg")).number_format = "00"
        cell = book.active.cell(line, 1 + FIELDS.index("address.installationNumber"), 12345678)
        cell.number_format = "0" * 11
    book.save(tmp_path / "a.xlsx")
    _, rejected = load(tmp_path / "a.xlsx").rejected_files
    [stored], [row] = registered(database), read_csv(load(rejected).rejected_files[0])
    assert (stored["rg"], stored["installation_number"]) == ("0.5", "00012345678")
    assert row["address.installationNumber"] == "00012345678"


MESSY = Path(__file__).parent.parent / "data" / "messy"
EXPECTED = json.loads((MESSY / "expected.json").read_text("utf-8"))


def test_every_messy_file_has_its_expectation():
    assert sorted(EXPECTED) == sorted(path.name for path in MESSY.iterdir() if path.suffix != ".json")


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_messy_file_is_read_as_a_person_would(database, tmp_path, name):
    result = load_clients(database, [MESSY / name], out=tmp_path)
    assert as_expected(result, database) == EXPECTED[name]


def as_expected(result, database):
    made_here = {"id", "id_1", "client_id", "created_at"}
    people = [
        {key: str(value) for key, value in row.items() if value is not None and key not in made_here}
        for row in registered(database)
    ]
    delimiter = result.files[0].layout.delimiter or ";"
    rejected = [
        row for path in result.rejected_files if path.suffix == ".csv" for row in read_csv(path, delimiter)
    ]
    return {
        "understood": result.files[0].understood,
        "registered": people,
        "rejected": {row["line"]: row["errors"] for row in rejected},
        "repairs": result.repairs,
        "warnings": result.warnings,
    }


TODAY = date(2026, 11, 20)
OTHER_CPF = "11144477735"


def test_clients_that_are_alike_are_named_by_their_ids_and_masked_cpf(database):
    def register(body):
        return str(register_client(database, body).client_id)

    first, again = (register(CLIENT | {"email": f"{name}@example.com"}) for name in ("Ana", "other"))
    moved = changed(CLIENT, "address.installationNumber", "7654321")
    elsewhere = register(moved | {"email": "third@example.com"})
    somebody = register(CLIENT | {"cpf": OTHER_CPF, "email": "ana@example.com"})
    found = client_quality(database, TODAY)
    groups = {each.likeness: each for each in found.alike}
    assert found.clients == 4
    assert set(groups[Likeness.SAME_CONTRACT].client_ids) == {first, again}
    assert set(groups[Likeness.SAME_CPF].client_ids) == {first, again, elsewhere}
    assert groups[Likeness.SAME_CPF].cpf == "***.982.247-**"
    assert set(groups[Likeness.SAME_EMAIL].client_ids) == {first, somebody}
    assert groups[Likeness.SAME_EMAIL].cpf is None
    assert set(groups[Likeness.SAME_INSTALLATION].client_ids) == {first, again, somebody}
    assert found.counts["NO_SALE"] == 4
    assert "52998224725" not in str(found)
    assert len(client_quality(database, TODAY, most=1).alike) == len(found.groups)
    for most in (0, -1, 10**30, 2.5, "5"):
        with pytest.raises(InvalidInput, match="most must be"):
            client_quality(database, TODAY, most=most)
    database.run(sa.Connection.execute, sa.text("UPDATE clients SET cpf = '529.982.247-25'"))
    assert {each.cpf for each in client_quality(database, TODAY).alike} == {"***"}
