"""Delimited text is read as Python's csv module reads it, whatever its cells and wherever blocks are cut."""

import csv
import io
import tempfile
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.client_rows import read_csv
from toolkit.errors import InvalidField
from toolkit.intake import tables
from toolkit.intake.results import Outputs
from toolkit.intake.sources import Chunk, TableSource, source_of
from toolkit.intake.tables import open_table, records, source_chunks, source_headings

letters = st.sampled_from('ab ;,"\n\ré€')
cells = st.text(letters, max_size=6)
rows = st.lists(st.tuples(cells, cells, cells), max_size=12)


@settings(max_examples=300, deadline=None)
@given(
    rows,
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.sets(st.integers(0, 11)),
    st.integers(7, 60),
    st.sampled_from(["utf-8", "utf-8-sig", "cp1252", "utf-16"]),
    st.booleans(),
)
def test_cells_and_lines_are_those_of_the_csv_module(
    given_rows, line_end, quote_all, blank_after, block, encoding, ends_with_line_end
):
    stream = io.StringIO()
    # Before Python 3.13 the csv module writes a carriage return without the quotes that it needs itself.
    quote_all |= any("\r" in cell for row in given_rows for cell in row)
    quoting = csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
    writer = csv.writer(stream, delimiter=";", lineterminator=line_end, quoting=quoting)
    writer.writerow(["first", "second", "thírd"])  # without it, letters of Windows-1252 can be UTF-8 by chance
    for number, row in enumerate(given_rows):
        writer.writerow(row)
        if number in blank_after:
            stream.write(line_end)
    text = stream.getvalue() if ends_with_line_end else stream.getvalue().removesuffix(line_end)

    with tempfile.TemporaryDirectory() as folder, mock.patch.object(tables, "BLOCK", block):
        path = Path(folder, "a.csv")
        path.write_bytes(text.encode(encoding))
        # The headings must lie in the first block, which is never as small as this outside of tests.
        with mock.patch.object(tables, "BLOCK", 4096):
            table = open_table(TableSource(path))
        read = [row for chunk in table.chunks() for row in rows_of(chunk)]
    assert read == by_csv_module(text)


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


def by_csv_module(text):
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=";")
    found, line = [], 1
    for row in reader:
        found.append((line, tuple(row)))
        line = 1 + text_lines(text, reader.line_num)
    return [(at, row) for at, row in found[1:] if any(cell.strip(" \n\r") for cell in row)]


def text_lines(text, physical):
    """Lines as an editor counts them; the csv module also counts a lone carriage return."""
    pieces = io.StringIO(text, newline="").readlines()[:physical]
    return sum(piece.endswith("\n") for piece in pieces)


def rejected(folder, chunk, delimiter, headings):
    with Outputs(folder, "a", delimiter, headings, {}) as outputs:
        outputs.reject(chunk, [[InvalidField("cpf", "wrong")]] * len(chunk.lines))
        outputs.complete()
        return outputs.publish()[0]


anything = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\ufffe\uffff"), max_size=8
) | st.text("'=+-@\t\r\n\x00_x0041;\"", max_size=6)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.just("x") | anything, anything), min_size=1, max_size=6),
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
            table = open_table(source_of(path))
            read = [row for part in source_chunks(table) for _, row in rows_of(part)]
            assert read == original
            assert len(source_headings(table)) == len(headings)


@pytest.mark.parametrize("cell", ["=1+1", "+55", "-1", "@x", "\tx", "\rx", "'=1"])
def test_no_cell_of_a_rejected_csv_can_run_as_a_formula(cell, tmp_path):
    chunk = Chunk([pa.array([cell])], pa.array([2]).to_numpy())
    (row,) = read_csv(rejected(tmp_path, chunk, ";", ["cpf"])[0])
    assert row["cpf"] == f"'{cell}"
