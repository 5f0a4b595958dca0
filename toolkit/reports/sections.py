"""The lists of a report beside its sales, each told once for all formats that people read.

Cells are values, not texts: each format writes numbers, days and moments in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

import pandas as pd

from toolkit.domain.codes import CODES, Owner
from toolkit.domain.finding_life import FindingStatus
from toolkit.domain.report_cells import items
from toolkit.reports import wording
from toolkit.reports.report import Report, known, tuples

Cell = str | int | float | date | datetime | None


@dataclass(frozen=True, slots=True)
class Section:
    """A list: its headings with the share of the width that each column takes, and its rows."""

    name: str
    title: str
    about: str
    columns: dict[str, float]
    rows: Sequence[Sequence[Cell]]

    def __bool__(self) -> bool:
        return bool(self.rows)


def sections(report: Report) -> list[Section]:
    """All lists in the order in which people act on them; one without rows is false."""
    return [make(report) for make in _ALL]


def cell_text(cell: Cell, report: Report) -> str:
    """A cell as people read it."""
    language = report.language
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return language.moment(cell, report.timezone)
    if isinstance(cell, date):
        return language.day(cell)
    return language.number(cell) if isinstance(cell, int | float) else cell


def findings(report: Report, wanted: Iterable[str] | None = None) -> Iterator[tuple[Cell, ...]]:
    """One row a finding, in the columns of ``FINDING``; all of them, or those with these ids."""
    say = report.language.text
    table = report.result.life.findings
    for row in tuples(known(table if wanted is None else table[table["id"].isin(list(wanted))])):
        yield (
            row.saleId,
            say(CODES[row.code].name),
            row.code,
            say(CODES[row.reason].name) if row.reason else "",
            say(wording.SEVERITY_NAMES[row.severity]),
            say(wording.FINDING_STATUS_NAMES[FindingStatus(row.status)]),
            row.partner or "",
            _owner(row.owner, report),
            row.firstSeen,
            row.dueAt,
            say("yes") if row.overdue else say("no"),
            say(row.remedy) if row.remedy else "",
        )


def _owner(owner: str | None, report: Report) -> str:
    """The partner by its name, or the team in words."""
    team = next((each for each in Owner if each == owner), None)
    return report.language.text(wording.OWNER_NAMES[team]) if team else owner or ""


FINDING: Final = (
    "Sale",
    "Finding",
    "Code",
    "Why",
    "Weight",
    "State",
    "Partner",
    "Who has to act",
    "First seen",
    "Due",
    "Overdue",
    "Remedy",
)
"""The columns of ``findings``."""

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

WAIVER: Final = ("Sale", "Partner", "Finding", "Reason", "Owner", "Approved by", "Ends on", "Ends soon")
"""The columns of the waivers."""


def _partners(report: Report) -> Section:
    say = report.language.text
    rows = [
        (
            row.partner or say("no partner"),
            *map(int, (row.sales, row.compliant, row.incomplete, row.conflict, row.findings, row.overdue)),
            int(row.waived),
            int(row.trend),
            None if pd.isna(row.medianDays) else round(float(row.medianDays), 1),
        )
        for row in tuples(report.result.partners)
    ]
    return Section(
        "partners",
        say("Partners"),
        say(
            "Those with the most overdue findings first. The trend is the change of findings within 30 days; the "
            "median days are those from creation to completion."
        ),
        {say("Partner"): 2.4, **{say(name): 1.0 for name in PARTNER}},
        rows,
    )


def _changes(report: Report) -> Section:
    say, changes = report.language.text, report.result.life.changes
    rows: list[tuple[Cell, ...]] = []
    about = ""
    if changes is not None:
        about = say(
            "Since the audit before, at %(moment)s.",
            moment=report.language.moment(changes.start, report.timezone),
        )
        kinds = (("new", changes.new), ("back again", changes.reopened), ("resolved", changes.resolved))
        for kind, ids in kinds:
            rows += [_change(say(kind), row) for row in findings(report, map(str, ids))]
    widths = {say("Change"): 1.0, say("Sale"): 1.5, say("Finding"): 2.5, say("Partner"): 1.5}
    return Section("changes", say("Changes"), about, widths | {say("Who has to act"): 1.2, say("Due"): 1.5}, rows)


def _change(kind: str, row: Sequence[Cell]) -> tuple[Cell, ...]:
    sale, name, _, _, _, _, partner, owner, _, due, *_ = row
    return kind, sale, name, partner, owner, due


def _overdue(report: Report) -> Section:
    say, table = report.language.text, report.result.life.findings
    late = table.loc[table["overdue"].astype(bool), "id"]
    rows = [
        (sale, name, partner, owner, first, due)
        for sale, name, _, _, _, _, partner, owner, first, due, *_ in findings(report, late)
    ]
    widths = {say("Sale"): 1.5, say("Finding"): 2.5, say("Partner"): 1.5, say("Who has to act"): 1.2}
    return Section(
        "overdue",
        say("Overdue findings"),
        say("Their deadline, in business days since they were first seen, has passed."),
        widths | {say("First seen"): 1.5, say("Due"): 1.5},
        rows,
    )


def _faults(report: Report) -> Section:
    say = report.language.text
    rows = [
        (row.saleId, say(wording.TYPE_NAMES[row.evidenceType]), say(CODES[row.code].name), row.since)
        for row in tuples(known(report.result.faults))
    ]
    return Section(
        "unusable",
        say("Unusable files"),
        say("Files that lie in the bucket and do not count, the latest first."),
        {say("Sale"): 1.5, say("Evidence"): 2.5, say("Fault"): 1.5, say("Since"): 1.5},
        rows,
    )


def _file_findings(report: Report) -> Section:
    say = report.language.text
    rows = [
        (
            ", ".join(each.sale_ids) or say("none"),
            say(CODES[each.problem].name),
            f"{say(CODES[each.problem].meaning)} {each.detail}".strip(),
            "\n".join(each.folders),
        )
        for each in report.result.file_findings
    ]
    about = say(
        "What is odd about the files themselves, the gravest first. They count until somebody withdraws a record."
    )
    widths = {say("Sales"): 1.5, say("Finding"): 1.6, say("Meaning"): 3.0, say("Where the files lie"): 3.0}
    return Section("file-findings", say("Findings about files"), about, widths, rows)


def _warned(report: Report) -> Section:
    say = report.language.text
    warning = {True: say("sale without a client"), False: ""}
    rows = []
    for row in tuples(known(report.result.warned)):
        problems = [say(CODES[each].name) for each in items(row.problems)]
        listed = "; ".join(filter(None, [*problems, warning[row.clientId is None]]))
        rows.append((row.saleId, listed, row.partner or "", row.createdAt))
    return Section(
        "warned",
        say("Compliant sales with a warning"),
        say("Nothing is missing, and something should be put right."),
        {say("Sale"): 1.5, say("Warning"): 3.0, say("Partner"): 2.0, say("Created"): 1.5},
        rows,
    )


def _withdrawals(report: Report) -> Section:
    say = report.language.text
    rows = [
        (
            row.saleId,
            say(wording.TYPE_NAMES[row.evidenceType])
            if row.evidenceType in wording.TYPE_NAMES
            else row.evidenceType,
            row.reason,
            row.withdrawnBy,
            row.approvedBy,
            row.withdrawnAt,
        )
        for row in tuples(known(report.result.withdrawals))
    ]
    widths = {say("Sale"): 1.4, say("Evidence"): 2.0, say("Reason"): 2.4, say("Withdrawn by"): 1.2}
    return Section(
        "withdrawals",
        say("Withdrawals"),
        say("Evidence records that do not count any more, by the word of two people; the files stay."),
        widths | {say("Approved by"): 1.2, say("Withdrawn at"): 1.5},
        rows,
    )


def _waivers(report: Report) -> Section:
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
        for waiver in life.waivers
    ]
    return Section(
        "waivers",
        say("Waivers"),
        say("Findings that two people accept until a day; they are back on it."),
        {say(name): 2.0 if name in {"Finding", "Reason"} else 1.2 for name in WAIVER},
        rows,
    )


_ALL: Final[tuple[Callable[[Report], Section], ...]] = (
    _partners,
    _changes,
    _overdue,
    _faults,
    _file_findings,
    _warned,
    _withdrawals,
    _waivers,
)


def finding_columns(report: Report) -> dict[str, float]:
    """The headings of ``findings``."""
    return {report.language.text(name): 1.0 for name in FINDING}


def rows_of(section: Section, report: Report) -> list[list[str]]:
    """All cells of a section as people read them."""
    return [[cell_text(cell, report) for cell in row] for row in section.rows]
