"""Draw the charts of the page: bars beside the numbers that they show.

A chart is a table whose rows carry a bar. The bar is an SVG that stretches, its texts are texts of the page:
it can be read aloud, copied and printed, and it fits any width.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pandas as pd

from toolkit.domain.codes import names_of
from toolkit.domain.findings import Reason, Status
from toolkit.language import Language
from toolkit.operations.judge.audit import AuditResult
from toolkit.operations.judge.audit.census import UNKNOWN_GROUP
from toolkit.reports.wording import STATUS_NAMES, TYPE_NAMES, told

WIDTH: Final = 100.0
"""The width of the longest bar, in units of its drawing."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a bar: its code, its start and its length."""

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


@dataclass(frozen=True, slots=True)
class Chart:
    """A table of bars; ``columns`` has the name of each code that a segment can have.

    ``name`` and ``column_filter`` are the filters of the page that lead from a number to its sales.
    """

    name: str
    column_filter: str
    title: str
    about: str
    heading: str
    columns: Mapping[str, str]
    bars: tuple[Bar, ...]


def charts(result: AuditResult, language: Language) -> list[Chart]:
    """Return three charts of the results of an audit."""
    say = language.text
    statuses = told(STATUS_NAMES, language)
    rare = [reason for reason in (Reason.VANISHED, Reason.EXPIRY_UNKNOWN) if not result.missing[reason].any()]
    reasons = names_of(reason for reason in Reason if reason not in rare)
    return [
        Chart(
            name="group",
            column_filter="status",
            title=say("Status by utility group"),
            about=say("All sales"),
            heading=say("Group"),
            columns=statuses,
            bars=_bars(result.by_group, {UNKNOWN_GROUP: say("unknown")}),
        ),
        Chart(
            name="age",
            column_filter="status",
            title=say("How long it has been open"),
            about=say("Open sales, by days since they were created"),
            heading=say("Days"),
            columns={status: name for status, name in statuses.items() if status != Status.COMPLIANT},
            bars=_bars(result.ages),
        ),
        Chart(
            name="missing",
            column_filter="reason",
            title=say("What is missing, and why"),
            about=say("Incomplete sales that lack each piece, by how far the best attempt at it got"),
            heading=say("Evidence"),
            columns=told(reasons, language),
            bars=_bars(result.missing.drop(columns=rare), told(TYPE_NAMES, language)),
        ),
    ]


def shares(result: AuditResult) -> tuple[Segment, ...]:
    """Return all sales as one bar, by status."""
    return segments({str(status): getattr(result, status) for status in Status}, result.sales)


def _bars(table: pd.DataFrame, meanings: Mapping[str, str] | None = None) -> tuple[Bar, ...]:
    """Return a bar for each row of a table of counts, named by its first column; the longest is full width."""
    counts = table.set_index(table.columns[0])
    longest = int(counts.sum(axis=1).max())
    return tuple(
        Bar(str(code), (meanings or {}).get(str(code), ""), segments(dict(row), longest))
        for code, row in counts.iterrows()
    )


def segments(counts: Mapping[str, int], longest: int) -> tuple[Segment, ...]:
    """Return counts as one bar; ``longest`` is the count that has the full width."""
    found, start = [], 0.0
    for code, count in counts.items():
        length = WIDTH * int(count) / longest if longest else 0.0
        found.append(Segment(str(code), int(count), round(start, 3), round(length, 3)))
        start += length
    return tuple(found)
