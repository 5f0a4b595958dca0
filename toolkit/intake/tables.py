"""Read spreadsheets as people send them: delimited text in any usual encoding, and workbooks.

Whatever the file, a table has the headings as written, every cell as text and for every row its line in the
file. It is read in chunks, or as a whole where it fits into memory.

A block of text that is written in the usual way is parsed by Arrow, whole columns at once; any other one by
Python's ``csv`` module, record by record, which takes longer and tells which record cannot be trusted.
"""

import codecs
import csv
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from hashlib import file_digest
from io import StringIO
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from toolkit.contract.fields import TRIMMED, RequestModel, invalid, parse
from toolkit.errors import InvalidField, InvalidFields, UnreadableFile
from toolkit.intake.headings import Headings
from toolkit.intake.results import Outputs
from toolkit.intake.sources import (
    ERROR_OF_FORMULA,
    HEADING_ROWS,
    IS_ERROR,
    IS_ROUNDED,
    OWN,
    REJECTED_SHEET,
    ROUNDED,
    Chunk,
    Layout,
    Recognises,
    Record,
    TableSource,
    any_cell,
    chunk_of,
    mask_of,
    unescape,
)
from toolkit.intake.workbooks import WorkbookTable
from toolkit.language import Language
from toolkit.message import Message

M = TypeVar("M", bound=RequestModel)

Body = tuple[int, dict[str, Any]]  # the line of a row, and its cells by field
Rejected = Mapping[int, Sequence[InvalidField]]  # by line in the file: every reason why a row is not taken over

BLOCK: Final = 4 * 1024 * 1024  # bytes read at a time; a few of these are held, however long a file is
TEXT_BYTES: Final = 4 * 1024**3  # the longest text that is read: some 20 million clients
WHOLE_BYTES: Final = 256 * 1024**2  # text in the cells of a table that is read into memory as a whole, at most

UNCLOSED: Final = Message("The quotation marks of this line do not match")
TOO_MANY: Final = Message("More cells than headings; check the separators and quotation marks")

LONGEST_RECORD: Final = 100  # lines; a quotation mark not closed within as many was never meant to open a cell
LONGEST_LINE: Final = 64 * 1024 * 1024
MOST_COLUMNS: Final = 16_384  # the columns of a sheet of Excel

DELIMITERS: Final = (";", ",", "\t", "|")
_HEAD: Final = 100
_SAMPLE: Final = 256 * 1024
_SEPARATOR_LINE: Final = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)  # Excel's own: it names the delimiter


class DelimitedText:
    """A text file whose layout is understood; ``chunks`` reads it as often as asked."""

    def __init__(self, source: TableSource, recognises: Recognises) -> None:
        self.source = source
        encoding, digest = _examine(source)
        sample = next(_blocks(source, encoding), b"")[:_SAMPLE]
        # UTF-16 without a mark, no text at all, or a page or XML that is called a workbook
        if sample[:_HEAD].count(0) > len(sample[:_HEAD]) // 4 or sample.lstrip().startswith(b"<"):
            raise UnreadableFile(NOT_TEXT, source.name)
        self._old_mac = b"\n" not in sample and b"\r" in sample
        text = self._with_line_feeds(sample).decode(errors="ignore")
        found, self._delimiter = _find_headings(source, text, recognises)
        self._skipped, self._width = found.next_line - 1, len(found.cells)
        self.layout = Layout(
            headings=tuple(cell.strip(TRIMMED) for cell in found.cells),
            heading_line=found.line,
            sha256=digest,
            encoding=encoding,
            delimiter=self._delimiter,
        )

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rows below the headings.

        Raises:
            UnreadableFile: the bytes do not fit the encoding.
        """
        text, line, skip = b"", 1 + self._skipped, self._skipped
        read = ((block, False) for block in _blocks(self.source, self.layout.encoding or ""))
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
            chunk = self._by_arrow(parsed, line)
            if chunk is None:
                try:
                    lines = _lines(parsed.decode())
                except UnicodeDecodeError:  # somebody wrote the file since it was examined
                    raise UnreadableFile(NOT_TEXT, self.source.name) from None
                found = list(records(lines, self._delimiter, line, self._width, final=final))
                chunk = chunk_of(found, self._width)
                rest = lines[found[-1].next_line - line :] if found else lines
                end -= len("".join(rest).encode())
            line += text.count(b"\n", 0, end)
            text = text[end:]
            if len(chunk):
                yield chunk

    def _with_line_feeds(self, text: bytes) -> bytes:
        return text.replace(b"\r", b"\n") if self._old_mac else text

    def _by_arrow(self, text: bytes, first_line: int) -> Chunk | None:
        """Return the rows, or nothing where one of them is not written in the usual way."""
        if b"\r" in text and text.count(b"\r") != text.count(b"\r\n"):
            return None
        if not _quotes_whole_cells(text, self._delimiter):
            return None
        names = [str(column) for column in range(self._width)]
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(text),
                read_options=arrow_csv.ReadOptions(
                    column_names=names, block_size=len(text) + 1, use_threads=False
                ),
                parse_options=arrow_csv.ParseOptions(delimiter=self._delimiter, ignore_empty_lines=False),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
                ),
            )
        except pa.ArrowInvalid:
            return None
        columns = [column.chunk(0) for column in table.columns]
        chunk = Chunk(columns, np.arange(table.num_rows) + first_line)
        rows = np.arange(table.num_rows)  # the blank ones, column by column
        for column in columns:
            cells = column if rows.size == len(column) else column.take(pa.array(rows))
            rows = rows[mask_of(pc.equal(pc.utf8_trim(cells, characters=TRIMMED), ""))]
            if not rows.size:
                return chunk
        return chunk.take(np.delete(np.arange(table.num_rows), rows))


_BOMS: Final = (
    (codecs.BOM_UTF8, "UTF-8 with BOM"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)

_UTF8_IN_WINDOWS: Final = re.compile("Ã[¡¢£§©ª\u00ad³´µº]".encode())
"""The letters áâãçéêíóôõú in UTF-8, as they look when they are read as Windows-1252."""

_DOS_IN_WINDOWS: Final = re.compile("[A-Za-z](?:µ|‚|ƒ|‡|ˆ|‰|‹|€Ç|€å|¡|¢|£)|[a-z]Æ".encode())
"""Letters with accents of DOS or of an old Mac, behind others, as they look when read as Windows-1252."""

NOT_TEXT: Final = "{}: is no text that can be read; save the table as CSV in UTF-8 or as XLSX."


def _examine(source: TableSource) -> tuple[str, str]:
    """Read all bytes; return the encoding and the digest.

    The encoding is that of the byte order mark, else UTF-8 if all bytes fit, else Windows-1252.

    Raises:
        UnreadableFile: the source is too long, or its bytes do not fit the encoding or make no words in it.
    """
    if source.path.stat().st_size > TEXT_BYTES:
        raise UnreadableFile("{}: holds more than {} GiB of text; split it.", source.name, TEXT_BYTES >> 30)
    with source.path.open("rb") as stream:
        digest = file_digest(stream, "sha256").hexdigest()
        stream.seek(0)
        head = stream.read(4)
    is_utf8 = True
    try:
        for _ in _decoded(source, "UTF-8"):
            pass
    except UnicodeDecodeError:
        is_utf8 = False
    by_mark = [encoding for mark, encoding in _BOMS if head.startswith(mark)]
    encoding = next(iter(by_mark), "UTF-8" if is_utf8 else "Windows-1252")
    if encoding.startswith("UTF-8"):
        mixed = not is_utf8
    else:  # fails now rather than half-way through a load
        mixed = any(_UTF8_IN_WINDOWS.search(block) for block in _blocks(source, encoding))
        if not by_mark and any(_DOS_IN_WINDOWS.search(block) for block in _blocks(source, encoding)):
            raise UnreadableFile(NOT_TEXT, source.name)
    if mixed:
        raise UnreadableFile(
            "{}: is partly UTF-8 and partly not; save it as CSV in UTF-8 or as XLSX.", source.name
        )
    return encoding, digest


def _decoded(source: TableSource, encoding: str) -> Iterator[str]:
    with source.path.open("rb") as stream:
        yield from codecs.iterdecode(iter(partial(stream.read, BLOCK), b""), encoding)


def _blocks(source: TableSource, encoding: str) -> Iterator[bytes]:
    """Yield the text as UTF-8 without byte order mark, cut anywhere.

    Raises:
        UnreadableFile: the bytes do not fit the encoding.
    """
    if encoding.startswith("UTF-8"):  # as all its bytes were found to be
        with source.path.open("rb") as stream:
            stream.seek(len(codecs.BOM_UTF8) if encoding != "UTF-8" else 0)
            yield from iter(partial(stream.read, BLOCK), b"")
        return
    try:
        for text in _decoded(source, encoding):
            yield text.encode()
    except UnicodeError:
        raise UnreadableFile(NOT_TEXT, source.name) from None


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
    mark would swallow whole rows up to the next one; otherwise its first line alone is the (faulty) record, as one
    cell. One that is not closed in these lines is left for later unless they are the ``final`` ones.
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
        if fault is not None:  # as one cell, or it would pass when it is loaded again as it is
            cells = [line.rstrip("\r\n")]
        yield Record(first + at, first + at + used, cells, fault)
        at += used


def _has_surplus(cells: Sequence[str], width: int) -> bool:
    return any(cell.strip(TRIMMED) for cell in cells[width:])


def _lines(text: str) -> list[str]:
    """Return the lines of a text with their ends; a carriage return alone ends none."""
    return StringIO(text, newline="\n").readlines()


def _find_headings(source: TableSource, sample: str, recognises: Recognises) -> tuple[Record, str]:
    """Return the row of the headings, and the delimiter between them."""
    if not sample.strip():
        raise UnreadableFile("{}: the file is empty.", source.name)
    separator = _SEPARATOR_LINE.match(sample)
    lines, first, delimiters = _lines(sample), 1, list(DELIMITERS)
    if separator:
        lines, first, delimiters = lines[1:], 2, [separator[1]]
    for recognised in (recognises, any_cell):
        found = []
        for delimiter in delimiters:
            rows = islice(records(lines, delimiter, first, 2 * MOST_COLUMNS), HEADING_ROWS)
            headings = (row for row in rows if row.fault is None and recognised(row.cells))
            found += [(row, delimiter) for row in islice(headings, 1)]
        if found:
            row, delimiter = min(found, key=lambda each: (each[0].line, -len(each[0].cells)))
            if len(row.cells) > MOST_COLUMNS:
                raise UnreadableFile(
                    "{}: has more than {:,} columns; is this the table that was meant?", source.name, MOST_COLUMNS
                )
            return row, delimiter
    raise UnreadableFile("{}: no headings in the first {} rows.", source.name, HEADING_ROWS)


class Table:
    """A table in a file: its layout, its headings, and the position of each field's column.

    The columns that a load has added to rejected rows are left out.
    """

    def __init__(self, source: TableSource, headings: Headings, sheet: str | None = None) -> None:
        """Find out how ``source`` is written, and make ready to read it.

        Raises:
            UnreadableFile: it is damaged, protected, empty, of another kind, or lacks a field.
        """
        self.source, self._stamp, self._known, known = source, source.stamp(), headings, headings.recognise
        self._written: DelimitedText | WorkbookTable
        self._written = WorkbookTable(source, known, sheet) if source.workbook else DelimitedText(source, known)
        self.layout = self._written.layout
        self._of_source = _source_columns(self.layout.headings)
        self.headings = self.layout.headings[self._of_source or slice(None)]
        self.fields = headings.columns(source.name, self.layout.heading_line, self.headings)

    def __str__(self) -> str:
        """Say how the file is read: which heading stands for which field, and which columns are not used."""
        fields = {self.headings[position]: name for name, position in self.fields.items()}
        used = (heading if heading == name else f"{heading} = {name}" for heading, name in fields.items())
        unused = [heading for heading in self.layout.headings if heading and heading not in fields]
        message = Message("{}: {}: {}", self.source.name, str(self.layout), ", ".join(used))
        return Message("{}; not used: {}", message, ", ".join(unused)) if unused else message

    def check_unchanged(self) -> None:
        """Make sure that the file is still the one that was understood.

        Raises:
            UnreadableFile: somebody wrote it meanwhile.
        """
        if self.source.stamp() != self._stamp:
            raise UnreadableFile("{}: was changed while it was read; try again.", self.source.name)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rows; those that a load has written as rejected, as they were in their source."""
        source = self._of_source
        # Nothing is escaped in our workbooks; in one made from our CSV file, Excel names the sheet after that.
        escaped = self.layout.sheet != REJECTED_SHEET
        for chunk in self._written.chunks():
            if source is not None:
                columns, places = chunk.columns[source], range(len(chunk.columns))[source]
                columns = [unescape(column) for column in columns] if escaped else columns
                numbers = {to: chunk.numbers[at] for to, at in enumerate(places) if at in chunk.numbers}
                chunk = replace(chunk, columns=columns, numbers=numbers)
            yield chunk

    @cached_property
    def whole(self) -> list[Chunk]:
        """All rows, held in memory; blank ones are left out.

        Raises:
            UnreadableFile: it cannot be read, is too large, or has a row that does not fit.
        """
        chunks, size = [], 0
        for chunk in self.chunks():
            size += sum(column.nbytes for column in chunk.columns)
            if size > WHOLE_BYTES:
                raise UnreadableFile(
                    "{}: holds more than {} MiB of text; split it.", self.source.name, WHOLE_BYTES >> 20
                )
            for row, reason in chunk.faults.items():
                raise UnreadableFile("{}, line {}: {}.", self.source.path, chunk.lines[row], reason)
            chunks.append(chunk)
        return chunks

    def bodies(self) -> Iterator[Body]:
        """Yield the line of each row of the ``whole`` and its cells under the names of their fields.

        An empty cell is an absent value; for an error of a formula or a rounded number stands the reason.
        """
        for chunk in self.whole:
            cells = [_values(chunk.columns[position]) for position in self.fields.values()]
            for line, *row in zip(chunk.lines.tolist(), *cells, strict=True):
                yield line, dict(zip(self.fields, row, strict=True))

    def outputs(self, folder: Path, name: str, language: Language) -> Outputs:
        """Return the files about its rows, to be written; what was mapped is understood in them without a map."""
        headings = self._known.understood_without_map(self.headings, self.fields)
        return Outputs(folder, name, self.layout.delimiter, headings, self.fields, language)

    def hand_back(self, rejected: Rejected, out: Path | None, language: Language) -> tuple[Path, ...]:
        """Write the rejected rows, if there are any, to be corrected; into ``out``, or beside the file."""
        if not rejected:
            return ()
        with self.outputs(out or self.source.path.parent, self.source.path.name, language) as outputs:
            for chunk in self.whole:
                outputs.reject(chunk, rejected)
            outputs.complete()
            return outputs.publish()[0]


def _values(column: pa.StringArray) -> list[Any]:
    texts = pc.utf8_trim(column, characters=TRIMMED)
    cells: list[Any] = [text or None for text in texts.to_pylist()]
    for pattern, reason in ((ERROR_OF_FORMULA, IS_ERROR), (ROUNDED, IS_ROUNDED)):
        for row in np.flatnonzero(mask_of(pc.match_substring_regex(texts, pattern))):
            cells[row] = invalid(reason)
    return cells


def _source_columns(headings: Sequence[str]) -> slice | None:
    """Return the columns of the source, where these are the headings of rejected rows that a load has written.

    The load's own columns come first in a workbook and last in a CSV file, where a spreadsheet program may have
    added empty columns to them.
    """
    width = max((place for place, heading in enumerate(headings, 1) if heading), default=0)
    source = width - len(OWN)
    if tuple(headings[: len(OWN)]) == OWN[::-1]:
        return slice(len(OWN), width)
    return slice(source) if source >= 0 and tuple(headings[source:width]) == OWN else None


def valid_rows(
    bodies: Iterable[Body], model: type[M], identity: Callable[[M], Hashable], repeated: InvalidField
) -> tuple[dict[int, M], dict[int, Sequence[InvalidField]]]:
    """Judge rows: return the valid ones by their lines, and the reasons against the others.

    Of those with the same ``identity`` the first counts; ``repeated`` says why the others do not, with its line.
    """
    valid: dict[int, M] = {}
    rejected: dict[int, Sequence[InvalidField]] = {}
    first_lines: dict[Hashable, int] = {}
    for line, body in bodies:
        try:
            row = parse(model, body)
        except InvalidFields as error:
            rejected[line] = error.invalid
            continue
        first = first_lines.setdefault(identity(row), line)
        if first == line:
            valid[line] = row
        else:
            rejected[line] = (InvalidField(repeated.field, Message(repeated.message, first)),)
    return valid, rejected
