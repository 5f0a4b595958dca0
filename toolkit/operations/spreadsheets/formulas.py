"""Keep spreadsheet programs from taking a text of a CSV file for a formula.

Such a text gets one apostrophe more in front, so that what was written can be read back as it was.
"""

import re
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import compute as pc

from toolkit.operations.spreadsheets.text_bytes import offsets, values

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
