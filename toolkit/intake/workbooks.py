"""Read workbooks (XLSX and similar): every cell as text, with its type in the workbook.

The file is read by another process (``workbook_process``) in bounds of memory and time.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Iterator
from hashlib import sha256
from typing import IO, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from toolkit.contract.fields import TRIMMED
from toolkit.errors import UnreadableFile
from toolkit.intake import workbook_process
from toolkit.intake.sources import HEADING_ROWS, Chunk, Layout, Reading, TableSource, any_cell
from toolkit.intake.workbook_process import SEPARATOR, Fault

MEMORY_BYTES: Final = 3 * 1024**3
"""Memory of the process that reads a workbook, where the system keeps such a limit (Linux)."""

SECONDS: Final = 180
"""Processor seconds for one workbook."""

FILE_BYTES: Final = 512 * 1024**2
"""The largest workbook, as it is outside of any archive."""

_BLOCK: Final = 1024 * 1024


class WorkbookTable:
    """A workbook whose layout is understood: one sheet of it holds the table."""

    def __init__(self, source: TableSource, reading: Reading) -> None:
        self.source = source
        self.stamp = source.stamp()
        self._process: _Process | None = None
        process, sheets, digest = self._begin(reading.sheet)
        sheet, row, headings = _find_headings(source, sheets, reading)
        self._process = process
        self.layout = Layout(
            kind="workbook",
            headings=headings,
            heading_line=row + 1,
            sha256=digest,
            size=sheet.height - row - 1,
            sheet=sheet.name,
        )

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rows below the headings.

        Raises:
            UnreadableFile: it takes more memory or time than allowed.
        """
        process, self._process = self._process or self._begin(self.layout.sheet)[0], None
        wanted = {"sheet": self.layout.sheet, "skip": self.layout.heading_line, "width": len(self.layout.headings)}
        try:
            process.ask(wanted | {"trimmed": TRIMMED})
            while not (found := process.answer()).get("end"):
                yield _chunk(found, process)
        finally:
            process.end()

    def release(self) -> None:
        """Give up the cells that are held between two readings."""
        process, self._process = self._process, None
        if process is not None:
            process.end()

    def _begin(self, sheet: str | None) -> tuple[_Process, list[_Sheet], str]:
        """Return a process that has read the workbook, what it found, and the digest of the file."""
        with tempfile.TemporaryFile() as file:  # without a name, so that a kill leaves nothing
            digest = _copy(self.source, file)
            process = _Process(self.source, file, sheet)
        process.ask({"sheet": sheet, "rows": HEADING_ROWS})
        return process, [_Sheet(**found) for found in process.answer()["sheets"]], digest


class _Sheet(NamedTuple):
    name: str
    height: int
    head: list[list[str]]


def _copy(source: TableSource, file: IO[bytes]) -> str:
    digest, size = sha256(), 0
    with source.open() as stream:
        while block := stream.read(_BLOCK):
            size += len(block)
            if size > FILE_BYTES:
                raise UnreadableFile(
                    "{}: holds more than {} MiB; split the table, or save it as CSV.",
                    source.name,
                    FILE_BYTES >> 20,
                )
            digest.update(block)
            file.write(block)
    file.seek(0)
    return digest.hexdigest()


def _find_headings(
    source: TableSource, sheets: list[_Sheet], reading: Reading
) -> tuple[_Sheet, int, tuple[str, ...]]:
    """Return the one sheet that has the headings, the row they are in, and the headings."""
    for recognises in (reading.recognises, any_cell):
        found = []
        for sheet in sheets:
            for number, cells in enumerate(sheet.head):
                if recognises(cells):
                    found.append((sheet, number, tuple(cell.strip() for cell in cells)))
                    break
        if len(found) > 1 and recognises is not any_cell:
            listed = ", ".join(f"“{sheet.name}”" for sheet, _, _ in found)
            raise UnreadableFile(
                "{}: the sheets {} all have the headings; choose one by --sheet.", source.name, listed
            )
        if found:
            return found[0]
    raise UnreadableFile("{}: the workbook is empty.", source.name)


class _Process:
    """The process that reads one workbook; its answers are used as cells and as nothing else."""

    def __init__(self, source: TableSource, file: IO[bytes], sheet: str | None) -> None:
        self._source, self._sheet = source, sheet
        self._process = subprocess.Popen(  # noqa: S603  # our own interpreter and script
            [sys.executable, "-I", workbook_process.__file__, *map(str, (file.fileno(), MEMORY_BYTES, SECONDS))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(file.fileno(),),
            env={"PATH": os.defpath},
        )
        self.end = weakref.finalize(self, _end, self._process)

    def ask(self, question: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer, or its lack, says why

    def answer(self) -> dict[str, Any]:
        """Return the next line of the process.

        Raises:
            UnreadableFile: the process refuses the workbook, or a bound ended it.
        """
        assert self._process.stdout is not None
        try:
            found: dict[str, Any] = json.loads(self._process.stdout.readline())
        except ValueError:
            found = {"fault": _FAULT_OF_END.get(self._process.wait(), Fault.MEMORY), "about": ""}
        if "fault" in found:
            fault, about = Fault(found["fault"]), found["about"]
            values = {
                Fault.SHEET_DAMAGED: (about,),
                Fault.NO_SHEET: (self._sheet, about),
                Fault.MEMORY: (MEMORY_BYTES >> 30,),
                Fault.SECONDS: (SECONDS,),
            }
            raise UnreadableFile(REFUSALS[fault], self._source.name, *values.get(fault, ()))
        return found

    def bytes(self, length: int) -> bytes:
        """Return the next bytes of an answer."""
        assert self._process.stdout is not None
        return self._process.stdout.read(length)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


_FAULT_OF_END: Final = {
    -signal.SIGXCPU: Fault.SECONDS,
    -signal.SIGSEGV: Fault.DAMAGED,
    1: Fault.DAMAGED,
}
"""The fault by the status that the process ended with; where memory lacks, the reader gives up by SIGABRT."""


REFUSALS: Final = {
    Fault.PROTECTED: "{}: protected by a password; save it without one.",
    Fault.DAMAGED: "{}: is no workbook that can be read, or is damaged; save it again as XLSX.",
    Fault.SHEET_DAMAGED: "{}: the sheet “{}” is damaged; save it again as XLSX.",
    Fault.NO_SHEET: "{}: has no sheet “{}”; there are {}.",
    Fault.MEMORY: "{}: takes more than {} GiB of memory to read: its cells lie too far apart, or there is "
    "too much in it; copy the table alone into a new workbook, or save it as CSV.",
    Fault.SECONDS: "{}: takes more than {} seconds to read; copy the table alone into a new workbook, or save "
    "it as CSV.",
}


def _chunk(found: dict[str, Any], process: _Process) -> Chunk:
    lines = np.asarray(found["lines"], dtype=np.int64)
    columns, kinds = [], {}
    for position, column in enumerate(found["columns"]):
        columns.append(_column(process.bytes(column["bytes"]), len(lines), plain=column["plain"]))
        if column["kinds"]:
            kinds[position] = np.frombuffer(process.bytes(column["kinds"]), np.uint8)
    return Chunk(columns, lines, found["size"], kinds=kinds)


def _column(data: bytes, count: int, *, plain: bool) -> pa.StringArray:
    """Return the cells between the separators, cut together, which is twice as fast as one by one."""
    if not count:
        return pa.array([], pa.string())
    if not plain:
        return pa.array(json.loads(data), pa.string())
    joined = np.frombuffer(data, np.uint8)
    separators = np.flatnonzero(joined == ord(SEPARATOR))
    ends = np.concatenate(([0], separators - np.arange(len(separators)), [len(joined) - len(separators)]))
    return pa.StringArray.from_buffers(
        count, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(joined[joined != ord(SEPARATOR)])
    )
