"""Read spreadsheets as people send them: delimited text in any usual encoding, and workbooks.

Whatever the file, a table has the headings as written, every cell as text and for every row its line in the
file. ``read_table`` is for files that fit into memory; ``open_table`` reads in chunks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.errors import UnreadableFile
from toolkit.operations.spreadsheets.chunks import Chunk, Layout, Lines, Reading
from toolkit.operations.spreadsheets.delimited import DelimitedText
from toolkit.operations.spreadsheets.sources import TableSource, find_sources
from toolkit.operations.spreadsheets.workbook import Workbook
from toolkit.operations.spreadsheets.workbook_process import CellKind

__all__ = [
    "CellKind",
    "Chunk",
    "Layout",
    "Reading",
    "SpreadsheetTable",
    "Table",
    "TableSource",
    "find_sources",
    "open_table",
    "read_table",
]


WHOLE_BYTES: Final = 256 * 1024**2
"""Text in the cells of a table that is read into memory as a whole, at most."""


@dataclass(frozen=True)
class Table:
    """A whole table: ``rows`` are strings under the headings of the file; ``lines`` are their lines in it."""

    rows: pa.Table
    lines: Lines
    layout: Layout


SpreadsheetTable = DelimitedText | Workbook
"""A table that is understood and can be read."""


def open_table(source: TableSource, reading: Reading | None = None) -> SpreadsheetTable:
    """Find out how ``source`` is written, and make ready to read it.

    Raises:
        UnreadableFile: it is missing, damaged, protected, empty, or of another kind.
    """
    return (Workbook if source.workbook else DelimitedText)(source, reading or Reading())


def read_table(path: Path, reading: Reading | None = None) -> Table:
    """Read one table into memory; blank rows and columns without a heading are left out.

    Raises:
        UnreadableFile: it cannot be read, is too large, or has a row that does not fit, or a heading twice.
    """
    sources = find_sources([path])
    if len(sources) > 1:
        raise UnreadableFile(f"{path}: holds {len(sources)} tables; name one file.")
    table = open_table(sources[0], reading)
    chunks, size = [], 0
    for chunk in table.chunks():
        size += sum(column.nbytes for column in chunk.columns)
        if size > WHOLE_BYTES:
            raise UnreadableFile(
                f"{table.source.name}: holds more than {WHOLE_BYTES >> 20} MiB of text; split it."
            )
        for row, reason in chunk.faults.items():
            raise UnreadableFile(f"{path}, line {chunk.lines[row]}: {reason}.")
        chunks.append(chunk)
    headings = table.layout.headings
    named = {heading: position for position, heading in enumerate(headings) if heading}
    if len(named) < sum(1 for heading in headings if heading):
        raise UnreadableFile(f"{path}: a heading stands there twice; the headings are {', '.join(headings)}.")
    cells = {
        heading: pa.chunked_array([_texts(chunk, position) for chunk in chunks], pa.string())
        for heading, position in named.items()
    }
    lines = np.concatenate([np.empty(0, np.int64), *(chunk.lines for chunk in chunks)])
    return Table(pa.table(cells), lines, table.layout)


def _texts(chunk: Chunk, position: int) -> pa.StringArray:
    """Return the cells of a column; an error of a formula is no text."""
    kinds, cells = chunk.kinds.get(position), chunk.columns[position]
    return cells if kinds is None else pc.if_else(pa.array(kinds == CellKind.ERROR), "", cells)
