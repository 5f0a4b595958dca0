"""A file with its headings understood, before any row of it is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from toolkit.operations.register.bulk_load.headings import Headings, width_of_source
from toolkit.operations.register.bulk_load.rejects import REJECTED_SHEET
from toolkit.operations.register.bulk_load.results import Understood
from toolkit.operations.spreadsheets import Chunk, SpreadsheetTable
from toolkit.operations.spreadsheets.formulas import unescape


class Plan:
    """The rows to load from one table, and the ``folder`` for the files that come back."""

    def __init__(self, table: SpreadsheetTable, headings: Headings, folder: Path) -> None:
        layout = table.layout
        self.table, self.folder = table, folder
        self._width_of_source = width_of_source(layout.headings)
        self.headings = layout.headings[: self._width_of_source]
        self.columns = headings.columns(table.source.name, layout.heading_line, self.headings)
        field_at = {position: name for name, position in self.columns.items()}
        named = [(position, heading) for position, heading in enumerate(layout.headings) if heading]
        self.understood = Understood(
            source=table.source.name,
            layout=layout,
            fields={heading: field_at[position] for position, heading in named if position in field_at},
            ignored=tuple(heading for position, heading in named if position not in field_at),
        )

    def chunks(self) -> Iterator[Chunk]:
        """The rows; those that a load has written as rejected, as they were in their source."""
        chunks, width = self.table.chunks(), self._width_of_source
        if width is None:
            return chunks
        # Nothing is escaped in our workbooks; in one made from our CSV file, Excel names the sheet after that.
        escaped = self.understood.layout.sheet != REJECTED_SHEET
        return (_as_before(chunk, width, escaped=escaped) for chunk in chunks)


def _as_before(chunk: Chunk, width: int, *, escaped: bool) -> Chunk:
    columns = chunk.columns[:width]
    return Chunk(
        [unescape(column) for column in columns] if escaped else columns,
        chunk.lines,
        chunk.size,
        {column: kinds for column, kinds in chunk.kinds.items() if column < len(columns)},
        chunk.faults,
    )
