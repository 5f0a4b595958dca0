import re

import pytest

from tests.support.client_rows import FIELDS, client, write_csv


@pytest.fixture
def load(run):
    return lambda *words, ends=0: run("-q", "clients", "load", *words, ends=ends)


def test_the_result_for_machines(load, tmp_path):
    source = write_csv(tmp_path / "a.csv", [client(1), client(2, cpf="0"), client(1)])
    ran = load(source, "--json", "--out", tmp_path / "out", ends=3)
    document = ran.told

    assert document == document | {"rows": 3, "accepted": 1, "rejected": 1, "skipped": 1, "dryRun": False}
    assert document["reasons"] == {"cpf: Must be a CPF: 11 digits, or 000.000.000-00": 1}
    assert document["rejectedFiles"] == [
        str(tmp_path / "out" / "a.csv.rejected.csv"),
        str(tmp_path / "out" / "a.csv.rejected.xlsx"),
    ]
    assert document["files"][0]["skippedFile"] == str(tmp_path / "out" / "a.csv.skipped.csv")
    assert ran.err.startswith("a.csv: text, UTF-8, separated by “;”, headings on line 1: externalId, cpf, ")


def test_the_result_for_people(load, tmp_path):
    source = write_csv(tmp_path / "a.csv", [client(1, cpf="529.982.247-25"), client(2, cpf="12345678900")])
    out = load(source, "--dry-run", ends=3).out

    assert "a.csv: 2 rows: 1 would be registered, 1 rejected, 0 skipped" in out
    assert f"rejected rows: {tmp_path / 'a.csv.rejected.csv'}" in out  # by default beside the source
    assert "1 × cpf: Must be a valid CPF: the check digits do not fit (line 3)" in out
    assert "1 × repaired: mask of a CPF removed" in out
    assert "12345678900" not in out


def test_nothing_rejected_is_status_0_and_again_says_when_it_was_loaded(load, tmp_path):
    source = write_csv(tmp_path / "a.csv", [client(1)])
    load(source)
    out = load(source).out
    assert "a.csv: 1 row: 0 registered, 0 rejected, 1 skipped" in out
    assert re.search(r"these contents were loaded at \d+ \w{3} 20\d\d, \d\d:\d\d \(UTC", out)


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (["none.csv"], 1, "none.csv: no such file"),
        (["a.csv", "--map", "x"], 2, "write HEADING=field"),
        (["a.csv", "--map", "x=shoe"], 1, "There is no field shoe to map a heading to; there are externalId, cpf"),
        (["."], 1, "is a folder; name the files in it"),
        ([], 2, "Missing argument 'FILE...'"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(load, tmp_path, monkeypatch, args, status, message):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "a.csv", [client(1)])
    ran = load(*args, ends=status)
    assert ran.out == ""
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_a_mapped_heading_goes_before_a_known_one(load, tmp_path):
    headings = [{"externalId": "Nome", "firstName": "Primeiro nome"}.get(name, name) for name in FIELDS]
    source = write_csv(tmp_path / "a.csv", [client(1)], headings=headings)
    assert "no heading" not in load(source, "--dry-run", "--map", "Primeiro nome=firstName").err
    assert "no heading for firstName" in load(source, "--dry-run", "--map", "Nome=-", ends=1).err
