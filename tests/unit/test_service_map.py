from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.errors import SettingsError
from toolkit.storage.grants import As, grants
from toolkit.storage.service_map import load_map
from toolkit.storage.service_map.draft.vocabulary import tokens

SALES = """
timezone = "UTC"
[sales]
from = "shop.orders"
[sales.columns]
id = "code"
client_id = { absent = true }
utility_group = { column = "kind", codes = { 1 = "A" } }
is_client_financial_responsible = "payer"
partner = { column = "name", table = "shop.partners", key = "id", by = "partner_id" }
created_at = { date = "day", time = "hour", zone = "America/Sao_Paulo" }
completed_at = "done"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "map.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_mapping_is_read_as_it_is_written(tmp_path: Path) -> None:
    mapping = load_map(written(tmp_path, SALES))
    columns = mapping.sales.columns
    assert columns["id"].column == "code"
    assert columns["utility_group"].codes == {"1": "A"}
    assert columns["partner"].is_lookup


def test_a_relation_that_is_left_out_is_the_contracts_own_table(tmp_path: Path) -> None:
    mapping = load_map(written(tmp_path, SALES))
    assert mapping.clients.from_ == "public.clients"
    assert mapping.clients.columns["number_on_dealership"].column == "number_on_dealership"


def test_comments_do_not_make_another_mapping(tmp_path: Path) -> None:
    mapping = load_map(written(tmp_path, SALES))
    assert load_map(written(tmp_path, "# reviewed\n" + SALES)).fingerprint == mapping.fingerprint
    assert load_map(written(tmp_path, SALES.replace('1 = "A"', '1 = "B"'))).fingerprint != mapping.fingerprint


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ('timezone = "UTC"', "", r"timezone: Field required"),
        ('timezone = "UTC"', 'timezone = "Brasilia"', r"timezone: 'Brasilia' is not a known time zone"),
        ('id = "code"', "", r"sales\.columns\.id is missing"),
        ('completed_at = "done"', "", r"sales\.columns\.completed_at is missing; .*write \{ absent = true \}"),
        ('id = "code"', "id = { absent = true }", r"sales\.columns\.id cannot be absent: the audit needs it"),
        ('id = "code"', 'id = "code"\nnumber = "no"', r"sales\.columns\.number: the contract has no such column"),
        ('from = "shop.orders"', "", r"sales\.from is missing"),
        ('"code"', '{ column = "code", sql = "x" }', r"sales\.columns\.id: give exactly one of .*column and sql"),
        ('time = "hour", ', "", r"sales\.columns\.created_at: date and time go together"),
        ('key = "id", ', "", r"sales\.columns\.partner: column, table, key and by go together"),
        ('id = "code"', 'id = { colum = "code" }', r"sales\.columns\.id\.colum: Extra inputs are not permitted"),
        ("[sales]", "[sales", r"is not valid TOML: .*line 3"),
    ],
)
def test_a_mistake_is_named_with_the_file_and_the_key(
    tmp_path: Path, before: str, after: str, reason: str
) -> None:
    path = written(tmp_path, SALES.replace(before, after))
    with pytest.raises(SettingsError, match=reason) as caught:
        load_map(path)
    assert str(path) in str(caught.value)


def test_a_mistake_is_named_with_its_line_and_the_question_of_the_draft(tmp_path: Path) -> None:
    text = SALES.replace('id = "code"', 'id = { sql = "TODO" }  # what stands for one row of it?')
    asked = r"line 6, sales\.columns\.id\.sql is still to be filled in \(what stands for one row of it\?\)"
    with pytest.raises(SettingsError, match=asked):
        load_map(written(tmp_path, text))


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.toml cannot be read: No such file"):
        load_map(tmp_path / "none.toml")


def test_rights_are_printed_for_the_names_as_they_are() -> None:
    first, *_ = grants("night 100%", As.READER, database='a "b" %')
    assert first == 'GRANT CONNECT ON DATABASE "a ""b"" %" TO "night 100%";'


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("deletedat", ("deleted", "at")),
        ("isdeleted", ("flag", "deleted")),
        ("customerpays", ("client", "payer")),
        ("paidat", ("paidat",)),
        ("salesperson", ("salesperson",)),
    ],
)
def test_a_name_that_nobody_quoted_is_parted_where_both_halves_are_known(
    name: str, meant: tuple[str, ...]
) -> None:
    assert tokens(name) == meant
