"""Read delimited text: recognise its layout, then read it in chunks."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.domain.fields import TRIMMED
from toolkit.errors import UnreadableFile
from toolkit.operations.spreadsheets import encodings
from toolkit.operations.spreadsheets.chunks import (
    HEADING_ROWS,
    Chunk,
    Layout,
    Lines,
    Reading,
    Recognises,
    any_cell,
)
from toolkit.operations.spreadsheets.parsing import Parsed, parse
from toolkit.operations.spreadsheets.records import TOO_MANY, Record, records
from toolkit.operations.spreadsheets.sources import TableSource
from toolkit.operations.spreadsheets.text_bytes import blank_rows

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
        contents = encodings.examine(source)
        encoding = encodings.find_encoding(source, contents, reading.encoding)
        sample = next(encodings.blocks(source, encoding), b"")[:_SAMPLE]
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
        text, line, found, width = b"", 1, self._found, len(self.layout.headings)
        blocks = encodings.blocks(self.source, self.layout.encoding or "")
        for block, final in chain(((block, False) for block in blocks), [(b"", True)]):
            text += self._with_line_feeds(block)
            while line < found.next_line and b"\n" in text:
                _, _, text = text.partition(b"\n")
                line += 1
            if line < found.next_line:
                continue
            parsed = parse(text, found.delimiter, found.cells_per_row, most=width, final=final)
            chunk = _chunk(parsed, line, width, found.delimiter.decode(), len(block))
            if len(chunk):
                yield chunk
            text = text[parsed.end :]
            line += parsed.line_count
            if len(text) > LONGEST_LINE:
                raise UnreadableFile(f"{self.source.name}: line {line} does not end; is this a text file?")

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
        raise UnreadableFile(f"{source.name}: the file is empty.")
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
                    f"{source.name}: has more than {MOST_COLUMNS:,} columns; is this the table that was meant?"
                )
            return headings
    raise UnreadableFile(f"{source.name}: no headings in the first {HEADING_ROWS} rows.")


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


def _chunk(parsed: Parsed, first_line: int, headings: int, delimiter: str, size: int) -> Chunk:
    columns, lines, faults = list(parsed.columns), parsed.lines, dict[int, str]()
    columns += [pa.repeat(pa.scalar("", pa.string()), len(lines))] * (headings - len(columns))
    if parsed.odd:
        columns, lines, faults = _with_odd(columns, parsed, delimiter)
    if len(columns) > headings:
        columns = _folded(columns, headings, delimiter, faults)
    kept = ~blank_rows(columns)
    if not kept.all():
        position = np.cumsum(kept) - 1
        faults = {int(position[row]): reason for row, reason in faults.items() if kept[row]}
        columns = [column.filter(pa.array(kept)) for column in columns]
        lines = lines[kept]
    return Chunk(columns, lines + first_line, size, faults=faults)


def _with_odd(
    regular: list[pa.StringArray], parsed: Parsed, delimiter: str
) -> tuple[list[pa.StringArray], Lines, dict[int, str]]:
    """Return regular and odd records together, in the order of their lines."""
    cells = [_fit(record.cells, len(regular), delimiter) for _, record in parsed.odd]
    lines = np.concatenate((parsed.lines, [line for line, _ in parsed.odd])).astype(np.int64)
    order = np.argsort(lines, kind="stable")
    columns = [
        pa.concat_arrays([column, pa.array([row[index] for row in cells], pa.string())]).take(pa.array(order))
        for index, column in enumerate(regular)
    ]
    position = np.argsort(order, kind="stable")[len(parsed.lines) :]
    faults = {
        int(row): record.fault
        for row, (_, record) in zip(position, parsed.odd, strict=True)
        if record.fault is not None
    }
    return columns, lines[order], faults


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
