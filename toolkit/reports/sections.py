"""Make the lists of a report beside its sales, once for all formats that people read.

Cells are values, not texts: each format writes numbers, days and moments in its own way. They are made of some
rows at a time, column by column and each distinct value once, because there may be more findings than sales.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from operator import attrgetter
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.domain.codes import CODES, Owner
from toolkit.domain.finding_life import FindingStatus
from toolkit.domain.report_cells import items
from toolkit.operations.judge.audit.census import UNVERIFIED
from toolkit.operations.judge.audit.details import COMPLETED_DAYS, MOST
from toolkit.reports import wording
from toolkit.reports.report import Report, tuples

Cell = str | int | float | date | datetime | None
Column = Sequence[Cell]
_Columns = dict[str, tuple[float, Callable[[Any], Cell]]]
"""The columns of a list by their headings: the width of each, and what it tells of a row."""


@dataclass(frozen=True, slots=True)
class Section:
    """A list: its headings with the share of the width that each column takes, and the number of its rows."""

    name: str
    title: str
    about: str
    columns: Mapping[str, float]
    total: int
    cells: Callable[[slice], list[Column]]
    """Makes the columns of some of its rows."""

    def rows(self, most: int) -> list[tuple[Cell, ...]]:
        """Return its first rows."""
        return list(zip(*self.cells(slice(0, min(most, self.total))), strict=True))


def sections(report: Report) -> Iterator[Section]:
    """Yield all lists in the order in which people act on them."""
    return (make(report) for make in _ALL)


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


def _finding_columns(table: pd.DataFrame, report: Report, *wanted: str) -> dict[str, Column]:
    """Return the columns of findings by their headings: all of them, or those that are wanted."""
    say = report.language.text
    made: dict[str, tuple[str, Callable[[Any], Any] | None]] = {
        say("Sale"): ("saleId", str),
        say("Finding"): ("code", lambda code: say(CODES[code].name)),
        say("Code"): ("code", str),
        say("Why"): ("reason", lambda code: say(CODES[code].name)),
        say("Weight"): ("severity", lambda code: say(wording.SEVERITY_NAMES[code])),
        say("State"): ("status", lambda code: say(wording.FINDING_STATUS_NAMES[FindingStatus(code)])),
        say("Partner"): ("partner", str),
        say("Who has to act"): ("owner", lambda owner: _owner(owner, report)),
        say("First seen"): ("firstSeen", None),
        say("Due"): ("dueAt", None),
        say("Overdue"): ("overdue", bool),
        say("Remedy"): ("remedy", say),
    }
    names = [*map(say, wanted)] or [*made]
    return {name: _cells(table[made[name][0]], made[name][1]) for name in names}


def _cells(column: pd.Series[Any], word: Callable[[Any], Any] | None) -> Column:
    """Return the word for each value of a column, empty where it is not known; for moments, the times."""
    if word is None:
        return pd.to_datetime(column, utc=True)  # type: ignore[return-value]  # read as a sequence
    if word is bool:
        return column  # type: ignore[return-value]  # read as a sequence
    if word is str:
        return column.astype("str").fillna("")  # type: ignore[return-value]
    places, values = pd.factorize(column)
    words = np.array([*map(word, values), ""], dtype=object)
    return words[places]  # type: ignore[return-value]  # the last one where it is not known


def _owner(owner: str, report: Report) -> str:
    """Return the partner by its name, or the team in words."""
    team = next((each for each in Owner if each == owner), None)
    return report.language.text(wording.OWNER_NAMES[team]) if team else owner


def findings(report: Report) -> Section:
    """Return all findings with their lives, in all columns."""
    table = report.result.life.findings
    widths = dict.fromkeys(_finding_columns(table.head(0), report), 1.0)
    return _of_findings("findings", report.language.text("Findings"), "", widths, np.arange(len(table)), report)


def _of_findings(
    name: str, title: str, about: str, widths: Mapping[str, float], places: np.ndarray[Any, Any], report: Report
) -> Section:
    """Return a section of the findings at these places, with these of their columns."""
    say, table = report.language.text, report.result.life.findings
    return Section(
        name,
        title,
        about,
        {say(heading): width for heading, width in widths.items()},
        len(places),
        lambda part: [*_finding_columns(table.iloc[places[part]], report, *widths).values()],
    )


def _listed(name: str, title: str, about: str, columns: _Columns, rows: pd.DataFrame | Sequence[Any]) -> Section:
    """Return a section whose cells are made row by row."""

    def cells(part: slice) -> list[Column]:
        own = list(tuples(rows.iloc[part])) if isinstance(rows, pd.DataFrame) else rows[part]
        return [[tell(row) for row in own] for _, tell in columns.values()]

    widths = {heading: width for heading, (width, _) in columns.items()}
    return Section(name, title, about, widths, len(rows), cells)


def problems(report: Report) -> Section:
    """Return the problems of sales with the number of sales that have each."""
    say, table = report.language.text, report.result.problems
    return _listed(
        "problems",
        say("Problems"),
        say("Sales with each, the gravest first"),
        {
            say("Sales"): (0.6, attrgetter("sales")),
            say("Problem"): (2.0, lambda row: say(CODES[row.problem].name)),
            say("Meaning"): (5.0, lambda row: say(CODES[row.problem].meaning)),
        },
        table[table["sales"] > 0],
    )


def _partners(report: Report) -> Section:
    say = report.language.text
    about = say(
        "Those with the most overdue findings first. The trend is the change of findings within 30 days; the "
        "median days are those from creation to completion."
    )
    columns: _Columns = {
        say("Partner"): (2.4, lambda row: row.partner or say("no partner")),
        say("Sales"): (1.0, attrgetter("sales")),
        say("compliant"): (1.0, attrgetter("compliant")),
        say("incomplete"): (1.0, attrgetter("incomplete")),
        say("in conflict"): (1.0, attrgetter("conflict")),
        say("Findings"): (1.0, attrgetter("findings")),
        say("Overdue"): (1.0, attrgetter("overdue")),
        say("Waived"): (1.0, attrgetter("waived")),
        say("Trend"): (1.0, attrgetter("trend")),
        say("Median days"): (1.0, lambda row: None if row.medianDays is None else round(row.medianDays, 1)),
    }
    return _listed("partners", say("Partners"), about, columns, report.result.partners)


def _changes(report: Report) -> Section:
    say, changes, table = report.language.text, report.result.life.changes, report.result.life.findings
    about, kinds = "", {}
    if changes is not None:
        since = report.language.moment(changes.start, report.timezone)
        about = report.language.count(
            "Since the audit before, at %(moment)s. %(number)s finding of then is still there.",
            "Since the audit before, at %(moment)s. %(number)s findings of then are still there.",
            changes.still_open,
            moment=since,
        )
        kinds = {"new": changes.new, "back again": changes.reopened, "resolved": changes.resolved}
    here = pa.array(table["id"], pa.large_string())
    places = {kind: np.flatnonzero(pc.is_in(here, ids)) for kind, ids in kinds.items()}
    words = np.repeat(np.array([*map(say, places)], dtype=object), [*map(len, places.values())])
    widths = {"Sale": 1.5, "Finding": 2.5, "Why": 1.5, "Partner": 1.5, "Who has to act": 1.2, "Due": 1.5}
    found = np.concatenate([np.array([], dtype=int), *places.values()])
    section = _of_findings("changes", say("Changes"), about, widths, found, report)
    return replace(
        section,
        columns={say("Change"): 1.0, **section.columns},
        cells=lambda part: [words[part], *section.cells(part)],  # type: ignore[list-item]  # read as a sequence
    )


def _trend(report: Report) -> Section:
    say, trend = report.language.text, report.result.life.trend
    return _listed(
        "trend",
        say("Trend"),
        say("The latest days on which findings came or went, with those that were there at the end of the day."),
        {
            say("Day"): (1.5, attrgetter("day")),
            say("Findings"): (1.0, attrgetter("present")),
            say("Came"): (1.0, attrgetter("came")),
            say("Went"): (1.0, attrgetter("went")),
        },
        trend[(trend["came"] > 0) | (trend["went"] > 0)].iloc[::-1],
    )


def _overdue(report: Report) -> Section:
    say, table = report.language.text, report.result.life.findings
    about = say("Their deadline, in business days since they came or came back, has passed.")
    widths = {"Sale": 1.5, "Finding": 2.5, "Partner": 1.5, "Who has to act": 1.2, "First seen": 1.5, "Due": 1.5}
    late = np.flatnonzero(table["overdue"].to_numpy(dtype=bool))
    return _of_findings("overdue", say("Overdue findings"), about, widths, late, report)


def _faults(report: Report) -> Section:
    say = report.language.text
    return _listed(
        "unusable",
        say("Unusable files"),
        say("Files that lie in the bucket and do not count, the latest first."),
        {
            say("Sale"): (1.5, attrgetter("saleId")),
            say("Evidence"): (2.5, lambda row: say(wording.TYPE_NAMES[row.evidenceType])),
            say("Fault"): (1.5, lambda row: say(CODES[row.code].name)),
            say("Since"): (1.5, attrgetter("since")),
        },
        report.result.faults,
    )


def _file_findings(report: Report) -> Section:
    say = report.language.text

    def meaning(each: Any) -> str:
        return f"{say(CODES[each.problem].meaning)} {report.language.sentence(each.detail)}".strip()

    return _listed(
        "file-findings",
        say("Findings about files"),
        say(
            "What is odd about the files themselves, the gravest first. They count until somebody withdraws a "
            "record."
        ),
        {
            say("Sales"): (1.5, lambda each: ", ".join(each.sale_ids) or say("none")),
            say("Finding"): (1.6, lambda each: say(CODES[each.problem].name)),
            say("Meaning"): (3.0, meaning),
            say("Where the files lie"): (3.0, lambda each: "\n".join(each.folders)),
        },
        report.result.file_findings,
    )


def _warned(report: Report) -> Section:
    say = report.language.text

    def warnings(row: Any) -> str:
        named = [say(CODES[each].name) for each in items(row.problems)]
        return "; ".join([*named, *([say("sale without a client")] if row.clientId is None else [])])

    return _listed(
        "warned",
        say("Compliant sales with a warning"),
        say("Nothing is missing, and something should be put right."),
        {
            say("Sale"): (1.5, attrgetter("saleId")),
            say("Warning"): (3.0, warnings),
            say("Partner"): (2.0, lambda row: row.partner or ""),
            say("Created"): (1.5, attrgetter("createdAt")),
        },
        report.result.warned,
    )


def _unverified(report: Report) -> Section:
    say = report.language.text
    wanted = ("saleId", "partner", "verified", "firstBytes", "never", "unreadable", "createdAt")
    wide = ("saleId", "createdAt")
    return _listed(
        "unverified",
        say("Compliant, not fully verified"),
        say("Nothing is missing as far as is known. At most %(number)s are listed.", number=UNVERIFIED),
        {say(wording.COLUMN_NAMES[name]): (1.5 if name in wide else 1.0, attrgetter(name)) for name in wanted},
        report.result.unverified,
    )


def _withdrawals(report: Report) -> Section:
    say = report.language.text
    return _listed(
        "withdrawals",
        say("Withdrawals"),
        say("Evidence records that do not count any more, by the word of two people; the files stay."),
        {
            say("Sale"): (1.4, attrgetter("saleId")),
            say("Evidence"): (2.0, lambda row: say(wording.TYPE_NAMES.get(row.evidenceType, row.evidenceType))),
            say("Reason"): (2.4, attrgetter("reason")),
            say("Withdrawn by"): (1.2, attrgetter("withdrawnBy")),
            say("Approved by"): (1.2, attrgetter("approvedBy")),
            say("Withdrawn at"): (1.5, attrgetter("withdrawnAt")),
        },
        report.result.withdrawals,
    )


def _completed(report: Report) -> Section:
    say = report.language.text
    return _listed(
        "completed",
        say("Completed sales"),
        say(
            "Sales that were completed within the %(days)s days before, at most %(number)s of each partner, and "
            "what their evidence says now.",
            days=COMPLETED_DAYS,
            number=MOST,
        ),
        {
            say("Sale"): (1.5, attrgetter("saleId")),
            say("Partner"): (2.0, lambda row: row.partner or ""),
            say("Completed"): (1.5, attrgetter("completedAt")),
            say("Status"): (1.5, lambda row: say(wording.STATUS_NAMES[row.status])),
        },
        report.result.completed,
    )


def _waivers(report: Report) -> Section:
    say, life = report.language.text, report.result.life
    ending, anything = {waiver.id for waiver in life.ending}, say("any")
    return _listed(
        "waivers",
        say("Waivers"),
        say("Findings that two people accept until a day; they are back on it."),
        {
            say("Sale"): (1.2, lambda each: each.request.sale_id or anything),
            say("Partner"): (1.2, lambda each: each.request.partner or anything),
            say("Finding"): (
                2.0,
                lambda each: say(CODES[each.request.code].name) if each.request.code else anything,
            ),
            say("Reason"): (2.0, attrgetter("request.reason")),
            say("Owner"): (1.2, attrgetter("request.owner")),
            say("Approved by"): (1.2, attrgetter("request.approved_by")),
            say("Ends on"): (1.2, attrgetter("request.end")),
            say("Ends soon"): (1.2, lambda each: say("soon") if each.id in ending else ""),
        },
        life.waivers,
    )


_ALL: Final[tuple[Callable[[Report], Section], ...]] = (
    _partners,
    _changes,
    _trend,
    _overdue,
    _faults,
    _file_findings,
    _warned,
    _unverified,
    _withdrawals,
    _completed,
    _waivers,
)
