"""One sheet of a workbook, filled from the top down, in memory that does not grow with its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

ROWS: Final = 1_048_576
"""Rows of a sheet, its heading included."""

_TEXT_MAX: Final = 32_767
_FIRST_YEAR: Final = 1900


class Formats:
    """The cell formats of a workbook."""

    def __init__(self, book: Any) -> None:
        self.title = book.add_format({"bold": True, "font_size": 18})
        self.section = book.add_format({"bold": True, "font_size": 13})
        self.bold = book.add_format({"bold": True})
        self.soft = book.add_format({"font_color": "#5D646C"})
        self.heading = book.add_format({"bold": True, "bottom": 1, "bg_color": "#EFECE4"})
        self.wrapped = book.add_format({"text_wrap": True, "valign": "top"})
        self.top = book.add_format({"bold": True, "valign": "top"})
        self.moment = book.add_format({"num_format": "yyyy-mm-dd hh:mm", "align": "left"})
        self.count = book.add_format({"num_format": "#,##0"})


class Sheet:
    """A sheet, and the row that comes next."""

    def __init__(self, book: Any, formats: Formats, name: str, widths: Sequence[float]) -> None:
        self.name = name
        self.row = 0
        self.formats = formats
        self.paper = book.add_worksheet(name)
        self.paper.hide_gridlines(2)
        self.paper.set_landscape()
        self.paper.fit_to_pages(1, 0)
        for place, width in enumerate(widths):
            self.paper.set_column(place, place, width)

    def line(self, *cells: Any, style: Any = None, height: float | None = None) -> None:
        """Write one row; ``None`` leaves a cell empty, and so does nothing at all."""
        if height is not None:
            self.paper.set_row(self.row, height)
        for place, value in enumerate(cells):
            self._write(place, value, style)
        self.row += 1

    def table(self, columns: Iterable[str], rows: Iterable[Sequence[Any]]) -> range:
        """Write a heading and rows; the numbers of the rows' lines."""
        self.line(*columns, style=self.formats.heading)
        first = self.row
        for row in rows:
            self.line(*row)
        return range(first, self.row)

    def list_of(self, pairs: Mapping[str, str]) -> None:
        """Write words and what they mean."""
        for word, meaning in pairs.items():
            self._write(0, word, self.formats.top)
            self._write(1, meaning, self.formats.wrapped)
            self.row += 1

    def _write(self, place: int, value: Any, style: Any) -> None:
        if value is None or value == "":
            return
        if isinstance(value, bool):
            self.paper.write_boolean(self.row, place, value, style)
        elif isinstance(value, int | float):
            self.paper.write_number(self.row, place, value, style or self.formats.count)
        elif isinstance(value, datetime):
            self._write_moment(place, value)
        else:
            self.paper.write_string(self.row, place, str(value)[:_TEXT_MAX], style)

    def _write_moment(self, place: int, moment: datetime) -> None:
        """Write the local time; a workbook knows no offsets, and no time before its first year."""
        if moment.year < _FIRST_YEAR:
            self.paper.write_string(self.row, place, moment.isoformat(sep=" ", timespec="minutes"))
        else:
            self.paper.write_datetime(self.row, place, moment.replace(tzinfo=None), self.formats.moment)
