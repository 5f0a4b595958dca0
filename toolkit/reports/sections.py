"""Make the lists of a report beside its sales, once for all formats that people read.

Cells are values, not texts: each format writes numbers, days and moments in its own way. They are made column by
column, each distinct value once, because there may be more findings than sales.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import chain
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.domain.codes import CODES, Owner
from toolkit.domain.finding_life import FindingStatus
from toolkit.domain.report_cells import items
from toolkit.operations.judge.audit.census import UNVERIFIED
from toolkit.reports import wording
from toolkit.reports.report import Report, tuples

Cell = str | int | float | date | datetime | None
Column = Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Section:
    """A list: its headings with the share of the width that each column takes, and its first rows by column.

    ``total`` is the number of rows that there are.
    """

    name: str
    title: str
    about: str
    columns: dict[str, float]
    cells: Sequence[Column]
    total: int

    def __bool__(self) -> bool:
        return self.total > 0

    @property
    def rows(self) -> list[tuple[Cell, ...]]:
        """The rows that it holds."""
        return list(zip(*self.cells, strict=True))


def sections(report: Report, most: int) -> Iterator[Section]:
    """Yield all lists in the order in which people act on them, with at most ``most`` rows each."""
    return (make(report, most) for make in _ALL)


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


def finding_columns(table: pd.DataFrame, report: Report, *wanted: str) -> dict[str, Column]:
    """Return the columns of findings by their headings: all of them, or those that are wanted."""
    say = report.language.text
    made: dict[str, tuple[str, Callable[[Any], str] | None]] = {
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
        say("Overdue"): ("overdue", lambda late: say("yes") if late else say("no")),
        say("Remedy"): ("remedy", say),
    }
    names = [*map(say, wanted)] or [*made]
    return {name: _cells(table[made[name][0]], made[name][1]) for name in names}


def _cells(column: pd.Series[Any], word: Callable[[Any], str] | None) -> Column:
    """Return the word for each value of a column, empty where it is not known; for moments, the times."""
    if word is None:
        return pd.to_datetime(column, utc=True)  # type: ignore[return-value]  # read as a sequence
    if word is str:
        return column.astype("str").fillna("")  # type: ignore[return-value]
    places, values = pd.factorize(column)
    words = np.array([*map(word, values), ""], dtype=object)
    return words[places]  # type: ignore[return-value]  # the last one where it is not known


def _owner(owner: str, report: Report) -> str:
    """Return the partner by its name, or the team in words."""
    team = next((each for each in Owner if each == owner), None)
    return report.language.text(wording.OWNER_NAMES[team]) if team else owner


PARTNER: Final = (
    "Sales",
    "compliant",
    "incomplete",
    "in conflict",
    "Findings",
    "Overdue",
    "Waived",
    "Trend",
    "Median days",
)
"""The figures of a partner."""

TREND: Final = ("Findings", "Came", "Went")
"""The figures of a day."""

WAIVER: Final = ("Sale", "Partner", "Finding", "Reason", "Owner", "Approved by", "Ends on", "Ends soon")
"""The columns of the waivers."""


def _listed(
    name: str, title: str, about: str, columns: dict[str, float], rows: Iterable[Sequence[Cell]], total: int
) -> Section:
    """Return a section that is made row by row."""
    return Section(name, title, about, columns, list(zip(*rows, strict=True)) or [()] * len(columns), total)


def _partners(report: Report, most: int) -> Section:
    say = report.language.text
    rows = [
        (
            row.partner or say("no partner"),
            *map(int, (row.sales, row.compliant, row.incomplete, row.conflict, row.findings, row.overdue)),
            int(row.waived),
            int(row.trend),
            None if pd.isna(row.medianDays) else round(float(row.medianDays), 1),
        )
        for row in tuples(report.result.partners.head(most))
    ]
    return _listed(
        "partners",
        say("Partners"),
        say(
            "Those with the most overdue findings first. The trend is the change of findings within 30 days; the "
            "median days are those from creation to completion."
        ),
        {say("Partner"): 2.4, **{say(name): 1.0 for name in PARTNER}},
        rows,
        len(report.result.partners),
    )


def _changes(report: Report, most: int) -> Section:
    say, changes, table = report.language.text, report.result.life.changes, report.result.life.findings
    about, kinds = "", {}
    if changes is not None:
        since = report.language.moment(changes.start, report.timezone)
        about = report.language.count(
            "Since the audit before, at %(moment)s. %(number)s finding of then is still there.",
            "Since the audit before, at %(moment)s. %(number)s findings of then are still there.",
            len(changes.open),
            moment=since,
        )
        kinds = {"new": changes.new, "back again": changes.reopened, "resolved": changes.resolved}
    here = pa.array(table["id"], pa.large_string())
    told = {kind: pa.array(map(str, ids), pa.large_string(), size=len(ids)) for kind, ids in kinds.items()}
    places = {kind: np.flatnonzero(pc.is_in(here, ids)) for kind, ids in told.items()}
    total = sum(map(len, places.values()))
    found = table.iloc[np.array([*chain.from_iterable(places.values())][:most], dtype=int)]
    words = [word for kind, own in places.items() for word in [say(kind)] * len(own)][:most]
    columns = finding_columns(found, report, "Sale", "Finding", "Partner", "Who has to act", "Due")
    widths = dict(zip([say("Change"), *columns], (1.0, 1.5, 2.5, 1.5, 1.2, 1.5), strict=True))
    return Section("changes", say("Changes"), about, widths, [words, *columns.values()], total)


def _trend(report: Report, most: int) -> Section:
    say, trend = report.language.text, report.result.life.trend
    moved = trend[(trend["came"] > 0) | (trend["went"] > 0)].iloc[::-1]
    rows = [(row.day, int(row.present), int(row.came), int(row.went)) for row in tuples(moved.head(most))]
    return _listed(
        "trend",
        say("Trend"),
        say("The latest days on which findings came or went, with those that were there at the end of the day."),
        {say("Day"): 1.5, **{say(name): 1.0 for name in TREND}},
        rows,
        len(moved),
    )


def _overdue(report: Report, most: int) -> Section:
    say, table = report.language.text, report.result.life.findings
    late = table[table["overdue"].astype(bool)]
    wanted = ("Sale", "Finding", "Partner", "Who has to act", "First seen", "Due")
    columns = finding_columns(late.head(most), report, *wanted)
    return Section(
        "overdue",
        say("Overdue findings"),
        say("Their deadline, in business days since they were first seen, has passed."),
        dict(zip(columns, (1.5, 2.5, 1.5, 1.2, 1.5, 1.5), strict=True)),
        list(columns.values()),
        len(late),
    )


def _faults(report: Report, most: int) -> Section:
    say = report.language.text
    rows = [
        (row.saleId, say(wording.TYPE_NAMES[row.evidenceType]), say(CODES[row.code].name), row.since)
        for row in tuples(report.result.faults.head(most))
    ]
    return _listed(
        "unusable",
        say("Unusable files"),
        say("Files that lie in the bucket and do not count, the latest first."),
        {say("Sale"): 1.5, say("Evidence"): 2.5, say("Fault"): 1.5, say("Since"): 1.5},
        rows,
        len(report.result.faults),
    )


def _file_findings(report: Report, most: int) -> Section:
    say = report.language.text
    rows = [
        (
            ", ".join(each.sale_ids) or say("none"),
            say(CODES[each.problem].name),
            f"{say(CODES[each.problem].meaning)} {each.detail}".strip(),
            "\n".join(each.folders),
        )
        for each in report.result.file_findings[:most]
    ]
    about = say(
        "What is odd about the files themselves, the gravest first. They count until somebody withdraws a record."
    )
    widths = {say("Sales"): 1.5, say("Finding"): 1.6, say("Meaning"): 3.0, say("Where the files lie"): 3.0}
    total = len(report.result.file_findings)
    return _listed("file-findings", say("Findings about files"), about, widths, rows, total)


def _warned(report: Report, most: int) -> Section:
    say = report.language.text
    warning = {True: say("sale without a client"), False: ""}
    rows = []
    for row in tuples(report.result.warned.head(most)):
        problems = [say(CODES[each].name) for each in items(row.problems)]
        listed = "; ".join(filter(None, [*problems, warning[row.clientId is None]]))
        rows.append((row.saleId, listed, row.partner or "", row.createdAt))
    return _listed(
        "warned",
        say("Compliant sales with a warning"),
        say("Nothing is missing, and something should be put right."),
        {say("Sale"): 1.5, say("Warning"): 3.0, say("Partner"): 2.0, say("Created"): 1.5},
        rows,
        len(report.result.warned),
    )


def _unverified(report: Report, most: int) -> Section:
    say, names = report.language.text, wording.COLUMN_NAMES
    wanted = ("saleId", "partner", "verified", "firstBytes", "never", "unreadable", "createdAt")
    rows = report.result.unverified[list(wanted)]
    return _listed(
        "unverified",
        say("Compliant, not fully verified"),
        say("Nothing is missing as far as is known. At most %(number)s are listed.", number=UNVERIFIED),
        {say(names[name]): 1.5 if name in {"saleId", "createdAt"} else 1.0 for name in wanted},
        (tuple(row) for row in tuples(rows.head(most))),
        len(rows),
    )


def _withdrawals(report: Report, most: int) -> Section:
    say = report.language.text
    rows = [
        (
            row.saleId,
            say(wording.TYPE_NAMES.get(row.evidenceType, row.evidenceType)),
            row.reason,
            row.withdrawnBy,
            row.approvedBy,
            row.withdrawnAt,
        )
        for row in tuples(report.result.withdrawals.head(most))
    ]
    widths = {say("Sale"): 1.4, say("Evidence"): 2.0, say("Reason"): 2.4, say("Withdrawn by"): 1.2}
    return _listed(
        "withdrawals",
        say("Withdrawals"),
        say("Evidence records that do not count any more, by the word of two people; the files stay."),
        widths | {say("Approved by"): 1.2, say("Withdrawn at"): 1.5},
        rows,
        len(report.result.withdrawals),
    )


def _waivers(report: Report, most: int) -> Section:
    say, life = report.language.text, report.result.life
    ending = {waiver.id for waiver in life.ending}
    rows = [
        (
            waiver.request.sale_id or say("any"),
            waiver.request.partner or say("any"),
            say(CODES[waiver.request.code].name) if waiver.request.code else say("any"),
            waiver.request.reason,
            waiver.request.owner,
            waiver.request.approved_by,
            waiver.request.end,
            say("soon") if waiver.id in ending else "",
        )
        for waiver in life.waivers[:most]
    ]
    return _listed(
        "waivers",
        say("Waivers"),
        say("Findings that two people accept until a day; they are back on it."),
        {say(name): 2.0 if name in {"Finding", "Reason"} else 1.2 for name in WAIVER},
        rows,
        len(life.waivers),
    )


_ALL: Final[tuple[Callable[[Report, int], Section], ...]] = (
    _partners,
    _changes,
    _trend,
    _overdue,
    _faults,
    _file_findings,
    _warned,
    _unverified,
    _withdrawals,
    _waivers,
)
