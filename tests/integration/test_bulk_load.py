"""Clients in files are registered as one by one: once, whoever loads them, and with a word for what is not."""

import stat
from datetime import timedelta

import pytest

from tests.support.client_rows import FIELDS, body, client, read_csv, write_csv
from tests.support.loads import counts, registered
from tests.support.uploaded_sales import execute, rows
from toolkit.contract.resources import QualityWarning
from toolkit.errors import InvalidInput, UnreadableFile
from toolkit.intake.clients import load_clients
from toolkit.intake.registration import register_client


def test_accepted_rows_are_registered_as_one_by_one(database, load, clock, tmp_path):
    row = client(1, cpf="  529.982.247-25", email="Ana@EXAMPLE.com", phoneNumber="", rg="12")
    result = load(write_csv(tmp_path / "a.csv", [row]))
    register_client(database, body(row), clock)

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


def test_the_same_contents_again_change_nothing(database, load, clock, tmp_path):
    given = [client(1), client(2), client(3, cpf="0")]
    first = load(write_csv(tmp_path / "a.csv", given))
    again = load(write_csv(tmp_path / "copy.csv", given))

    assert counts(first) == (2, 1, 0)
    assert counts(again) == (0, 1, 2)
    assert again.files[0].already_loaded_at == clock.now
    assert len(again.rejected_files) == 2
    assert len(registered(database)) == 2


def test_a_client_who_is_registered_already_is_skipped_and_listed(database, load, clock, tmp_path):
    known = register_client(database, body(client(1)), clock)
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


def test_a_skipped_row_with_other_values_is_named(database, load, clock, tmp_path):
    register_client(database, body(client(1)), clock)
    moved, called = client(1, address__city="Recife"), client(2, phoneNumber="11987650000")
    for dry_run in (True, False):
        path = write_csv(tmp_path / f"{dry_run}.csv", [moved, client(1), client(2), called, client(2)])
        result = load(path, dry_run=dry_run)
        assert counts(result) == (1, 0, 4)
        assert result.warnings == {QualityWarning.OTHER_VALUES: 2}
        assert [line for _, line in result.examples[QualityWarning.OTHER_VALUES]] == [2, 5]


def test_of_several_who_are_registered_already_the_first_is_listed(database, load, clock, tmp_path):
    first = register_client(database, body(client(1)), clock)
    clock.now += timedelta(days=1)
    register_client(database, body(client(1)), clock)
    skipped = load(write_csv(tmp_path / "a.csv", [client(1)])).files[0].skipped_file
    assert read_csv(skipped)[0]["clientId"] == str(first.client_id)


def test_rows_that_the_service_refuses_are_rejected_and_the_others_load(database, load, tmp_path):
    execute(database, "ALTER TABLE public.clients ADD CONSTRAINT no_bob CHECK (first_name <> 'Bob')")
    given = [client(n, firstName="Bob" if n in (2, 5) else "Ana") for n in range(7)]
    result = load(write_csv(tmp_path / "a.csv", given))
    assert counts(result) == (5, 2, 0)
    assert [row["errors"] for row in read_csv(result.rejected_files[0])] == [
        "row: Breaks a rule of the service (no_bob)"
    ] * 2
    assert {row["first_name"] for row in registered(database)} == {"Ana"}


def test_corrected_files_keep_the_mapping_and_their_names_do_not_grow(load, tmp_path):
    headings = [{"numberOnDealership": "Nr. contrato", "rg": "CPF 2"}.get(name, name) for name in FIELDS]
    source = write_csv(tmp_path / "a.csv", [client(1, cpf="0"), client(2, cpf="1")], headings=headings)
    first = load(source, headings={"Nr. contrato": "numberOnDealership"})
    again = load(first.rejected_files[0])
    assert counts(again) == (0, 2, 0)
    assert [path.name for path in again.rejected_files] == ["a.csv.2.rejected.csv", "a.csv.2.rejected.xlsx"]
    assert load(again.rejected_files[1]).rejected_files[0].name == "a.csv.3.rejected.csv"


def test_a_dry_run_tells_all_and_writes_nothing_to_the_database(database, load, tmp_path):
    source = write_csv(tmp_path / "a.csv", [client(1), client(2, cpf="0"), client(1)])
    tried = load(source, dry_run=True)

    assert counts(tried) == (1, 1, 1)
    assert tried.dry_run
    assert len(tried.rejected_files) == 2
    assert registered(database) == []
    assert rows(database, "SELECT FROM audit.load_batches") == []
    assert counts(load(source)) == (1, 1, 1)


def test_a_file_without_headings_is_refused_without_quoting_its_first_person(load, tmp_path):
    people = tmp_path / "people.csv"
    people.write_text("Nome;Maria da Silva;529.982.247-25;maria@example.com\n;;;\n", encoding="utf-8")
    with pytest.raises(UnreadableFile, match=r"Found on line 1: Nome\. The fields are"):
        load(people)


def test_a_folder_that_cannot_be_written_is_named_before_anything_is_registered(database, clock, tmp_path):
    source = write_csv(tmp_path / "a.csv", [client(1), client(2, cpf="0")])
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="--out"):
        load_clients(database, [source], out=tmp_path / "file" / "out", clock=clock)
    assert registered(database) == []
