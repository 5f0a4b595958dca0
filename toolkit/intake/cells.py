"""The bytes of an Arrow text column, its blank cells, and those that a spreadsheet would take for a formula."""

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.contract.fields import TRIMMED

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


def values(column: pa.StringArray) -> Bytes:
    """Return the bytes of the texts of a column, one after the other, without copying them."""
    ends, data = column.buffers()[1:]
    if data is None or not len(column):
        return np.empty(0, np.uint8)
    last = np.frombuffer(ends, np.int32, 1, (column.offset + len(column)) * 4)[0]
    return np.frombuffer(data, np.uint8)[:last]


def mask_of(found: pa.BooleanArray) -> Mask:
    """Return the answers of a condition; that about an absent value is no."""
    return np.asarray(pc.fill_null(found, False).to_numpy(zero_copy_only=False))


def blank_rows(columns: Sequence[pa.StringArray]) -> Mask:
    """Mark the rows that hold nothing but white space."""
    blank = np.ones(len(columns[0]), dtype=bool)
    for column in columns:
        rows = np.flatnonzero(blank)
        if not rows.size:
            break
        cells = column if rows.size == len(column) else column.take(pa.array(rows))
        blank[rows] = mask_of(pc.equal(pc.utf8_trim(cells, characters=TRIMMED), ""))
    return blank


ERROR_OF_FORMULA: Final = r"^#(N/[AD]|DIV/0!|REF!|VALUE!|VALOR!|NAME\?|NOME\?|NULL!|NULO!|NUM!|NÚM!|SPILL!|CALC!)$"
"""An error that a formula has instead of a value, as Excel shows it in English and Portuguese."""

_FORMULA: Final = "'*[=+\\-@\t\r\n]"
"""The start of a formula, however many apostrophes stand before it."""

_PATTERN: Final = re.compile(_FORMULA)


def harmless(text: str) -> str:
    """Return the text with one apostrophe more where a spreadsheet would take it for a formula."""
    return f"'{text}" if _PATTERN.match(text) else text


def as_written(text: str) -> str:
    """Return the text as it was before ``harmless``."""
    return text[1:] if text.startswith("'") and _PATTERN.match(text[1:]) else text


def escape(cells: pa.StringArray) -> pa.StringArray:
    """Return the cells of a column, each ``harmless``."""
    return pc.replace_substring_regex(cells, f"^({_FORMULA})", r"'\1")


def unescape(cells: pa.StringArray) -> pa.StringArray:
    """Return the cells as they were before ``escape``."""
    return pc.replace_substring_regex(cells, f"^'({_FORMULA})", r"\1")
