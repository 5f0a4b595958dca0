"""The files that come back: rejected rows to correct, and clients who were there already.

They hold personal data, so only their owner may read them. They are written in a private folder beside their
place and moved there when the load has succeeded; what a killed load has left is removed by the next.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final
from uuid import UUID

import xlsxwriter
from filelock import FileLock, Timeout
from xlsxwriter.exceptions import XlsxWriterException

from toolkit.errors import InvalidInput
from toolkit.operations.bulk_load.headings import OWN
from toolkit.operations.bulk_load.results import Tally
from toolkit.operations.spreadsheets import CellKind, Chunk

_OWNER_ONLY: Final = 0o600
_PREFIX: Final = ".toolkit-load-"
_LOCK: Final = "lock"

REJECTED_SHEET: Final = "rejected"
SHEET_ROWS: Final = 1_048_576
SHEET_CELL: Final = 32_767
"""Characters; Excel's own limits."""

FORMULA: Final = re.compile(r"'*[=+\-@\t\r]")
"""A cell that a spreadsheet would take for a formula, however many apostrophes keep it from that already."""

ESCAPED: Final = r"^'('*[=+\-@\t\r])"
"""What ``escape`` makes of such a cell: one apostrophe more, which is taken away when our file is loaded."""


def escape(cell: str) -> str:
    """The cell as it can stand in a CSV file without ever being run as a formula."""
    return f"'{cell}" if FORMULA.match(cell) else cell


class Outputs:
    """The files written about one source, under ``folder``; as a context manager, gone unless published."""

    def __init__(self, folder: Path, source: str, delimiter: str | None, headings: Sequence[str]) -> None:
        self._folder, self._source, self._delimiter = folder, source, delimiter or ";"
        self._headings = (*headings, *OWN)
        self._place: _PrivateFolder | None = None
        self._rejected: tuple[_RejectedCsv, _RejectedWorkbook] | None = None
        self._skipped: _SkippedCsv | None = None
        self.notes: list[str] = []

    def __enter__(self) -> Outputs:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files():
            with suppress(OSError, XlsxWriterException):
                file.close()
        if self._place is not None:
            self._place.remove()

    def reject(self, chunk: Chunk, reasons: Sequence[str]) -> None:
        """Add rows as they are in the source, with the reasons against each.

        Raises:
            InvalidInput: the folder cannot be written.
            OSError: the disk is full.
        """
        if self._rejected is None:
            place = self._private()
            self._rejected = (
                _RejectedCsv(place / "rejected.csv", self._headings, self._delimiter),
                _RejectedWorkbook(place, self._headings),
            )
        text, workbook = self._rejected
        rows = zip(*(column.to_pylist() for column in chunk.columns), strict=True)
        numbers = {column: kinds == CellKind.NUMBER for column, kinds in chunk.kinds.items()}
        for row, (cells, line, reason) in enumerate(zip(rows, chunk.lines.tolist(), reasons, strict=True)):
            text.add(cells, line, reason)
            workbook.add(cells, {column for column, mask in numbers.items() if mask[row]}, line, reason)

    def skip(self, rows: Iterable[tuple[int, UUID | None]]) -> None:
        """Add lines whose client is registered already, with the client's id where there is one yet.

        Raises:
            InvalidInput: the folder cannot be written.
            OSError: the disk is full.
        """
        if self._skipped is None:
            self._skipped = _SkippedCsv(self._private() / "skipped.csv")
        self._skipped.add(rows)

    def complete(self, tally: Tally) -> None:
        """Write everything out, so that a full disk shows before the rows are committed.

        Raises:
            OSError: the disk is full.
        """
        if self._rejected is not None:
            workbook = self._rejected[1]
            workbook.summarise(self._source, tally)
            if workbook.problem:
                self.notes.append(f"No .rejected.xlsx: {workbook.problem}; use the .rejected.csv.")
        for file in self._files():
            file.close()
            _sync(file.path)

    def publish(self) -> tuple[tuple[Path, ...], Path | None]:
        """Move the files to their places: those of rejected rows, and the one of skipped rows."""
        moved = [self._move(file) for file in self._files()]
        skipped = moved.pop() if self._skipped is not None else None
        return tuple(moved), skipped

    def _private(self) -> Path:
        if self._place is None:
            self._place = _PrivateFolder(self._folder)
        return self._place.path

    def _files(self) -> list[_CsvFile | _RejectedWorkbook]:
        rejected = self._rejected or ()
        files = [*rejected, *([self._skipped] if self._skipped else [])]
        return [file for file in files if not (isinstance(file, _RejectedWorkbook) and file.problem)]

    def _move(self, file: _CsvFile | _RejectedWorkbook) -> Path:
        place = self._folder / f"{self._source}.{file.path.name}"
        file.path.chmod(_OWNER_ONLY)
        file.path.replace(place)
        return place


class _PrivateFolder:
    """A folder under ``parent`` that only its owner may enter, locked while it is in use."""

    def __init__(self, parent: Path) -> None:
        try:
            parent.mkdir(parents=True, exist_ok=True)
            _remove_leftovers(parent)
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        except OSError as error:
            raise InvalidInput(
                f"{parent}: rejected and skipped rows cannot be written there ({error.strerror}); "
                "choose another folder by --out."
            ) from None
        self._lock = FileLock(self.path / _LOCK)
        self._lock.acquire()

    def remove(self) -> None:
        """Leave nothing."""
        self._lock.release()
        shutil.rmtree(self.path, ignore_errors=True)


class _CsvFile:
    """A CSV file as Excel likes it: UTF-8 with a byte order mark."""

    def __init__(self, path: Path, headings: Sequence[str], delimiter: str) -> None:
        self.path = path
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
        self._stream: IO[str] = os.fdopen(descriptor, "w", encoding="utf-8-sig", newline="")
        self._writer = csv.writer(self._stream, delimiter=delimiter)
        self._writer.writerow(headings)

    def close(self) -> None:
        self._stream.close()


class _RejectedCsv(_CsvFile):
    def __init__(self, path: Path, headings: Sequence[str], delimiter: str) -> None:
        super().__init__(path, [escape(heading) for heading in headings], delimiter)

    def add(self, cells: Sequence[str], line: int, reasons: str) -> None:
        self._writer.writerow([*map(escape, cells), line, reasons])


class _SkippedCsv(_CsvFile):
    def __init__(self, path: Path) -> None:
        super().__init__(path, ("line", "clientId"), ";")

    def add(self, rows: Iterable[tuple[int, UUID | None]]) -> None:
        self._writer.writerows((line, client_id or "") for line, client_id in rows)


class _RejectedWorkbook:
    """The same as a workbook, with a summary on a sheet of its own."""

    def __init__(self, folder: Path, headings: Sequence[str]) -> None:
        self.path = folder / "rejected.xlsx"
        self.problem: str | None = None
        self._closed = False
        self._book = xlsxwriter.Workbook(
            str(self.path),
            {
                "constant_memory": True,
                "strings_to_formulas": False,
                "strings_to_urls": False,
                "strings_to_numbers": False,
                "tmpdir": str(folder),
            },
        )
        self._sheet = self._book.add_worksheet(REJECTED_SHEET)
        self._row = 0
        self._write(headings)
        self._sheet.freeze_panes(1, 0)

    def add(self, cells: Sequence[str], numbers: Collection[int], line: int, reasons: str) -> None:
        if self._row >= SHEET_ROWS:
            self.problem = f"a sheet has no more than {SHEET_ROWS:,} rows"
        if any(len(cell) > SHEET_CELL for cell in cells) or len(reasons) > SHEET_CELL:
            self.problem = f"a cell has more than {SHEET_CELL:,} characters"
        if self.problem is None:
            self._write((*cells, line, reasons), numbers)

    def _write(self, cells: Sequence[str | int], numbers: Collection[int] = ()) -> None:
        for column, cell in enumerate(cells):
            if isinstance(cell, int):
                self._sheet.write_number(self._row, column, cell)
            elif column in numbers:
                self._sheet.write_number(self._row, column, float(cell))
            elif cell:
                self._sheet.write_string(self._row, column, cell)
        self._row += 1

    def summarise(self, source: str, tally: Tally) -> None:
        sheet = self._book.add_worksheet("summary")
        rows: list[tuple[str, Any]] = [
            ("source", source),
            ("accepted", tally.accepted),
            ("rejected", tally.rejected),
            ("skipped", tally.skipped),
        ]
        groups: list[tuple[str, Mapping[str, int]]] = [
            ("reasons", tally.reasons),
            ("repairs", tally.repairs),
            ("warnings", tally.warnings),
        ]
        for title, counts in groups:
            rows += [("", ""), (title, ""), *sorted(counts.items(), key=lambda item: -item[1])]
        for number, (name, value) in enumerate(rows):
            sheet.write_string(number, 0, name)
            (sheet.write_number if isinstance(value, int) else sheet.write_string)(number, 1, value)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._book.close()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_leftovers(folder: Path) -> None:
    """Remove what killed loads have left here; a load that is running holds the lock of its folder."""
    for leftover in folder.glob(f"{_PREFIX}*"):
        lock = FileLock(leftover / _LOCK)
        try:
            with lock.acquire(timeout=0):
                shutil.rmtree(leftover, ignore_errors=True)
        except (Timeout, OSError):
            continue
