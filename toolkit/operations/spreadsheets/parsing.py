"""Parse a block of delimited text into Arrow columns, with the line of every row.

A plain block (no quotation marks, as many rows as lines) goes to Arrow's parser as it is. Any other is first
looked at by its bytes: where its records end, and how many cells each has. Regular records still go to Arrow
together; only the rest is cut one by one (``records``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

from toolkit.operations.spreadsheets.records import LONGEST_RECORD, UNCLOSED, Record, record_at

Positions = npt.NDArray[np.int64]

_LF, _CR, _QUOTE = 10, 13, 34


@dataclass(frozen=True, slots=True)
class Parsed:
    """The whole records at the start of a block; lines are counted from zero.

    ``columns`` and ``lines`` are those of the regular records; ``odd`` are the others with their lines. The
    records take up the block up to ``end``, which is ``line_count`` lines.
    """

    columns: Sequence[pa.StringArray]
    lines: Positions
    end: int
    line_count: int
    odd: Sequence[tuple[int, Record]] = field(default=())


def parse(text: bytes, delimiter: bytes, width: int, *, final: bool) -> Parsed:
    """Parse ``text``, which starts at a record; unless it is ``final``, more may follow its last line end."""
    if b'"' not in text and text.count(b"\r") == text.count(b"\r\n"):
        end = len(text) if final else text.rfind(b"\n") + 1
        line_count = text.count(b"\n", 0, end) + (end > 0 and not text.endswith(b"\n", 0, end))
        columns = _by_arrow(memoryview(text)[:end], delimiter, width, line_count)
        if columns is not None:
            return Parsed(columns, np.arange(line_count), end, line_count)
    return _Survey(text, delimiter, width, final).parsed()


def _by_arrow(text: memoryview, delimiter: bytes, width: int, rows: int) -> list[pa.StringArray] | None:
    """The columns, if these are ``rows`` regular records."""
    names = [str(column) for column in range(width)]
    if rows == 0:
        return [pa.array([], pa.string()) for _ in names]
    try:
        table = csv.read_csv(
            pa.BufferReader(pa.py_buffer(text)),
            read_options=csv.ReadOptions(column_names=names, block_size=len(text) + 1, use_threads=False),
            parse_options=csv.ParseOptions(delimiter=delimiter.decode(), newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, check_utf8=False
            ),
        )
    except pa.ArrowInvalid:
        return None
    return [column.combine_chunks() for column in table.columns] if table.num_rows == rows else None


class _Survey:
    """Where the records of a block end and which of them are regular, from its bytes."""

    def __init__(self, text: bytes, delimiter: bytes, width: int, final: bool) -> None:
        self.text, self.delimiter, self.width, self.final = text, delimiter, width, final
        self.bytes = np.frombuffer(text, dtype=np.uint8)
        self.line_ends = self._at(_LF)
        self.quotes = self._at(_QUOTE)
        self.odd: dict[int, Record] = {}
        quoting_is_regular = self._quoting_is_regular()
        self.ends = self._ends_outside_quotes() if quoting_is_regular else self._all_ends()
        if not quoting_is_regular:
            self._cut_quoted_lines()

    def parsed(self) -> Parsed:
        end = int(self.ends[-1]) if self.ends.size else 0
        starts = np.concatenate(([0], self.ends[:-1])) if self.ends.size else self.ends
        lines = np.searchsorted(self.line_ends, starts)
        odd_starts = np.fromiter(self.odd, np.int64, len(self.odd))
        taken = np.isin(starts, odd_starts)
        for start in self.odd:
            taken |= (starts > start) & (starts < self.odd[start].end)
        blank = self._lengths(starts) == 0
        regular = (self._delimiters_within(starts) == self.width - 1) & ~blank & ~taken & ~self._lone_cr(starts)
        columns = self._columns(starts, regular, whole=bool((regular | blank).all()))
        if columns is None:
            regular[:] = False
            columns = _by_arrow(memoryview(b""), self.delimiter, self.width, 0)
            assert columns is not None
        for start in starts[~regular & ~blank & ~taken].tolist():
            self.odd[start] = record_at(self.text, start, self.delimiter, self.width)
        line_of = dict(zip(starts.tolist(), lines.tolist(), strict=True)) if self.odd else {}
        line_count = int(np.searchsorted(self.line_ends, end)) + (end > 0 and self.text[end - 1] != _LF)
        return Parsed(
            columns,
            lines[regular],
            end,
            line_count,
            [(line_of[start], self.odd[start]) for start in sorted(self.odd)],
        )

    def _at(self, value: int) -> Positions:
        return np.flatnonzero(self.bytes == value)

    def _quoting_is_regular(self) -> bool:
        """Whether quotation marks stand only around whole cells, or doubled inside of them."""
        before = np.concatenate(([_LF], self.bytes))[self.quotes[::2]]
        after = np.concatenate((self.bytes, [_LF]))[self.quotes[1::2] + 1]
        bounds = [self.delimiter[0], _LF, _QUOTE]
        open_at_end = bool(self.quotes.size % 2)
        if open_at_end and (self.final or len(self.text) - int(self.quotes[-1]) > LONGEST_RECORD):
            return False
        return bool(np.isin(before, bounds).all() and np.isin(after, [*bounds, _CR]).all())

    def _ends_outside_quotes(self) -> Positions:
        ends = self._all_ends()
        return np.asarray(ends[np.searchsorted(self.quotes, ends) % 2 == 0])

    def _all_ends(self) -> Positions:
        ends = self.line_ends + 1
        if self.final and self.text and self.text[-1] != _LF:
            ends = np.append(ends, len(self.text))
        return ends

    def _cut_quoted_lines(self) -> None:
        """Cut the lines that hold quotation marks one by one; the others end where they end."""
        position = 0
        for quote in self.quotes.tolist():
            if quote < position:
                continue
            start = self.text.rfind(b"\n", position, quote) + 1 or position
            record = record_at(self.text, start, self.delimiter, self.width)
            unfinished = record.fault == UNCLOSED or record.end == len(self.text)
            if unfinished and not self.final and len(self.text) - start < LONGEST_RECORD:
                self.ends = self.ends[self.ends <= start]
                return
            self.odd[start] = record
            position = record.end

    def _lengths(self, starts: Positions) -> Positions:
        """How many bytes each record has, without its line end."""
        last = self.bytes[self.ends - 1] == _LF
        lengths = self.ends - starts - last
        crlf = last & (lengths > 0) & (self.bytes[np.maximum(self.ends - 2, 0)] == _CR)
        return np.asarray(lengths - crlf, dtype=np.int64)

    def _delimiters_within(self, starts: Positions) -> Positions:
        """How many delimiters outside of quotation marks each record has."""
        found = self._at(self.delimiter[0])
        if self.quotes.size and not self.odd:
            found = found[np.searchsorted(self.quotes, found) % 2 == 0]
        return np.asarray(np.searchsorted(found, self.ends) - np.searchsorted(found, starts))

    def _lone_cr(self, starts: Positions) -> npt.NDArray[np.bool_]:
        """Which records hold a carriage return that ends no line; Arrow would end one there."""
        returns = self._at(_CR)
        following = np.append(self.bytes, 0)[returns + 1]
        lone = returns[following != _LF]
        return np.asarray(np.searchsorted(lone, self.ends) > np.searchsorted(lone, starts))

    def _columns(
        self, starts: Positions, regular: npt.NDArray[np.bool_], *, whole: bool
    ) -> list[pa.StringArray] | None:
        if whole:
            text = memoryview(self.text)[: int(self.ends[-1]) if self.ends.size else 0]
        else:
            kept = np.repeat(regular, self.ends - starts)
            text = memoryview(self.bytes[: kept.size][kept].tobytes())
        return _by_arrow(text, self.delimiter, self.width, int(regular.sum()))
