"""Make the lists of a report beside its sales, once for all formats that people read.

Cells are values, not texts: each format writes numbers, days and moments in its own way. They are made of some
rows at a time, column by column and each distinct value once, because there may be more findings than sales.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd

from toolkit.reports.columns import COLUMNS, Words, moment
from toolkit.reports.lists import LIMITS, List
from toolkit.reports.report import Report, known

Cell = str | int | float | date | datetime | None


@dataclass(frozen=True, slots=True)
class Section:
    """A list of a report: its English headings, with the share of the width that each takes, and its rows."""

    title: str
    about: str
    columns: Mapping[str, float]
    total: int
    part: Callable[[slice], pd.DataFrame]
    """Returns some of its rows, in the columns that ``COLUMNS`` names."""
    report: Report

    @property
    def headings(self) -> list[str]:
        """The headings in the language of the report."""
        return [*map(self.report.language.text, self.columns)]

    def cells(self, part: slice) -> list[pd.Series[Any]]:
        """Return the columns of some of its rows."""
        rows, say = self.part(part).reset_index(drop=True), self.report.language.text
        return [_column(rows[name], words, say) for name, words in map(COLUMNS.__getitem__, self.columns)]

    def rows(self, most: int) -> list[tuple[Cell, ...]]:
        """Return its first rows, ``None`` for everything that is not known."""
        cells = self.cells(slice(0, min(most, self.total)))
        return list(known(pd.DataFrame(dict(enumerate(cells)))).itertuples(index=False, name=None))


def section(of: List, report: Report) -> Section:
    """Return a list as this report has it."""
    say, rows = report.language.text, of.rows(report)
    total, part = rows if isinstance(rows, tuple) else (len(rows), rows.iloc.__getitem__)
    about = say(of.about, **LIMITS) if isinstance(of.about, str) else of.about(report)
    return Section(say(of.title), about, of.columns, total, part, report)


def _column(values: pd.Series[Any], words: Words | None, say: Callable[[str], str]) -> pd.Series[Any]:
    """Return what stands for the values, each distinct one of which is looked up once."""
    if words is None:
        return values
    if words is moment:
        return pd.to_datetime(values, utc=True)
    places, distinct = pd.factorize(values)
    told = np.array([*(words(value, say) for value in distinct), None], dtype=object)
    return pd.Series(told[places])  # the last one where it is not known


def cell_text(cell: Cell, report: Report) -> str:
    """Return a cell as people read it."""
    language = report.language
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return language.moment(cell, report.timezone)
    if isinstance(cell, date):
        return language.day(cell)
    return language.number(cell) if isinstance(cell, int | float) else cell
