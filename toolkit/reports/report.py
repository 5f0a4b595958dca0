"""A report: an audit's result, and the options for showing it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import ZoneInfo

import pandas as pd

from toolkit.language import ENGLISH, Language
from toolkit.operations.judge.audit import AuditResult

MOMENTS: Final = ("createdAt", "completedAt", "oldestRequest")
"""The columns of the rows that hold times."""


ROWS_AT_ONCE: Final = 20_000
"""Rows that are turned into a format at once; more take more memory and no less time."""


def _nobody(_: float) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class Report:
    """An audit's result with the options for showing it; one module for each format writes it into a file."""

    result: AuditResult
    timezone: ZoneInfo
    """The zone that times are shown in."""
    formats: tuple[str, ...]
    """All formats that are written, so that one can link to another."""
    language: Language = ENGLISH
    """The language of the formats for people; those for programs have none."""
    excel: bool = False
    """True if the CSV is written as a Brazilian Excel opens it, instead of as programs read it."""
    tell: Callable[[float], None] = _nobody
    """Is told the share of a format that is written, from 0 to 1."""


@dataclass(slots=True)
class Rows:
    """The rows of a format that are written, of about so many."""

    report: Report
    expected: int
    written: int = 0

    def add(self, count: int) -> None:
        """Tell of more rows."""
        self.written += count
        self.report.tell(min(self.written / max(self.expected, 1), 1))


def known(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the same rows, with ``None`` for everything that is not known."""
    return rows.astype(object).where(rows.notna(), None)


def tuples(table: pd.DataFrame) -> Iterator[Any]:
    """Return the rows of a table, their values as attributes, ``None`` for everything that is not known."""
    return known(table).itertuples(index=False)
