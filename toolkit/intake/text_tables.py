"""Read delimited text: find its encoding, its delimiter and its headings, then its rows in chunks."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from toolkit.contract.fields import TRIMMED
from toolkit.errors import UnreadableFile
from toolkit.intake.cells import Bytes, blank_rows
from toolkit.intake.encodings import blocks, examine, find_encoding
from toolkit.intake.sources import (
    HEADING_ROWS,
    Chunk,
    Layout,
    Lines,
    Reading,
    Recognises,
    TableSource,
    any_cell,
)

LONGEST_RECORD: Final = 1024 * 1024
"""Bytes; a quotation mark that is not closed within as many was never meant to open a cell."""

UNCLOSED: Final = "The quotation marks of this line do not match"
TOO_MANY: Final = "More cells than headings; check the separators and quotation marks"


@dataclass(frozen=True, slots=True)
class Record:
    """One record: where its bytes end, its cells, and why they cannot be trusted if they cannot."""

    end: int
    cells: list[str]
    fault: str | None = None


def records(text: bytes, delimiter: bytes) -> Iterator[Record]:
    """Yield all records of ``text`` from its start, one after the other."""
    position = 0
    while position < len(text):
        record = record_at(text, position, delimiter)
        yield record
        position = record.end


def record_at(text: bytes, start: int, delimiter: bytes, width: int | None = None) -> Record:
    """Return the record that starts at ``start``.

    A cell is quoted as a whole or not at all; a quotation mark inside an unquoted cell stands for itself.
    A record over several lines counts only if it has at most ``width`` cells that are not blank, because a stray
    quotation mark would swallow whole rows up to the next one; otherwise its first line alone is the (faulty)
    record.
    """
    whole, cell = _patterns(delimiter)
    end_of_line = text.find(b"\n", start) + 1 or len(text)
    limit = min(len(text), start + LONGEST_RECORD)
    found = whole.match(text, start, limit)
    if found is None or (found.end() == limit < len(text) and not text.endswith(b"\n", start, limit)):
        return Record(end_of_line, _split(text[start:end_of_line], delimiter), UNCLOSED)
    cells = [_unquoted(part) for part in cell.findall(found.group(1).removesuffix(b"\r"))]
    if width is not None and any(value.strip() for value in cells[width:]):
        if found.end() > end_of_line:
            return Record(end_of_line, _split(text[start:end_of_line], delimiter), UNCLOSED)
        return Record(found.end(), cells, TOO_MANY)
    return Record(found.end(), cells)


@lru_cache(maxsize=8)
def _patterns(delimiter: bytes) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    d = re.escape(delimiter)
    cell = rb'(?:"(?:[^"]|"")*"|(?!")[^%b\n]*)' % d
    whole = re.compile(rb"(%b(?:%b%b)*?)\r?(?:\n|\Z)" % (cell, d, cell))
    return whole, re.compile(rb"(?:\A|%b)(%b)" % (d, cell))


def _unquoted(cell: bytes) -> str:
    if cell.startswith(b'"'):
        return cell[1:-1].replace(b'""', b'"').decode(errors="replace")
    return cell.decode(errors="replace")


def _split(line: bytes, delimiter: bytes) -> list[str]:
    return [cell.decode(errors="replace") for cell in line.rstrip(b"\r\n").split(delimiter)]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of a text, column by column; ``lines`` are counted from zero, ``faults`` are by position."""

    columns: list[pa.StringArray]
    lines: Lines
    faults: dict[int, str]


_QUOTE: Final = ord('"')
_CR: Final = ord("\r")
_LF: Final = ord("\n")


@dataclass(frozen=True, slots=True)
class _Parser:
    """Parses delimited text: by Arrow what is written in the usual way, record by record what is not.

    Most rows have ``usual`` cells, and none may have more than ``most`` that are not blank.
    """

    delimiter: bytes
    usual: int
    most: int

    def parse(self, text: bytes, *, final: bool) -> tuple[list[_Rows], int, int]:
        """Parse whole records at the start of ``text``; return them, and the bytes and lines that they take up."""
        parts: list[_Rows] = []
        position, line, size = 0, 0, len(text)
        while position < len(text):
            end = text.rfind(b"\n", position, position + size) + 1 or text.find(b"\n", position) + 1
            if final and (end == 0 or position + size >= len(text)):
                end = len(text)
            if end == 0:
                break
            part = self._by_arrow(memoryview(text)[position:end], line)
            if part is None and end - position > _FEW:
                size = _FEW
                continue
            if part is None:
                part, end = self._one_by_one(text, position, end, line, final=final)
            if end == position:
                break
            parts.append(part)
            line += text.count(b"\n", position, end)
            position = end
        return parts, position, line

    def _by_arrow(self, text: memoryview, first_line: int) -> _Rows | None:
        """Return the rows, or nothing where a record takes up several lines or quotation marks stray."""
        data = np.frombuffer(text, np.uint8)
        if not self._is_regular(data):
            return None
        odd: list[csv.InvalidRow] = []

        def skip(row: csv.InvalidRow) -> str:
            odd.append(row)
            return "skip"

        names = [str(column) for column in range(self.usual)]
        try:
            table = csv.read_csv(
                pa.BufferReader(pa.py_buffer(text)),
                read_options=csv.ReadOptions(column_names=names, block_size=len(text) + 1, use_threads=False),
                parse_options=csv.ParseOptions(
                    delimiter=self.delimiter.decode(),
                    newlines_in_values=True,
                    ignore_empty_lines=False,
                    invalid_row_handler=skip,
                ),
                convert_options=csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, check_utf8=False
                ),
            )
        except pa.ArrowInvalid:
            return None
        count = int(np.count_nonzero(data == _LF)) + (data[-1] != _LF)
        if table.num_rows + len(odd) != count:
            return None
        columns = [column.combine_chunks() for column in table.columns]
        places = [row.number - 1 for row in odd]
        lines = np.delete(np.arange(count), places) + first_line
        records = [record_at(row.text.encode(), 0, self.delimiter, self.most) for row in odd]
        return self._together(columns, lines, records, [first_line + place for place in places])

    def _is_regular(self, data: Bytes) -> bool:
        """Tell whether carriage returns only end lines, and quotation marks only stand around whole cells."""
        if (at := np.flatnonzero(data == _CR)).size and (
            at[-1] == len(data) - 1 or (data[np.minimum(at + 1, len(data) - 1)] != _LF).any()
        ):
            return False
        quotes = np.flatnonzero(data == _QUOTE)
        if not quotes.size:
            return True
        if quotes.size % 2:
            return False
        border_before, border_after = np.zeros((2, 256), dtype=bool)
        border_before[[self.delimiter[0], _LF, _QUOTE]] = True
        border_after[[self.delimiter[0], _LF, _QUOTE, _CR]] = True
        around = np.concatenate(([_LF], data, [_LF]))
        opens, closes = quotes[::2], quotes[1::2]
        return bool(border_before[around[opens]].all() and border_after[around[closes + 2]].all())

    def _one_by_one(self, text: bytes, start: int, end: int, line: int, *, final: bool) -> tuple[_Rows, int]:
        """Cut the records up to ``end`` or beyond it; one that may go on behind the text is left for later."""
        found: list[Record] = []
        lines: list[int] = []
        position = start
        while position < end:
            record = record_at(text, position, self.delimiter, self.most)
            unfinished = record.fault == UNCLOSED or record.end == len(text)
            if unfinished and not final and len(text) - position < LONGEST_RECORD:
                break
            found.append(record)
            lines.append(line)
            line += text.count(b"\n", position, record.end)
            position = record.end
        nothing = [pa.array([], pa.string()) for _ in range(self.usual)]
        return self._together(nothing, np.empty(0, np.int64), found, lines), position

    def _together(
        self, columns: list[pa.StringArray], lines: Lines, records: Sequence[Record], places: Sequence[int]
    ) -> _Rows:
        """Return regular rows and records that were cut by themselves, in the order of their lines."""
        width, delimiter = self.most, self.delimiter.decode()
        empty = pa.repeat(pa.scalar("", pa.string()), len(lines))
        columns = columns + [empty] * (width - len(columns))
        faults: dict[int, str] = {}
        if len(columns) > width:
            columns = _folded(columns, width, delimiter, faults)
        if records:
            cells = [_fit(record.cells, width, delimiter) for record in records]
            order = np.argsort(np.concatenate((lines, places)).astype(np.int64), kind="stable")
            columns = [
                pa.concat_arrays([column, pa.array([row[at] for row in cells], pa.string())]).take(pa.array(order))
                for at, column in enumerate(columns)
            ]
            reasons = [faults.get(row) for row in range(len(lines))] + [record.fault for record in records]
            faults = {at: reason for at, row in enumerate(order.tolist()) if (reason := reasons[row]) is not None}
            lines = np.concatenate((lines, places)).astype(np.int64)[order]
        kept = ~blank_rows(columns)
        if not kept.all():
            position = np.cumsum(kept) - 1
            faults = {int(position[row]): reason for row, reason in faults.items() if kept[row]}
            columns = [column.filter(pa.array(kept)) for column in columns]
            lines = lines[kept]
        return _Rows(columns, lines, faults)


_FEW: Final = 64 * 1024
"""Bytes that are parsed together where not all records are regular."""


DELIMITERS: Final = (b";", b",", b"\t", b"|")
LONGEST_LINE: Final = 64 * 1024 * 1024
MOST_COLUMNS: Final = 16_384
"""The columns of a sheet of Excel."""
_SAMPLE: Final = 256 * 1024
_SAMPLE_ROWS: Final = 200
_SEPARATOR_LINE: Final = re.compile(rb"sep=(.)\r?\n", re.IGNORECASE)
"""Excel's own way to name the delimiter, on a line before all others."""


class DelimitedText:
    """A text file whose layout is understood; ``chunks`` reads it as often as asked."""

    def __init__(self, source: TableSource, reading: Reading) -> None:
        self.stamp = source.stamp()
        contents = examine(source)
        encoding = find_encoding(source, contents, reading.encoding)
        sample = next(blocks(source, encoding), b"")[:_SAMPLE]
        self.source = source
        self._old_mac = b"\n" not in sample and b"\r" in sample
        self._found = found = _find_headings(source, self._with_line_feeds(sample), reading)
        self.layout = Layout(
            kind="text",
            headings=found.headings,
            heading_line=found.line,
            sha256=contents.sha256,
            size=contents.size,
            encoding=encoding,
            delimiter=found.delimiter.decode(),
        )

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rows below the headings.

        Raises:
            UnreadableFile: the bytes do not fit the encoding, or the compression is damaged.
        """
        text, line, found = b"", 1, self._found
        parser = _Parser(found.delimiter, found.cells_per_row, len(self.layout.headings))
        read = ((block, False) for block in blocks(self.source, self.layout.encoding or ""))
        for block, final in chain(read, [(b"", True)]):
            text += self._with_line_feeds(block)
            while line < found.next_line and b"\n" in text:
                _, _, text = text.partition(b"\n")
                line += 1
            if line < found.next_line:
                continue
            parts, end, line_count = parser.parse(text, final=final)
            if any(len(part.lines) for part in parts):
                yield _chunk(parts, line, len(block))
            text = text[end:]
            line += line_count
            if len(text) > LONGEST_LINE:
                raise UnreadableFile("{}: line {} does not end; is this a text file?", self.source.name, line)

    def release(self) -> None:
        """Give up what is held between two readings: nothing."""

    def _with_line_feeds(self, text: bytes) -> bytes:
        return text.replace(b"\r", b"\n") if self._old_mac else text


class _Headings(NamedTuple):
    delimiter: bytes
    headings: tuple[str, ...]
    line: int
    next_line: int
    cells_per_row: int


def _find_headings(source: TableSource, sample: bytes, reading: Reading) -> _Headings:
    if not sample.strip():
        raise UnreadableFile("{}: the file is empty.", source.name)
    separator = _SEPARATOR_LINE.match(sample)
    named = _one_byte(reading.delimiter) if reading.delimiter is not None else separator and separator.group(1)
    start = separator.end() if separator else 0
    delimiters = DELIMITERS if named is None else (named,)
    for recognises in (reading.recognises, any_cell):
        candidates = (_headings(sample, start, delimiter, recognises) for delimiter in delimiters)
        found = [candidate for candidate in candidates if candidate is not None]
        if found:
            headings = min(found, key=lambda candidate: (candidate.line, -len(candidate.headings)))
            if len(headings.headings) > MOST_COLUMNS:
                raise UnreadableFile(
                    "{}: has more than {:,} columns; is this the table that was meant?", source.name, MOST_COLUMNS
                )
            return headings
    raise UnreadableFile("{}: no headings in the first {} rows.", source.name, HEADING_ROWS)


def _one_byte(delimiter: str) -> bytes:
    text = {"tab": "\t", "\\t": "\t"}.get(delimiter.lower(), delimiter)
    if len(text) != 1 or not text.isascii() or text in '"\r\n':
        raise UnreadableFile("The delimiter must be a single character, such as ; , | or tab.")
    return text.encode()


def _headings(sample: bytes, start: int, delimiter: bytes, recognises: Recognises) -> _Headings | None:
    rows = list(islice(_numbered(sample, start, delimiter), _SAMPLE_ROWS))
    for index, (line, next_line, record) in enumerate(rows[:HEADING_ROWS]):
        if record.fault is None and recognises(record.cells):
            width = len(record.cells)
            widths = Counter(
                len(row.cells)
                for _, _, row in rows[index + 1 :]
                if any(row.cells[:width]) and not any(cell.strip(TRIMMED) for cell in row.cells[width:])
            )
            usual = min(widths.most_common(1)[0][0] if widths else width, max(width, MOST_COLUMNS))
            return _Headings(
                delimiter, tuple(cell.strip(TRIMMED) for cell in record.cells), line, next_line, usual
            )
    return None


def _numbered(sample: bytes, start: int, delimiter: bytes) -> Iterator[tuple[int, int, Record]]:
    text = sample[start:]
    position, line = 0, 1 + sample.count(b"\n", 0, start)
    for record in records(text, delimiter):
        next_line = line + max(1, text.count(b"\n", position, record.end))
        yield line, next_line, record
        position, line = record.end, next_line


def _chunk(parts: Sequence[_Rows], first_line: int, size: int) -> Chunk:
    """Return the rows of all parts together."""
    if len(parts) == 1:
        return Chunk(parts[0].columns, parts[0].lines + first_line, size, faults=parts[0].faults)
    columns = [pa.concat_arrays(each) for each in zip(*(part.columns for part in parts), strict=True)]
    lines = np.concatenate([part.lines for part in parts])
    faults: dict[int, str] = {}
    before = 0
    for part in parts:
        faults |= {before + row: reason for row, reason in part.faults.items()}
        before += len(part.lines)
    return Chunk(columns, lines + first_line, size, faults=faults)


def _fit(cells: list[str], width: int, delimiter: str) -> list[str]:
    if len(cells) <= width:
        return cells + [""] * (width - len(cells))
    surplus = cells[width - 1 :]
    rest = surplus[:1] if not any(cell.strip(TRIMMED) for cell in surplus[1:]) else [delimiter.join(surplus)]
    return cells[: width - 1] + rest


def _folded(
    columns: list[pa.StringArray], headings: int, delimiter: str, faults: dict[int, str]
) -> list[pa.StringArray]:
    """Return the columns with a heading; text beyond them makes a row faulty and is kept in its last cell."""
    surplus = [pc.utf8_trim(column, characters=TRIMMED) for column in columns[headings:]]
    rows = np.flatnonzero(~blank_rows(surplus))
    kept = columns[:headings]
    if rows.size:
        last = [columns[index].take(pa.array(rows)).to_pylist() for index in range(headings - 1, len(columns))]
        folded = [delimiter.join(cells).rstrip(delimiter) for cells in zip(*last, strict=True)]
        mask = np.zeros(len(kept[-1]), dtype=bool)
        mask[rows] = True
        kept[-1] = pc.replace_with_mask(kept[-1], pa.array(mask), pa.array(folded, pa.string()))
        faults.update(dict.fromkeys(rows.tolist(), TOO_MANY))
    return kept
