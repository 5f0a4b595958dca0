"""Write the files that a load returns: rejected rows to correct, and clients who were registered already.

They hold personal data, so only their owner may read them. They are written in a private folder beside their
place and moved there when the load has succeeded; what a killed load has left is removed by the next.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from toolkit.atomic_files import PrivateFolder, sync
from toolkit.errors import InvalidInput
from toolkit.intake.sources import OWN, REJECTED_SHEET, Chunk, Mask, escape, harmless
from toolkit.intake.workbook_process import CellKind
from toolkit.intake.workbook_writer import Cells, Form, SheetLooks, Style, Workbook
from toolkit.language import ENGLISH, Language

_OWNER_ONLY: Final = 0o600
_NONE: Final[Mapping[int, Mask]] = {}
_WHY_WIDE: Final = 60
_WIDEST: Final = 40
"""Characters that a column of the workbook shows at most without wrapping or widening."""

Reasons = Sequence[tuple[str, str]]
"""The reasons against a row, each with the heading that it is about."""


class Outputs:
    """The files written about one source, under ``folder``; a context manager that removes unpublished ones."""

    def __init__(
        self,
        folder: Path,
        source: str,
        delimiter: str | None,
        headings: Sequence[str],
        language: Language = ENGLISH,
    ) -> None:
        self._language = language
        self._folder, self._source, self._delimiter = folder, source, delimiter or ";"
        self._headings = tuple(headings)
        self._place: PrivateFolder | None = None
        self._rejected: tuple[_CsvFile, Workbook] | None = None
        self._skipped: _CsvFile | None = None
        self.notes: list[str] = []

    def __enter__(self) -> Outputs:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._all_files():
            with suppress(OSError):
                file.close()
        if self._place is not None:
            self._place.remove()

    def reject(self, chunk: Chunk, reasons: Sequence[Reasons], wrong: Mapping[int, Mask] = _NONE) -> None:
        """Add rows as they are in the source, with the reasons against each; ``wrong`` tells the cells, by column.

        Raises:
            InvalidInput: the folder cannot be written, or its disk is full.
        """
        line, why = pa.array(chunk.lines).cast(pa.string()), pa.array(_told(reasons, str), pa.string())
        with self._advising():
            if self._rejected is None:
                self._rejected = self._begin_rejected([why, line, *chunk.columns])
            text, workbook = self._rejected
            text.add(_rows([*map(escape, chunk.columns), line, why]))
            told = pa.array(_told(reasons, self._language.tell), pa.string())
            cells = [
                Cells(
                    column,
                    forms={Form.NUMBER: chunk.kinds[place] == CellKind.NUMBER} if place in chunk.kinds else {},
                    styles={Style.RED: wrong[place]} if place in wrong else {},
                )
                for place, column in enumerate(chunk.columns)
            ]
            workbook.add([Cells(told, style=Style.WRAPPED), Cells(line, Form.NUMBER), *cells])

    def skip(self, lines: Sequence[int], client_ids: Sequence[UUID | None]) -> None:
        """Add lines whose client is registered already, with the client's id where there is one yet.

        Raises:
            InvalidInput: the folder cannot be written, or its disk is full.
        """
        with self._advising():
            if self._skipped is None:
                self._skipped = _CsvFile(self._private() / "skipped.csv", ("line", "clientId"), ";")
            self._skipped.add((line, each or "") for line, each in zip(lines, client_ids, strict=True))

    def complete(self) -> None:
        """Write everything out, so that a full disk shows before the rows are committed.

        Raises:
            InvalidInput: the folder cannot be written, or its disk is full.
        """
        with self._advising():
            for file in self._all_files():
                file.close()
                sync(file.path)
        if self._rejected is not None and self._rejected[1].problem:
            self.notes.append(f"No .rejected.xlsx: {self._rejected[1].problem}; use the .rejected.csv.")

    def publish(self) -> tuple[tuple[Path, ...], Path | None]:
        """Move the files to their places: those of rejected rows, and the one of skipped rows."""
        rejected = [file for file in self._rejected or () if not (isinstance(file, Workbook) and file.problem)]
        moved = tuple(self._move(file) for file in rejected)
        return moved, self._move(self._skipped) if self._skipped else None

    @contextmanager
    def _advising(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InvalidInput(
                "{}: rejected and skipped rows cannot be written there ({}); nothing was loaded. Make room, "
                "or choose another folder by --out.",
                self._folder,
                error.strerror,
            ) from None

    def _begin_rejected(self, columns: Sequence[pa.StringArray]) -> tuple[_CsvFile, Workbook]:
        """Begin the table for programs, and the workbook for people in their language, the reasons first."""
        place = self._private()
        headings = [harmless(heading) for heading in (*self._headings, *OWN)]
        workbook = Workbook(place / "rejected.xlsx")
        first = (*reversed(OWN), *self._headings)
        workbook.begin_sheet(REJECTED_SHEET, SheetLooks([_WHY_WIDE, *map(_width, first[1:], columns[1:])], 2))
        workbook.add_row(*first, style=Style.HEADING)
        return _CsvFile(place / "rejected.csv", headings, self._delimiter), workbook

    def _private(self) -> Path:
        if self._place is None:
            self._place = PrivateFolder(self._folder)
        return self._place.path

    def _all_files(self) -> list[_CsvFile | Workbook]:
        return [*(self._rejected or ()), *([self._skipped] if self._skipped else [])]

    def _move(self, file: _CsvFile | Workbook) -> Path:
        assert self._place is not None
        return self._place.publish(file.path, f"{self._source}.{file.path.name}")


def _width(heading: str, column: pa.StringArray) -> float:
    """Return the width, in characters, that shows the heading and most cells of the first rows."""
    longest = pc.max(pc.utf8_length(column)).as_py() or 0
    return min(max(longest, len(heading)) + 3, _WIDEST)


class _CsvFile:
    """A CSV file that Excel opens: UTF-8 with a byte order mark."""

    def __init__(self, path: Path, headings: Iterable[object], delimiter: str) -> None:
        self.path = path
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
        self._stream = os.fdopen(descriptor, "w", encoding="utf-8-sig", newline="")
        writer = csv.writer(self._stream, delimiter=delimiter)
        writer.writerow(headings)
        self.add = writer.writerows

    def close(self) -> None:
        self._stream.close()


def _rows(columns: Iterable[pa.StringArray]) -> list[tuple[str, ...]]:
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def _told(reasons: Sequence[Reasons], say: Callable[[str], str]) -> list[str]:
    """Return the reasons of each row in one text; the headings stay."""
    messages = {message for each in reasons for _, message in each}
    told = {message: say(message) for message in messages}
    return ["; ".join(f"{heading}: {told[message]}" for heading, message in each) for each in reasons]
