"""Cut delimited text into records where it is not plain: quoted line breaks, stray quotes, ragged rows."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

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
