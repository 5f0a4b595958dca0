"""Match the headings of a table with the columns that a kind of file has."""

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from toolkit.errors import InvalidField, UnreadableFile
from toolkit.operations.spreadsheets import Table


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
                f"{path}: the columns {', '.join(lacking)} are missing. {listed}. {self._described()}"
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
