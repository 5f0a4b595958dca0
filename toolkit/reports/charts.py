"""The pictures of the page: bars beside the numbers that they show.

A chart is a table whose rows carry a bar. The bar is an SVG that stretches, its texts are texts of the page:
it can be read aloud, copied and printed, and it fits any width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pandas as pd

from toolkit.domain.codes import names_of
from toolkit.domain.findings import Reason, Status
from toolkit.operations.judge.audit import AuditResult
from toolkit.reports.wording import TYPE_NAMES

WIDTH: Final = 100.0
"""Of the longest bar, in units of its drawing."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a bar: what it stands for, where it starts and how long it is."""

    code: str
    count: int
    start: float
    length: float


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of a chart."""

    code: str
    meaning: str
    segments: tuple[Segment, ...]

    @property
    def total(self) -> int:
        """All that the bar stands for."""
        return sum(segment.count for segment in self.segments)


@dataclass(frozen=True, slots=True)
class Chart:
    """A table of bars; ``columns`` has the name of each code that a segment can have."""

    name: str
    title: str
    about: str
    heading: str
    columns: Mapping[str, str]
    bars: tuple[Bar, ...]


def charts(result: AuditResult) -> list[Chart]:
    """What an audit found, in three pictures."""
    statuses = {status.value: status.value for status in Status}
    return [
        Chart(
            name="group",
            title="Status by utility group",
            about="All sales",
            heading="Group",
            columns=statuses,
            bars=_bars(result.by_group),
        ),
        Chart(
            name="age",
            title="How long it has been open",
            about="Open sales, by days since they were created",
            heading="Days",
            columns={status: name for status, name in statuses.items() if status != Status.COMPLIANT},
            bars=_bars(result.ages),
        ),
        Chart(
            name="missing",
            title="What is missing, and why",
            about="Incomplete sales that lack each piece, by how far the best attempt at it got",
            heading="Evidence",
            columns=names_of(Reason),
            bars=_bars(result.missing, {each.value: name for each, name in TYPE_NAMES.items()}),
        ),
    ]


def shares(result: AuditResult) -> tuple[Segment, ...]:
    """All sales as one bar, by status."""
    counts = {
        Status.COMPLIANT.value: result.compliant,
        Status.INCOMPLETE.value: result.incomplete,
        Status.CONFLICT.value: result.conflict,
    }
    return _segments(counts, result.sales)


def _bars(table: pd.DataFrame, meanings: Mapping[str, str] | None = None) -> tuple[Bar, ...]:
    """A bar for each row of a table of counts, whose first column names it; the longest has the full width."""
    counts = table.set_index(table.columns[0])
    longest = int(counts.sum(axis=1).max())
    return tuple(
        Bar(str(code), (meanings or {}).get(str(code), ""), _segments(dict(row), longest))
        for code, row in counts.iterrows()
    )


def _segments(counts: Mapping[str, int], longest: int) -> tuple[Segment, ...]:
    found, start = [], 0.0
    for code, count in counts.items():
        length = WIDTH * int(count) / longest if longest else 0.0
        found.append(Segment(str(code), int(count), round(start, 3), round(length, 3)))
        start += length
    return tuple(found)
