"""The bytes of an Arrow text column, without copying them."""

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
Offsets = npt.NDArray[np.int32]


def offsets(column: pa.StringArray) -> Offsets:
    """Return the start of each cell in the column's bytes, and the end of the last one."""
    if not len(column):
        return np.zeros(1, np.int32)
    return np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4)


def values(column: pa.StringArray) -> Bytes:
    """Return the bytes that the offsets of the column point into, up to its last cell."""
    data = column.buffers()[2]
    return np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[: offsets(column)[-1]]


def mask_of(found: pa.BooleanArray) -> Mask:
    """Return the answers of a condition; that about an absent value is no."""
    return np.asarray(pc.fill_null(found, False).to_numpy(zero_copy_only=False))


def _flags(*codes: int) -> Mask:
    flags = np.zeros(256, dtype=bool)
    flags[list(codes)] = True
    return flags


_LAST_BYTES: Final = _flags(*{letter.encode()[-1] for letter in TRIMMED})
_BYTES_BEFORE: Final = _flags(*{letter.encode()[-2] for letter in TRIMMED if not letter.isascii()})
_FIRST_BYTES: Final = _flags(*{letter.encode()[0] for letter in TRIMMED})


def may_have_outer_space(column: pa.StringArray) -> bool:
    """Tell whether some cell may start or end with white space; this costs less than trimming."""
    starts, data = offsets(column), values(column)
    if not data.size:
        return False
    first = data[np.minimum(starts[:-1], data.size - 1)]
    last = data[starts[1:] - 1]
    if _FIRST_BYTES[first].any() or (last <= ord(" ")).any():
        return True
    at = starts[1:][_LAST_BYTES[last]]  # often just the end of an accented letter
    return bool(at.size and _BYTES_BEFORE[data[at - 2]].any())


def blank_rows(columns: Sequence[pa.StringArray]) -> Mask:
    """Mark the rows that hold nothing but white space."""
    blank = np.ones(len(columns[0]), dtype=bool)
    for column in columns:
        starts, data = offsets(column), values(column)
        if data.size:
            first = data[np.minimum(starts[:-1], data.size - 1)]
            blank &= (np.diff(starts) == 0) | _FIRST_BYTES[first]
        if not blank.any():
            return blank
    for row in np.flatnonzero(blank).tolist():
        blank[row] = not any(column[row].as_py().strip(TRIMMED) for column in columns)
    return blank


_STARTS: Final = "=+-@\t\r\n"
"""Characters that a formula may start with, however many apostrophes stand before them."""

_FORMULA: Final = f"'*[{re.escape(_STARTS)}]"
_PATTERN: Final = re.compile(_FORMULA)
_MAY_START: Final = np.zeros(256, dtype=bool)
_MAY_START[list(f"'{_STARTS}".encode())] = True


def harmless(text: str) -> str:
    """Return the text with one apostrophe more where a spreadsheet would take it for a formula."""
    return f"'{text}" if _PATTERN.match(text) else text


def as_written(text: str) -> str:
    """Return the text as it was before ``harmless``."""
    return text[1:] if text.startswith("'") and _PATTERN.match(text[1:]) else text


def escape(cells: pa.StringArray) -> pa.StringArray:
    """Return the cells of a column, each ``harmless``."""
    return pc.replace_substring_regex(cells, f"^({_FORMULA})", r"'\1") if _may_hold_formulas(cells) else cells


def unescape(cells: pa.StringArray) -> pa.StringArray:
    """Return the cells as they were before ``escape``."""
    return pc.replace_substring_regex(cells, f"^'({_FORMULA})", r"\1")


def _may_hold_formulas(cells: pa.StringArray) -> bool:
    """Tell quickly whether any cell starts with a character that may need an apostrophe."""
    data = values(cells)
    first = data[np.minimum(offsets(cells)[:-1], data.size - 1)] if data.size else data
    return bool(_MAY_START[first].any())
