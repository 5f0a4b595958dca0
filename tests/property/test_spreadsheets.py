"""Text is read as Python's csv module writes it, and columns are judged as the contract's model judges them."""

import csv
import io
import re
import tempfile
from datetime import date
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from validate_docbr import CPF

from tests.support.client_rows import FIELDS, body, client, cpf, read_csv
from toolkit.contract.fields import TRIMMED, parse
from toolkit.contract.resources import Client
from toolkit.errors import InvalidField, InvalidFields
from toolkit.intake import tables
from toolkit.intake.checks import cpf_digits_fit, decide
from toolkit.intake.headings import FIELDS as RULES
from toolkit.intake.headings import Headings
from toolkit.intake.results import Outputs
from toolkit.intake.sources import Chunk, source_of
from toolkit.intake.tables import Table, records

letters = st.sampled_from('ab ;,"\n\ré€')
csv_cells = st.text(letters, max_size=6)
csv_rows = st.lists(st.tuples(csv_cells, csv_cells, csv_cells), max_size=12)


@settings(max_examples=300, deadline=None)
@given(
    csv_rows,
    st.sampled_from(["\n", "\r\n", "\r\r\n"]),
    st.booleans(),
    st.sets(st.integers(0, 11)),
    st.integers(7, 60),
    st.sampled_from(["utf-8", "utf-8-sig", "cp1252", "utf-16"]),
    st.booleans(),
)
def test_cells_and_lines_are_those_that_the_csv_module_wrote(
    given_rows, line_end, quote_all, blank_after, block, encoding, ends_with_line_end
):
    stream = io.StringIO()
    # Before Python 3.13 the csv module writes a carriage return without the quotes that it needs itself.
    quote_all |= any("\r" in cell for row in given_rows for cell in row)
    quoting = csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
    writer = csv.writer(stream, delimiter=";", lineterminator=line_end, quoting=quoting)
    writer.writerow(["first", "second", "thírd"])  # without it, letters of Windows-1252 can be UTF-8 by chance
    expected = []
    for number, row in enumerate(given_rows):
        if any(cell.strip(" \n\r") for cell in row):
            expected.append((1 + stream.getvalue().count("\n"), row))  # as an editor counts lines
        writer.writerow(row)
        if number in blank_after:
            stream.write(line_end)
    text = stream.getvalue() if ends_with_line_end else stream.getvalue().removesuffix(line_end)

    with tempfile.TemporaryDirectory() as folder, mock.patch.object(tables, "BLOCK", block):
        path = Path(folder, "a.csv")
        path.write_bytes(text.encode(encoding))
        # The headings must lie in the first block, which is never as small as this outside of tests.
        with mock.patch.object(tables, "BLOCK", 4096):
            table = Table(source_of(path), Headings({}))
        read = [row for chunk in table.chunks() for row in rows_of(chunk)]
    assert read == expected


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(st.sampled_from('a;"\r '), max_size=9), max_size=12))
@example(['"a;1', '2";3;4;5', "6;7;8"])
def test_whatever_the_quotation_marks_no_line_is_lost(lines):
    found = list(records([f"{line}\n" for line in lines], ";", 1, 3))
    assert [each.line for each in found] == [1, *(each.next_line for each in found)][: len(found)]
    assert len(lines) == (found[-1].next_line - 1 if found else 0)
    assert sum("".join(each.cells).count("a") for each in found) == "".join(lines).count("a")


def rows_of(chunk):
    assert not chunk.faults
    columns = [column.to_pylist() for column in chunk.columns]
    return list(zip(chunk.lines.tolist(), zip(*columns, strict=True), strict=True))


def rejected(folder, chunk, delimiter, headings):
    with Outputs(folder, "a", delimiter, headings, {"cpf": 0}) as outputs:
        outputs.reject(chunk, {line: [InvalidField("cpf", "wrong")] for line in chunk.lines.tolist()})
        outputs.complete()
        return outputs.publish()[0]


any_text = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\ufffe\uffff"), max_size=8
) | st.text("'=+-@\t\r\n\x00_x0041;\"", max_size=6)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.just("x") | any_text, any_text), min_size=1, max_size=6),
    st.sampled_from([";", ",", "\t"]),
)
@example([("x", "'=a"), ("'", "=1+1")], ";")
def test_rejected_rows_come_back_as_they_were(given_rows, delimiter):
    original = [("cpf x", *row) for row in given_rows]
    headings = ("cpf", "=nome", "'rua")
    chunk = Chunk(
        [pa.array(column, pa.string()) for column in zip(*original, strict=True)],
        pa.array(range(2, len(original) + 2)).to_numpy(),
    )
    with tempfile.TemporaryDirectory() as folder:
        for path in rejected(Path(folder), chunk, delimiter, headings):
            table = Table(source_of(path), Headings({}))
            read = [row for part in table.chunks() for _, row in rows_of(part)]
            assert read == original
            assert len(table.headings) == len(headings)


@pytest.mark.parametrize("cell", ["=1+1", "+55", "-1", "@x", "\tx", "\rx", "'=1"])
def test_no_cell_of_a_rejected_csv_can_run_as_a_formula(cell, tmp_path):
    chunk = Chunk([pa.array([cell])], pa.array([2]).to_numpy())
    (row,) = read_csv(rejected(tmp_path, chunk, ";", ["=cpf"])[0])
    assert (row["'=cpf"], row["errors"]) == (f"'{cell}", "'=cpf: wrong")


TODAY = date(2026, 2, 28)

digits = st.integers(0, 999_999_999)
anything = st.text(max_size=12) | st.text("0123456789.-/ ()+'Ee,\u00a0\u200b\x00\n\x85９", max_size=16)
spaces = st.sampled_from(["", "", "", *TRIMMED])


def masked(pattern, digits_wanted):
    left = iter(digits_wanted)
    return "".join(next(left, "") if letter == "9" else letter for letter in pattern)


def written(numbers, *patterns):
    """The digits of a number in one of these ways of writing."""
    return st.builds(masked, st.sampled_from(patterns), numbers)


cpfs = written(
    digits.map(cpf) | st.integers(0, 10**11 - 1).map("{:011d}".format) | st.just("11111111111"),
    *("99999999999", "999.999.999-99", "999.999.99999", "999 999 999/99", "'99999999999", "9-9-9-99999999"),
) | digits.map(lambda number: cpf(number % 1000).lstrip("0"))
ceps = written(
    st.integers(0, 10**8 - 1).map("{:08d}".format)
    | st.sampled_from(["00999999", "01000000", "78900000", "78999999"]),
    *("99999999", "99999-999", "99.999-999", "99999 999", "9999-9999"),
) | st.integers(0, 10**7 - 1).map(str)
phones = written(
    st.integers(0, 10**11 - 1).map("{:011d}".format),
    *("99999999999", "(99) 99999-9999", "(99)99999-9999", "99 99999-9999", "+5599999999999", "5599999999999"),
    *("005599999999999", "+55 99 99999-9999", "+55 (99) 99999-9999", "(99)\u00a099999.9999", "(99) 9999-99999"),
    "9999999999",
) | st.just("")
dates = (
    st.dates().map(str)
    | st.dates(date(1850, 1, 1), date(2100, 1, 1)).map(lambda day: f"{day:%d/%m/%Y}")
    | st.dates(date(1900, 1, 1)).map(lambda day: f"{day.day}/{day.month}/{day.year}")
    | st.builds("{:04d}-{:02d}-{:02d}".format, *map(st.integers, (0, 0, 0), (9999, 13, 32)))
    | st.builds("{:02d}/{:02d}/{:04d}".format, *map(st.integers, (0, 0, 0), (32, 13, 9999)))
    | st.sampled_from(
        ["29252", "9999", "79999", "1980-02-01 00:00:00", "01/02/1980 0:00", "1980-02-01T10:00", "0"]
    )
    | st.just("29/02/2024")
)
emails = (
    st.emails()
    | st.builds(
        "{}@{}.{}".format, st.text("aBc.-_+'9é", min_size=1), st.text("aB-.9ü", min_size=1), st.text("bBrR")
    )
    | st.sampled_from(["", "INFO@Example.com", "a@b.test", "a@xn--a.com", "a@-b.com", "a..b@c.com", "a@b.c.br"])
    | st.just("x" * 70 + "@c.com")
)
MISLEADING = "\u061b\u061c\u061d\u200d\u200e\u200f\u2010\u2019\u2028\u202e\u202f\u2065\u2066\u2069\u206a\u2126"
"""Characters for the direction of text, and their neighbours."""

texts = (
    st.text(max_size=14)
    | st.sampled_from(["ã" * 255, "ã" * 256, "a" * 255, "a" * 256])
    | st.sampled_from(["1,23457E+10", "1.5E+11", "NA", "null", "=1+1", "\x7f", "\u0085x"])
    | st.builds("{}{}{}".format, st.text("aé", max_size=7), st.sampled_from(MISLEADING), st.text("b", max_size=7))
)

CELLS = {"cpf": cpfs, "address.zipCode": ceps, "phoneNumber": phones, "birthdate": dates, "email": emails}


def cells(name):
    """Cells of a field: mostly as it is meant, often not, sometimes anything."""
    around = st.builds(lambda before, cell, after: before + cell + after, spaces, CELLS.get(name, texts), spaces)
    return st.just(client(1)[name]) | around | anything


storable = re.compile(r"[^\ud800-\udfff]*").fullmatch
rows = st.fixed_dictionaries({name: cells(name).filter(storable) for name in FIELDS})
# Most rows have at most a few odd cells, or hardly any would be accepted.
nearly_right = st.builds(
    lambda row, odd: client(2) | {name: row[name] for name in odd},
    rows,
    st.sets(st.sampled_from(FIELDS), max_size=3),
)
are_numbers = st.sampled_from([False, False, True])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(rows | nearly_right, are_numbers), max_size=12))
def test_columns_and_contract_agree(given_rows):
    columns = {name: position for position, name in enumerate(FIELDS)}
    chunk = Chunk(
        [pa.array([row[name] for row, _ in given_rows], pa.string()) for name in FIELDS],
        np.arange(len(given_rows), dtype=np.int64) + 2,
        numbers={position: np.array([each for _, each in given_rows], bool) for position in columns.values()},
    )
    verdict = decide(chunk, columns, TODAY)
    for position, (row, _) in enumerate(given_rows):
        contract = by_contract({name: "" if not cell.strip(TRIMMED) else cell for name, cell in row.items()})
        if verdict.accepted[position]:
            stored = values(verdict.values, position)
            known = by_contract({rule.name: stored[rule.column] or "" for rule in RULES})
            assert not isinstance(known, list)
            assert flat(known) == stored  # what is registered is what the contract registers
            if not isinstance(contract, list):
                assert flat(contract) == stored
            assert_same_digits(row, stored)
        else:
            assert isinstance(contract, list)
            assert {error.field for error in verdict.errors[position]} <= {*contract}


def by_contract(row):
    """The client that the contract's model makes of a row as it stands, or the fields that it refuses."""
    try:
        return parse(Client, body(row))
    except InvalidFields as error:
        return [item.field for item in error.invalid]


def assert_same_digits(row, stored):
    """A repair takes away what surrounds the digits of a number, gives back zeros in front, and no more."""
    for name, column in (("cpf", "cpf"), ("address.zipCode", "zip_code"), ("phoneNumber", "phone_number")):
        written = "".join(letter for letter in row[name] if letter in "0123456789")
        kept = stored[column] or ""
        assert kept.lstrip("0") == written.lstrip("0") or (column == "phone_number" and written[-11:] == kept)


def flat(accepted):
    person = accepted.model_dump(exclude={"address"}) | accepted.address.model_dump()
    return {name: None if value is None else str(value) for name, value in person.items()}


def values(columns, position):
    return {rule.column: columns[rule.column][position].as_py() for rule in RULES}


def test_check_digits_agree_with_the_contract():
    random = np.random.default_rng(1)
    numbers = random.integers(0, 10, (30_000, 11), dtype=np.uint8)
    numbers[:10] = np.arange(10, dtype=np.uint8)[:, None]
    valid = np.array([[int(digit) for digit in cpf(int(n))] for n in random.integers(0, 10**9, 5_000)], np.uint8)
    everything = np.concatenate((numbers, valid))
    alone = [CPF().validate("".join(map(str, row))) for row in everything.tolist()]
    assert cpf_digits_fit(everything).tolist() == alone
