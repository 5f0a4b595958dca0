"""Read spreadsheets as people send them: delimited text in any usual encoding, and workbooks.

Whatever the file, a table has the headings as written, every cell as text and for every row its line in the
file. ``read_table`` is for files that fit into memory; ``open_table`` reads in chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.contract.fields import RequestModel, parse
from toolkit.errors import InvalidField, InvalidFields, UnreadableFile
from toolkit.intake.headings import Headings
from toolkit.intake.sources import (
    ERROR_OF_FORMULA,
    OWN,
    REJECTED_SHEET,
    Chunk,
    Layout,
    Recognises,
    TableSource,
    any_cell,
    source_of,
    unescape,
)
from toolkit.intake.text_tables import DelimitedText
from toolkit.intake.workbooks import WorkbookTable
from toolkit.message import Message

M = TypeVar("M", bound=RequestModel)

WHOLE_BYTES: Final = 256 * 1024**2  # text in the cells of a table that is read into memory as a whole, at most


@dataclass(frozen=True)
class Table:
    """A whole table: its headings as in the file, its rows, and the position of each field's column."""

    layout: Layout
    headings: tuple[str, ...]
    rows: Chunk
    fields: Mapping[str, int]

    def bodies(self) -> Iterator[tuple[int, dict[str, str | None]]]:
        """Yield the line of each row and its cells under the names of their fields.

        An empty cell is an absent value, so that a required one gives the contract's reason.
        """
        texts = [self.rows.columns[position].to_pylist() for position in self.fields.values()]
        for line, *cells in zip(self.rows.lines.tolist(), *texts, strict=True):
            yield line, {name: cell or None for name, cell in zip(self.fields, cells, strict=True)}


SpreadsheetTable = DelimitedText | WorkbookTable  # a table that is understood and can be read


def open_table(
    source: TableSource, recognises: Recognises = any_cell, sheet: str | None = None
) -> SpreadsheetTable:
    """Find out how ``source`` is written, and make ready to read it.

    Raises:
        UnreadableFile: it is missing, damaged, protected, empty, or of another kind.
    """
    return WorkbookTable(source, recognises, sheet) if source.workbook else DelimitedText(source, recognises)


def _source_columns(headings: Sequence[str]) -> slice | None:
    """Return the columns of the source, where these are the headings of rejected rows that a load has written.

    The load's own columns come first in a workbook and last in a CSV file, where a spreadsheet program may have
    added empty columns to them.
    """
    width = max((place for place, heading in enumerate(headings, 1) if heading), default=0)
    source = width - len(OWN)
    if tuple(headings[: len(OWN)]) == OWN[::-1]:
        return slice(len(OWN), width)
    return slice(source) if source >= 0 and tuple(headings[source:width]) == OWN else None


def source_headings(table: SpreadsheetTable) -> tuple[str, ...]:
    """Return the headings without the columns that a load has added to rejected rows."""
    return table.layout.headings[_source_columns(table.layout.headings) or slice(None)]


def source_chunks(table: SpreadsheetTable) -> Iterator[Chunk]:
    """Return the rows; those that a load has written as rejected, as they were in their source."""
    source = _source_columns(table.layout.headings)
    # Nothing is escaped in our workbooks; in one made from our CSV file, Excel names the sheet after that.
    escaped = table.layout.sheet != REJECTED_SHEET
    for chunk in table.chunks():
        if source is not None:
            columns, first = chunk.columns[source], source.start or 0
            numbers = {at - first: mask for at, mask in chunk.numbers.items() if 0 <= at - first < len(columns)}
            columns = [unescape(column) for column in columns] if escaped else columns
            chunk = replace(chunk, columns=columns, numbers=numbers)
        yield chunk


def read_table(path: Path, headings: Headings) -> Table:
    """Read one table into memory; blank rows are left out.

    Raises:
        UnreadableFile: it cannot be read, is too large, lacks a field, or has a row that does not fit.
    """
    table = open_table(source_of(path), headings.recognise)
    given = source_headings(table)
    fields = headings.columns(table.source.name, table.layout.heading_line, given)
    chunks, size = [], 0
    for chunk in source_chunks(table):
        size += sum(column.nbytes for column in chunk.columns)
        if size > WHOLE_BYTES:
            raise UnreadableFile(
                "{}: holds more than {} MiB of text; split it.", table.source.name, WHOLE_BYTES >> 20
            )
        for row, reason in chunk.faults.items():
            raise UnreadableFile("{}, line {}: {}.", path, chunk.lines[row], reason)
        chunks.append(chunk)
    columns = [
        pa.chunked_array(
            [pc.replace_substring_regex(chunk.columns[position], ERROR_OF_FORMULA, "") for chunk in chunks],
            pa.string(),
        ).combine_chunks()
        for position in range(len(given))
    ]
    lines = np.concatenate([np.empty(0, np.int64), *(chunk.lines for chunk in chunks)])
    return Table(table.layout, given, Chunk(columns, lines), fields)


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row that is not taken over: its line in the file and every reason."""

    line: int
    invalid: tuple[InvalidField, ...]


def valid_rows(
    table: Table, model: type[M], identity: Callable[[M], Hashable], repeated: InvalidField
) -> tuple[dict[int, M], list[RejectedRow]]:
    """Judge the rows of a table: return the valid ones by their lines, and the others.

    Of those with the same ``identity`` the first counts; ``repeated`` says why the others do not, with its line.
    """
    valid: dict[int, M] = {}
    rejected: list[RejectedRow] = []
    first_lines: dict[Hashable, int] = {}
    for line, body in table.bodies():
        try:
            row = parse(model, body)
        except InvalidFields as error:
            rejected.append(RejectedRow(line, error.invalid))
            continue
        first = first_lines.setdefault(identity(row), line)
        if first == line:
            valid[line] = row
        else:
            again = InvalidField(repeated.field, Message(repeated.message, first))
            rejected.append(RejectedRow(line, (again,)))
    return valid, rejected
