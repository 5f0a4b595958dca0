"""Plan the load of a file: its headings and columns, before any row is read."""

from collections.abc import Iterator
from pathlib import Path

from toolkit.operations.register.bulk_load.headings import Headings, source_columns
from toolkit.operations.register.bulk_load.rejects import REJECTED_SHEET
from toolkit.operations.register.bulk_load.results import Understood
from toolkit.operations.spreadsheets import Chunk, SpreadsheetTable
from toolkit.operations.spreadsheets.formulas import unescape


class Plan:
    """The rows to load from one table, and the ``folder`` for the files that come back."""

    def __init__(self, table: SpreadsheetTable, headings: Headings, folder: Path) -> None:
        layout = table.layout
        self.table, self.folder = table, folder
        self._source_columns = source_columns(layout.headings)
        self.headings = layout.headings[self._source_columns or slice(None)]
        self.columns = headings.columns(table.source.name, layout.heading_line, self.headings)
        fields = {self.headings[position]: name for name, position in self.columns.items()}
        self.understood = Understood(
            source=table.source.name,
            layout=layout,
            fields={heading: fields[heading] for heading in self.headings if heading in fields},
            ignored=tuple(heading for heading in layout.headings if heading and heading not in fields),
        )

    def chunks(self) -> Iterator[Chunk]:
        """Return the rows; those that a load has written as rejected, as they were in their source."""
        chunks, source = self.table.chunks(), self._source_columns
        if source is None:
            return chunks
        # Nothing is escaped in our workbooks; in one made from our CSV file, Excel names the sheet after that.
        escaped = self.understood.layout.sheet != REJECTED_SHEET
        return (_as_before(chunk, source, escaped=escaped) for chunk in chunks)


def _as_before(chunk: Chunk, source: slice, *, escaped: bool) -> Chunk:
    columns, first = chunk.columns[source], source.start or 0
    return Chunk(
        [unescape(column) for column in columns] if escaped else columns,
        chunk.lines,
        chunk.size,
        {column - first: kinds for column, kinds in chunk.kinds.items() if 0 <= column - first < len(columns)},
        chunk.faults,
    )
