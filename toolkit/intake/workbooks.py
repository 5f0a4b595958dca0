"""Read workbooks (XLSX and similar): every cell as text, with its type in the workbook.

The file is read by another process (``workbook_process``) in bounds of memory, time and size, into a file without
a name, so that a kill leaves nothing.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from hashlib import file_digest
from itertools import islice
from typing import IO, Final

from toolkit.errors import UnreadableFile
from toolkit.intake import workbook_process
from toolkit.intake.sources import HEADING_ROWS, Chunk, Layout, Recognises, Record, TableSource, any_cell, chunk_of
from toolkit.intake.workbook_process import Fault

MEMORY_BYTES: Final = 3 * 1024**3  # of the process that reads, where the system keeps such a limit (Linux)
SECONDS: Final = 180  # processor seconds for one workbook
FILE_BYTES: Final = 512 * 1024**2  # the largest workbook
CELL_BYTES: Final = 1024**3  # the cells of a workbook as they are handed over, at most
_ROWS: Final = 20_000
_CHUNK_BYTES: Final = 32 * 1024 * 1024  # a chunk ends with the row that reaches either


class WorkbookTable:
    """A workbook whose layout is understood: one sheet of it holds the table."""

    def __init__(self, source: TableSource, recognises: Recognises, sheet: str | None = None) -> None:
        self.source, self._wanted = source, sheet
        self._cells, digest = self._read()
        heads = _heads(self._cells)
        name, row = _find_headings(source, heads, recognises)
        self._start = heads[name][0]
        self.layout = Layout(
            headings=tuple(cell.strip() for cell in row.cells), heading_line=row.line, sha256=digest, sheet=name
        )

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rows below the headings."""
        self._cells.seek(self._start)
        width = len(self.layout.headings)
        rows: list[Record] = []
        size = 0
        for line in self._cells:
            if line.startswith(b"{"):
                break
            row = _row(line)
            if row.line <= self.layout.heading_line:
                continue
            rows.append(row)
            size += len(line)
            if len(rows) == _ROWS or size > _CHUNK_BYTES:
                yield chunk_of(rows, width)
                rows, size = [], 0
        if rows:
            yield chunk_of(rows, width)

    def _read(self) -> tuple[IO[bytes], str]:
        """Return the cells of the workbook, and the digest of the file.

        Raises:
            UnreadableFile: the process refuses the workbook, or a bound ended it.
        """
        cells = tempfile.TemporaryFile()  # noqa: SIM115  # read as long as the table is
        weakref.finalize(self, cells.close)
        with self.source.path.open("rb") as file:
            if os.fstat(file.fileno()).st_size > FILE_BYTES:
                raise UnreadableFile(
                    "{}: holds more than {} MiB; split the table, or save it as CSV.",
                    self.source.name,
                    FILE_BYTES >> 20,
                )
            digest = file_digest(file, "sha256").hexdigest()
            file.seek(0)
            bounds = map(str, (file.fileno(), MEMORY_BYTES, SECONDS, CELL_BYTES))
            ended = subprocess.run(  # noqa: S603  # our own interpreter and script
                [sys.executable, "-I", workbook_process.__file__, *bounds, self._wanted or ""],
                stdin=subprocess.DEVNULL,
                stdout=cells,
                stderr=subprocess.PIPE,
                pass_fds=(file.fileno(),),
                env={"PATH": os.defpath},
                check=False,
            )
        if ended.returncode:
            raise self._refusal(ended.returncode, ended.stderr.decode(errors="replace"))
        return cells, digest

    def _refusal(self, status: int, about: str) -> UnreadableFile:
        """Return the refusal for a status of the process; where memory lacks, the reader gives up by SIGABRT."""
        by_signal = {-signal.SIGXCPU: Fault.SECONDS, -signal.SIGSEGV: Fault.DAMAGED}
        fault = Fault(status) if status in set(Fault) else by_signal.get(status, Fault.MEMORY)
        values = {
            Fault.SHEET_DAMAGED: (about,),
            Fault.NO_SHEET: (self._wanted, about),
            Fault.MEMORY: (MEMORY_BYTES >> 30,),
            Fault.SECONDS: (SECONDS,),
        }
        return UnreadableFile(REFUSALS[fault], self.source.name, *values.get(fault, ()))


def _heads(cells: IO[bytes]) -> dict[str, tuple[int, list[Record]]]:
    """Return the place of the first row of each sheet among the cells, and its first rows."""
    found: dict[str, tuple[int, list[Record]]] = {}
    head: list[Record] = []
    place = 0
    cells.seek(0)
    for line in cells:
        place += len(line)
        if line.startswith(b"{"):
            head = []
            found[json.loads(line)["name"]] = place, head
        elif len(head) < HEADING_ROWS:
            head.append(_row(line))
    return found


def _row(line: bytes) -> Record:
    number, cells, numbers = json.loads(line)
    return Record(number, number + 1, cells, numbers=numbers)


def _find_headings(
    source: TableSource, heads: Mapping[str, tuple[int, list[Record]]], recognises: Recognises
) -> tuple[str, Record]:
    """Return the name of the one sheet that has the headings, and the row they are in."""
    for recognised in (recognises, any_cell):
        found: list[tuple[str, Record]] = []
        for name, (_, head) in heads.items():
            headings = (row for row in head if row.line <= HEADING_ROWS and recognised(row.cells))
            found += [(name, row) for row in islice(headings, 1)]
        if len(found) > 1 and recognised is not any_cell:
            listed = ", ".join(f"“{name}”" for name, _ in found)
            raise UnreadableFile(
                "{}: the sheets {} all have the headings; choose one by --sheet.", source.name, listed
            )
        if found:
            return found[0]
    raise UnreadableFile("{}: the workbook is empty.", source.name)


REFUSALS: Final = {
    Fault.PROTECTED: "{}: protected by a password; save it without one.",
    Fault.DAMAGED: "{}: is no workbook that can be read, or is damaged; save it again as XLSX.",
    Fault.SHEET_DAMAGED: "{}: the sheet “{}” is damaged; save it again as XLSX.",
    Fault.NO_SHEET: "{}: has no sheet “{}”; there are {}.",
    Fault.MEMORY: "{}: takes more than {} GiB of memory to read: its cells lie too far apart, or there is "
    "too much in it; copy the table alone into a new workbook, or save it as CSV.",
    Fault.SECONDS: "{}: takes more than {} seconds to read; copy the table alone into a new workbook, or save "
    "it as CSV.",
    Fault.ERRORS: "{}: has errors of formulas, which this format does not tell from empty cells; save it as XLSX.",
    Fault.DAYS_FROM_1904: "{}: counts its days from 1904, as old Macs did; save it as CSV.",
}
