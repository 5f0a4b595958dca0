"""Read spreadsheets as people send them: delimited text in any usual encoding, and workbooks.

Whatever the file, a table has the headings as written, every cell as text and for every row its line in the
file. ``read_table`` is for files that fit into memory; ``open_table`` reads in chunks.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.errors import InvalidField, UnreadableFile
from toolkit.intake.sources import (
    ERROR_OF_FORMULA,
    OWN,
    REJECTED_SHEET,
    Chunk,
    Layout,
    Lines,
    Reading,
    TableSource,
    source_of,
    unescape,
)
from toolkit.intake.text_tables import DelimitedText
from toolkit.intake.workbooks import WorkbookTable

WHOLE_BYTES: Final = 256 * 1024**2
"""Text in the cells of a table that is read into memory as a whole, at most."""


@dataclass(frozen=True)
class Table:
    """A whole table: ``rows`` are strings under the headings of the file; ``lines`` are their lines in it."""

    rows: pa.Table
    lines: Lines
    layout: Layout


SpreadsheetTable = DelimitedText | WorkbookTable
"""A table that is understood and can be read."""


def open_table(source: TableSource, reading: Reading | None = None) -> SpreadsheetTable:
    """Find out how ``source`` is written, and make ready to read it.

    Raises:
        UnreadableFile: it is missing, damaged, protected, empty, or of another kind.
    """
    return (WorkbookTable if source.workbook else DelimitedText)(source, reading or Reading())


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
        yield chunk if source is None else _as_before(chunk, source, escaped=escaped)


def _as_before(chunk: Chunk, source: slice, *, escaped: bool) -> Chunk:
    columns, first = chunk.columns[source], source.start or 0
    return replace(
        chunk,
        columns=[unescape(column) for column in columns] if escaped else columns,
        kinds={at - first: kinds for at, kinds in chunk.kinds.items() if 0 <= at - first < len(columns)},
    )


def read_table(path: Path, reading: Reading | None = None) -> Table:
    """Read one table into memory; blank rows and columns without a heading are left out.

    Raises:
        UnreadableFile: it cannot be read, is too large, or has a row that does not fit, or a heading twice.
    """
    table = open_table(source_of(path), reading)
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
    headings = source_headings(table)
    named = {heading: position for position, heading in enumerate(headings) if heading}
    if len(named) < sum(1 for heading in headings if heading):
        raise UnreadableFile("{}: a heading stands there twice; the headings are {}.", path, ", ".join(headings))
    cells = {
        heading: pa.chunked_array(
            [pc.replace_substring_regex(chunk.columns[position], ERROR_OF_FORMULA, "") for chunk in chunks],
            pa.string(),
        )
        for heading, position in named.items()
    }
    lines = np.concatenate([np.empty(0, np.int64), *(chunk.lines for chunk in chunks)])
    return Table(pa.table(cells), lines, table.layout)


def plain(heading: str) -> str:
    """Return a heading without case, accents, punctuation and white space."""
    letters = unicodedata.normalize("NFKD", heading).casefold()
    return "".join(letter for letter in letters if letter.isalnum())


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row that is not taken over: its line in the file and every reason."""

    line: int
    invalid: tuple[InvalidField, ...]


@dataclass(frozen=True, slots=True)
class NamedColumns:
    """The columns of ``file`` (such as "A manifest"); each may also be headed by one of its Portuguese names."""

    file: str
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    portuguese: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def headings(self, table: Table, path: Path) -> dict[str, str]:
        """Map the name of each column that the table has to its heading as written.

        Raises:
            UnreadableFile: a required column is missing.
        """
        written = {plain(heading): heading for heading in reversed(table.rows.column_names)}
        found = {}
        for name in self.required + self.optional:
            understood = [key for key in map(plain, (name, *self.portuguese.get(name, ()))) if key in written]
            if understood:
                found[name] = written[understood[0]]
        lacking = [name for name in self.required if name not in found]
        if lacking:
            # A line without any heading may be a row of data.
            listed = f"Found: {', '.join(table.rows.column_names)}" if found else "The file has no headings"
            raise UnreadableFile(
                "{}: the columns {} are missing. {}. {}", path, ", ".join(lacking), listed, self._described()
            )
        return found

    def bodies(self, table: Table, headings: Mapping[str, str]) -> Iterator[tuple[int, dict[str, str | None]]]:
        """Yield the line of each row and its cells under the names of their columns.

        An empty cell is an absent value, so that a required one gives the contract's reason.
        """
        texts = [table.rows[heading].to_pylist() for heading in headings.values()]
        for line, *cells in zip(table.lines.tolist(), *texts, strict=True):
            yield line, {name: cell or None for name, cell in zip(headings, cells, strict=True)}

    def _described(self) -> str:
        text = f"{self.file} has {', '.join(self.required)}"
        if self.optional:
            text += f" and may have {', '.join(self.optional)}"
        if self.portuguese:
            text += f", or their Portuguese names: {', '.join(self.portuguese[name][0] for name in self.required)}"
        return text + "."
