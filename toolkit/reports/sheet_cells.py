"""Make the cells of the workbook's tables: real times, numbers and booleans, and words for codes."""

from __future__ import annotations

from datetime import date
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.domain.findings import Status
from toolkit.operations.spreadsheets.xlsx_parts import Style
from toolkit.operations.spreadsheets.xlsx_writer import CELL_CHARACTERS, Cells, Form, has_unwritable
from toolkit.reports import wording
from toolkit.reports.report import Report

WIDEST: Final = 46.0
"""Characters that a column shows at most; longer texts are wrapped."""
SAMPLE: Final = 2000
"""The number of rows by which the widths of columns are chosen."""
_ROOM: Final = 4
"""Characters that the button of a filter takes."""

_DAY: Final = 86_400_000_000
_EPOCH: Final = 25_569
"""The number that a workbook has for 1970-01-01."""
_FIRST: Final = date(1899, 12, 30)
"""The day that a workbook numbers 0."""
_FIRST_DAY: Final = 61
"""The number of 1900-03-01; before it, workbooks count a day that did not exist."""


def statuses(names: pd.Series[Any], report: Report) -> Cells:
    """Return the names of statuses, each on its colour."""
    words = wording.told(wording.STATUS_NAMES, report.language)
    styles = {Style.AMBER: words[Status.INCOMPLETE], Style.RED: words[Status.CONFLICT]}
    masks = {style: (names == word).to_numpy(dtype=bool) for style, word in styles.items()}
    return Cells(texts(names), style=Style.WRAPPED, styles=masks)


def fitting(name: str, cells: Cells) -> float:
    """Return the width, in characters, that shows a heading and these cells, up to ``WIDEST``."""
    if cells.style is Style.MOMENT:
        return 18.0
    lines = pc.list_flatten(pc.split_pattern(cells.texts.drop_null(), "\n"))
    longest = pc.max(pc.utf8_length(lines)).as_py() or 0
    return min(max(float(longest) + 2, len(name) + _ROOM), WIDEST)


def values(column: pd.Series[Any], report: Report) -> Cells:
    """Return a column of values of one kind, empty ones among them: times in the report's zone, numbers, texts."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return _times(column, report)
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind == "boolean":
        return _booleans(column)
    if kind == "date":
        days = [(cell - _FIRST).days for cell in column]
        return Cells(pa.array(days).cast(pa.string()), Form.NUMBER, Style.DAY)
    if pd.api.types.is_numeric_dtype(column):
        return Cells(pa.Array.from_pandas(column).cast(pa.string()), Form.NUMBER, Style.NUMBER)
    return Cells(texts(column), style=Style.WRAPPED)


def text(value: str, style: Style) -> Cells:
    """Return one cell."""
    return Cells(texts(pd.Series([value], dtype=object)), style=style)


def texts(column: pd.Series[Any]) -> pa.StringArray:
    """Return texts that a workbook can hold; what is too long for a cell is cut, and ends with an ellipsis."""
    found = pa.array(column.to_numpy(dtype=object), pa.string(), from_pandas=True)
    found = pc.if_else(pc.equal(found, ""), None, found)
    if has_unwritable(found):
        found = pc.replace_substring_regex(found, "[\ufffe\uffff]", "\ufffd")
    if pc.any(pc.match_substring_regex(found, wording.TURNING)).as_py():
        found = pa.array([cell and wording.unturned(cell) for cell in found.to_pylist()], pa.string())
    if (pc.max(pc.utf8_length(found)).as_py() or 0) <= CELL_CHARACTERS:
        return found
    cut = pc.binary_join_element_wise(pc.utf8_slice_codeunits(found, 0, CELL_CHARACTERS - 1), "…", "")
    return pc.if_else(pc.greater(pc.utf8_length(found), CELL_CHARACTERS), cut, found)


def _booleans(column: pd.Series[Any]) -> Cells:
    cells = pa.array(column.astype(object).map({True: "1", False: "0"}), pa.string(), from_pandas=True)
    return Cells(cells, Form.BOOLEAN, Style.BOLD)


def _times(column: pd.Series[Any], report: Report) -> Cells:
    """Return the local time as a number of days, for a workbook knows no offsets; as text where too early."""
    moments = pa.Array.from_pandas(column, type=pa.timestamp("us", "UTC"))
    local = pc.local_timestamp(moments.cast(pa.timestamp("us", report.timezone.key)))
    days = pc.add(pc.divide(pc.cast(pc.cast(local, pa.int64()), pa.float64()), _DAY), _EPOCH)
    early = pc.fill_null(pc.less(days, _FIRST_DAY), False)
    cells = pc.cast(days, pa.string())
    if not pc.any(early).as_py():
        return Cells(cells, Form.NUMBER, Style.MOMENT)
    cells = pc.if_else(early, pc.strftime(local, "%Y-%m-%d %H:%M"), cells)
    return Cells(cells, Form.NUMBER, Style.MOMENT, {Form.TEXT: early.to_numpy(zero_copy_only=False)})
