"""Parse a block of delimited text into Arrow columns, with the line of every row.

A plain block (no quotation marks, as many rows as lines) goes to Arrow's parser as it is. Any other is first
looked at by its bytes: where its records end, and how many cells each has. Regular records still go to Arrow
together; only the rest is cut one by one (``records``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

from toolkit.operations.spreadsheets.records import LONGEST_RECORD, UNCLOSED, Record, record_at

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_LF, _CR, _QUOTE = b'\n\r"'
_LINE_END = np.array([_LF], dtype=np.uint8)


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


def parse(text: bytes, delimiter: bytes, width: int, *, most: int, final: bool) -> Parsed:
    """Parse ``text``, which starts at a record; unless it is ``final``, more may follow its last line end.

    Regular records have ``width`` cells; others may have up to ``most``.
    """
    if b'"' not in text and not _has_lone_returns(text):
        end = len(text) if final else text.rfind(b"\n") + 1
        line_count = _count(text, _LF, end) + (end > 0 and not text.endswith(b"\n", 0, end))
        columns = _by_arrow(memoryview(text)[:end], delimiter, width, line_count)
        if columns is not None:
            return Parsed(columns, np.arange(line_count), end, line_count)
    return _Survey(text, delimiter, width, most, final).parsed()


def _has_lone_returns(text: bytes) -> bool:
    """Tell whether some carriage return ends no line."""
    if b"\r" not in text:
        return False
    data = np.frombuffer(text, dtype=np.uint8)
    following = data[np.flatnonzero(data[:-1] == _CR) + 1]
    return text.endswith(b"\r") or bool((following != _LF).any())


def _count(text: bytes, value: int, end: int) -> int:
    # Unlike bytes.count, this leaves other threads to work meanwhile.
    return int(np.count_nonzero(np.frombuffer(text, dtype=np.uint8)[:end] == value))


def _by_arrow(text: memoryview, delimiter: bytes, width: int, rows: int) -> list[pa.StringArray] | None:
    """Return the columns, if these are ``rows`` regular records."""
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
    """Find the starts and ends of a block's records, and the regular ones among them, from its bytes."""

    def __init__(self, text: bytes, delimiter: bytes, width: int, most: int, final: bool) -> None:
        self.text, self.delimiter, self.width, self.most, self.final = text, delimiter, width, most, final
        self.bytes = np.frombuffer(text, dtype=np.uint8)
        self.line_ends = self._at(_LF)
        self.quotes = self._at(_QUOTE)
        self.odd: dict[int, Record] = {}
        self.ends = self.starts = self.line_ends
        self._keep_ends(self._ends_of_lines())
        self._trusts_quotes = self._quoting_is_regular()
        if self._trusts_quotes:
            self._keep_ends(self.ends[self._quotes_before(self.ends) % 2 == 0])
        else:
            self._cut_lines_with_stray_quotes()

    def parsed(self) -> Parsed:
        taken = self._within_odd_records()
        blank = self._lengths() == 0
        regular = (self._delimiters() == self.width - 1) & ~blank & ~taken & ~self._with_lone_returns()
        columns = self._columns(regular, whole=bool((regular | blank).all()))
        if columns is None:  # Arrow sees it otherwise; then all are cut one by one
            regular[:] = False
            columns = self._columns(regular, whole=False) or []
        for start, end in zip(
            *(at[~regular & ~blank & ~taken].tolist() for at in (self.starts, self.ends)), strict=True
        ):
            self.odd[start] = record_at(self.text, start, self.delimiter, self.most)
            if self._trusts_quotes and self.odd[start].end != end:
                return self._parsed_without_trust()
        end = int(self.ends[-1]) if self.ends.size else 0
        lines = np.searchsorted(self.line_ends, self.starts)
        odd_starts = sorted(self.odd)
        odd_lines = np.searchsorted(self.line_ends, odd_starts).tolist()
        odd = [(line, self.odd[start]) for line, start in zip(odd_lines, odd_starts, strict=True)]
        line_count = int(np.searchsorted(self.line_ends, end)) + (end > 0 and self.text[end - 1] != _LF)
        return Parsed(columns, lines[regular], end, line_count, odd)

    def _parsed_without_trust(self) -> Parsed:
        """Parse as ``parsed``, where regular quotation marks would join lines to more cells than there are."""
        self._trusts_quotes = False
        self.odd.clear()
        self._keep_ends(self._ends_of_lines())
        self._cut_lines_with_stray_quotes()
        return self.parsed()

    def _at(self, value: int) -> Positions:
        return np.flatnonzero(self.bytes == value)

    def _quotes_before(self, positions: Positions) -> Positions:
        return np.asarray(np.searchsorted(self.quotes, positions))

    def _keep_ends(self, ends: Positions) -> None:
        """Take these as the ends of records."""
        self.ends = ends
        self.starts = np.concatenate(([0], ends))[:-1]

    def _ends_of_lines(self) -> Positions:
        ends = self.line_ends + 1
        if self.final and self.text and self.text[-1] != _LF:
            ends = np.append(ends, len(self.text))
        return ends

    def _quotes_out_of_place(self, opening: Mask) -> Mask:
        """Mark the quotation marks at no border of a cell, given those that would open one."""
        border_before, border_after = np.zeros((2, 256), dtype=bool)
        border_before[[self.delimiter[0], _LF, _QUOTE]] = True
        border_after[[self.delimiter[0], _LF, _QUOTE, _CR]] = True
        between = np.concatenate((_LINE_END, self.bytes, _LINE_END))
        return ~np.where(opening, border_before[between[self.quotes]], border_after[between[self.quotes + 2]])

    def _quoting_is_regular(self) -> bool:
        """Tell whether quotation marks stand only around whole cells, or doubled inside of them."""
        open_at_end = bool(self.quotes.size % 2)
        if open_at_end and (self.final or len(self.text) - int(self.quotes[-1]) > LONGEST_RECORD):
            return False
        return not self._quotes_out_of_place(np.arange(self.quotes.size) % 2 == 0).any()

    def _cut_lines_with_stray_quotes(self) -> None:
        """Cut the lines whose quotation marks make no sense within them; the others end where they end."""
        position = 0
        for start in self._starts_of_strange_lines():
            if start < position:
                continue
            record = record_at(self.text, start, self.delimiter, self.most)
            unfinished = record.fault == UNCLOSED or record.end == len(self.text)
            if unfinished and not self.final and len(self.text) - start < LONGEST_RECORD:
                self._keep_ends(self.ends[self.ends <= start])
                return
            self.odd[start] = record
            position = record.end

    def _starts_of_strange_lines(self) -> list[int]:
        line = np.searchsorted(self.line_ends, self.quotes)
        first_of_line = np.searchsorted(line, line)
        strange = self._quotes_out_of_place((np.arange(self.quotes.size) - first_of_line) % 2 == 0)
        lines, counts = np.unique(line, return_counts=True)
        of_strange = np.union1d(line[strange], lines[counts % 2 == 1])
        return np.concatenate(([0], self.line_ends + 1))[of_strange].tolist()  # type: ignore[no-any-return]

    def _within_odd_records(self) -> Mask:
        """Mark the records that start within a record that was cut already."""
        if not self.odd:
            return np.zeros(self.starts.size, dtype=bool)
        odd_starts = np.array(sorted(self.odd))
        odd_ends = np.array([self.odd[start].end for start in odd_starts.tolist()])
        nearest = np.searchsorted(odd_starts, self.starts, side="right") - 1
        return np.asarray((nearest >= 0) & (self.starts < odd_ends[nearest]))

    def _lengths(self) -> Positions:
        """Return the bytes of each record, without its line end."""
        last = self.bytes[self.ends - 1] == _LF
        lengths = self.ends - self.starts - last
        crlf = last & (lengths > 0) & (self.bytes[np.maximum(self.ends - 2, 0)] == _CR)
        return np.asarray(lengths - crlf, dtype=np.int64)

    def _delimiters(self) -> Positions:
        """Return the number of delimiters outside of quotation marks in each record."""
        found = self._at(self.delimiter[0])
        if self.quotes.size and self.starts.size:
            record = np.maximum(np.searchsorted(self.starts, found, side="right") - 1, 0)
            within = self._quotes_before(found) - self._quotes_before(self.starts)[record]
            found = found[within % 2 == 0]
        return np.asarray(np.searchsorted(found, self.ends) - np.searchsorted(found, self.starts))

    def _with_lone_returns(self) -> Mask:
        """Mark the records with a carriage return that ends no line; Arrow would end one there."""
        returns = self._at(_CR)
        last = self.bytes.size - 1
        lone = returns[(returns == last) | (self.bytes[np.minimum(returns + 1, last)] != _LF)]
        return np.asarray(np.searchsorted(lone, self.ends) > np.searchsorted(lone, self.starts))

    def _columns(self, regular: Mask, *, whole: bool) -> list[pa.StringArray] | None:
        if whole:
            text = memoryview(self.text)[: int(self.ends[-1]) if self.ends.size else 0]
        else:
            kept = np.repeat(regular, self.ends - self.starts)
            text = memoryview(self.bytes[: kept.size][kept].tobytes())
        return _by_arrow(text, self.delimiter, self.width, int(regular.sum()))
