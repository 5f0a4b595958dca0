"""Read delimited text: find its encoding, its delimiter and its headings, then its rows in chunks.

A block of text that is written in the usual way is parsed by Arrow, whole columns at once; any other one by
Python's ``csv`` module, record by record, which takes longer and tells which record cannot be trusted.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from toolkit.contract.fields import TRIMMED
from toolkit.errors import UnreadableFile
from toolkit.intake.cells import blank_rows
from toolkit.intake.encodings import NOT_TEXT, blocks, examine, find_encoding
from toolkit.intake.sources import (
    HEADING_ROWS,
    Chunk,
    Layout,
    Reading,
    Recognises,
    Record,
    TableSource,
    any_cell,
    chunk_of,
)

UNCLOSED: Final = "The quotation marks of this line do not match"
TOO_MANY: Final = "More cells than headings; check the separators and quotation marks"

LONGEST_RECORD: Final = 100
"""Lines; a quotation mark that is not closed within as many was never meant to open a cell."""
LONGEST_LINE: Final = 64 * 1024 * 1024
MOST_COLUMNS: Final = 16_384
"""The columns of a sheet of Excel."""

DELIMITERS: Final = (";", ",", "\t", "|")
_HEAD: Final = 100
_SAMPLE: Final = 256 * 1024
_SAMPLE_ROWS: Final = 200
_SEPARATOR_LINE: Final = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
"""Excel's own way to name the delimiter, on a line before all others."""


class DelimitedText:
    """A text file whose layout is understood; ``chunks`` reads it as often as asked."""

    def __init__(self, source: TableSource, reading: Reading) -> None:
        self.source, self.stamp = source, source.stamp()
        contents = examine(source)
        encoding = find_encoding(source, contents, reading.encoding)
        sample = next(blocks(source, encoding))[:_SAMPLE]
        if sample[:_HEAD].count(0) > len(sample[:_HEAD]) // 4:  # UTF-16 without a mark, or no text at all
            raise UnreadableFile(NOT_TEXT, source.name, encoding)
        self._old_mac = b"\n" not in sample and b"\r" in sample
        found = _find_headings(source, self._with_line_feeds(sample).decode(errors="ignore"), reading)
        self._skipped, self._usual, self._width = found.next_line - 1, found.cells_per_row, len(found.headings)
        self.layout = Layout(
            kind="text",
            headings=found.headings,
            heading_line=found.line,
            sha256=contents.sha256,
            size=contents.size,
            encoding=encoding,
            delimiter=found.delimiter,
        )

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rows below the headings.

        Raises:
            UnreadableFile: the bytes do not fit the encoding, or the compression is damaged.
        """
        text, line, skip = b"", 1 + self._skipped, self._skipped
        read = ((block, False) for block in blocks(self.source, self.layout.encoding or ""))
        for block, final in chain(read, [(b"", True)]):
            text += self._with_line_feeds(block)
            while skip and b"\n" in text:
                skip, text = skip - 1, text.partition(b"\n")[2]
            end = len(text) if final else text.rfind(b"\n") + 1
            if skip or not end:
                if len(text) > LONGEST_LINE:
                    raise UnreadableFile("{}: line {} does not end; is this a text file?", self.source.name, line)
                continue
            parsed = text[:end]
            chunk = self._by_arrow(parsed, line, len(block))
            if chunk is None:
                lines = _lines(parsed.decode(errors="replace"))
                found = list(records(lines, self.layout.delimiter or "", line, self._width, final=final))
                chunk = chunk_of(found, self._width, len(block))
                rest = lines[found[-1].next_line - line :] if found else lines
                end -= len("".join(rest).encode())
            line += text.count(b"\n", 0, end)
            text = text[end:]
            if len(chunk):
                yield chunk

    def release(self) -> None:
        """Release nothing: no resource is held between two readings."""

    def _with_line_feeds(self, text: bytes) -> bytes:
        return text.replace(b"\r", b"\n") if self._old_mac else text

    def _by_arrow(self, text: bytes, first_line: int, size: int) -> Chunk | None:
        """Return the rows, or nothing where one of them is not written in the usual way."""
        delimiter, width = self.layout.delimiter or "", self._width
        if text.count(b"\r") != text.count(b"\r\n") or not _quotes_whole_cells(text, delimiter):
            return None
        names = [str(column) for column in range(self._usual)]
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(text),
                read_options=arrow_csv.ReadOptions(
                    column_names=names, block_size=len(text) + 1, use_threads=False
                ),
                parse_options=arrow_csv.ParseOptions(delimiter=delimiter, ignore_empty_lines=False),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, check_utf8=False
                ),
            )
        except pa.ArrowInvalid:
            return None
        columns = [column.combine_chunks() for column in table.columns]
        if any(not blank_rows([surplus]).all() for surplus in columns[width:]):
            return None
        columns += [pa.repeat("", table.num_rows)] * (width - len(columns))
        chunk = Chunk(columns[:width], np.arange(table.num_rows) + first_line, size)
        blank = blank_rows(chunk.columns)
        return chunk.take(np.flatnonzero(~blank), size) if blank.any() else chunk


def _quotes_whole_cells(text: bytes, delimiter: str) -> bool:
    """Tell whether quotation marks only stand around whole cells of one line."""
    marks = text.count(b'"')
    quoted = rb'(?:^|(?<=[%b\n]))"[^"\n]*"(?=[%b\r\n]|\Z)' % ((re.escape(delimiter).encode(),) * 2)
    return not marks or (marks % 2 == 0 and len(re.findall(quoted, text)) * 2 == marks)


def records(
    lines: Sequence[str], delimiter: str, first: int = 1, width: int = MOST_COLUMNS, *, final: bool = True
) -> Iterator[Record]:
    """Yield the records of these lines, of which the first has that number; the last may go on behind them.

    A cell is quoted as a whole or not at all; a quotation mark inside an unquoted cell stands for itself. A record
    over several lines counts only if it has at most ``width`` cells that are not blank, because a stray quotation
    mark would swallow whole rows up to the next one; otherwise its first line alone is the (faulty) record. One
    that is not closed in these lines is left for later unless they are the ``final`` ones.
    """
    at = 0
    while at < len(lines):
        used, fault, line = 1, None, lines[at]
        cells = line.rstrip("\r\n").split(delimiter)
        if '"' in line:
            reader = csv.reader(lines[at : at + LONGEST_RECORD], delimiter=delimiter, strict=True)
            try:
                quoted = next(reader)
            except csv.Error:
                if at + reader.line_num == len(lines) and reader.line_num < LONGEST_RECORD and not final:
                    return
                fault = UNCLOSED
            else:
                if reader.line_num > 1 and _has_surplus(quoted, width):
                    fault = UNCLOSED
                else:
                    cells, used = quoted, reader.line_num
        if fault is None and _has_surplus(cells, width):
            fault = TOO_MANY
        if _has_surplus(cells, width):
            cells = [*cells[: width - 1], delimiter.join(cells[width - 1 :])]
        yield Record(first + at, first + at + used, cells, fault)
        at += used


def _has_surplus(cells: Sequence[str], width: int) -> bool:
    return any(cell.strip(TRIMMED) for cell in cells[width:])


def _lines(text: str) -> list[str]:
    """Return the lines of a text with their ends; a carriage return alone ends none."""
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


@dataclass(frozen=True, slots=True)
class _Headings:
    delimiter: str
    headings: tuple[str, ...]
    line: int
    next_line: int
    cells_per_row: int


def _find_headings(source: TableSource, sample: str, reading: Reading) -> _Headings:
    if not sample.strip():
        raise UnreadableFile("{}: the file is empty.", source.name)
    separator = _SEPARATOR_LINE.match(sample)
    named = _one_character(reading.delimiter) if reading.delimiter is not None else separator and separator[1]
    lines, first = _lines(sample), 1
    if separator:
        lines, first = lines[1:], 2
    for recognises in (reading.recognises, any_cell):
        candidates = (_headings(lines, first, each, recognises) for each in ([named] if named else DELIMITERS))
        found = [candidate for candidate in candidates if candidate is not None]
        if found:
            headings = min(found, key=lambda candidate: (candidate.line, -len(candidate.headings)))
            if len(headings.headings) > MOST_COLUMNS:
                raise UnreadableFile(
                    "{}: has more than {:,} columns; is this the table that was meant?", source.name, MOST_COLUMNS
                )
            return headings
    raise UnreadableFile("{}: no headings in the first {} rows.", source.name, HEADING_ROWS)


def _one_character(delimiter: str) -> str:
    text = {"tab": "\t", "\\t": "\t"}.get(delimiter.lower(), delimiter)
    if len(text) != 1 or not text.isascii() or text in '"\r\n':
        raise UnreadableFile("The delimiter must be a single character, such as ; , | or tab.")
    return text


def _headings(lines: Sequence[str], first: int, delimiter: str, recognises: Recognises) -> _Headings | None:
    rows = list(islice(records(lines, delimiter, first, 2 * MOST_COLUMNS), _SAMPLE_ROWS))
    for index, row in enumerate(rows[:HEADING_ROWS]):
        if row.fault is None and recognises(row.cells):
            width = len(row.cells)
            widths = Counter(
                len(below.cells)
                for below in rows[index + 1 :]
                if any(below.cells[:width]) and not _has_surplus(below.cells, width)
            )
            usual = min(widths.most_common(1)[0][0] if widths else width, max(width, MOST_COLUMNS))
            headings = tuple(cell.strip(TRIMMED) for cell in row.cells)
            return _Headings(delimiter, headings, row.line, row.next_line, usual)
    return None
