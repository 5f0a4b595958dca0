"""The lists of a report beside its sales: what each is about, its columns, and its cells, once for all formats.

Titles, sentences and headings are English; those of ``COLUMNS`` say where the values of a column come from. Cells
are values, not texts: each format writes numbers, days and moments in its own way. They are made of some rows at a
time, each distinct value once, because there may be more findings than sales.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from functools import cache, partial
from itertools import starmap
from typing import Any, Final, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pydantic.alias_generators import to_camel

from toolkit.audit.changes import BETWEEN
from toolkit.audit.folder import UNPROVEN
from toolkit.contract.codes import CODES, names_of
from toolkit.contract.evidence import EvidenceType
from toolkit.contract.findings import SEPARATOR, items
from toolkit.contract.resources import HEADINGS, AnswerKind
from toolkit.language import Language
from toolkit.message import Message
from toolkit.reports import wording
from toolkit.reports.audited import COMPLETED_DAYS, MONTHS, MOST
from toolkit.reports.report import List, Report, tuples, worded_detail
from toolkit.reports.wording import COLUMN_NAMES

Word = Callable[[Any, Callable[[str], str]], Any]
"""Gives what stands for a value, its words translated by the function."""

Words = Word | Literal["day"] | None  # words for the values of a column; or that a day is told of its times


def of(names: Mapping[Any, str]) -> Word:
    """Return the words that give the name of a code."""
    return lambda code, say: say(names[code]) if code in names else code


def each_of(names: Mapping[Any, str]) -> Word:
    """Return the words that give the name of each code of a list, on a line of its own."""
    return lambda joined, say: "\n".join(of(names)(code, say) for code in items(joined))


_CODES: Final = names_of(CODES)

_WORDED: Final[Mapping[str, Words]] = {
    "status": of(wording.STATUS_NAMES),
    "missing": each_of(wording.TYPE_NAMES),
    "reasons": each_of(_CODES),
    "problems": each_of(_CODES),
    "counted": each_of(wording.TYPE_NAMES),
    "isClientFinancialResponsible": of({True: "yes", False: "no"}),
    "owners": each_of(wording.OWNER_NAMES),
}

COLUMNS: Final[Mapping[str, tuple[str, Words]]] = {
    **{heading: (name, _WORDED.get(name)) for name, heading in wording.COLUMN_NAMES.items()},
    **{heading: ("id" if field == "findingId" else field, None) for field, heading in HEADINGS.items()},
    "Due before told": ("lateUntold", None),
    "Due": ("dueAt", "day"),
    "Evidence": ("evidenceType", of(wording.TYPE_NAMES)),
    "Fault": ("code", of(_CODES)),
    "Finding": ("code", of(_CODES)),
    "Next deadline": ("dueAt", "day"),
    "Problem": ("code", of(_CODES)),
    "Reason (code)": ("reasons", None),
    "Remedy": ("remedy", lambda text, say: say(text)),
    "State": ("status", of(wording.FINDING_STATUS_NAMES)),
    "Type (code)": ("evidenceType", None),
    "Waived findings": ("waived", None),
    "Weight": ("severity", of(wording.SEVERITY_NAMES)),
    "What is missing, and why": ("wrong", None),
    "Who acts": ("owners", _WORDED["owners"]),
    "Who has to act": ("owner", of(wording.OWNER_NAMES)),
    "in conflict": ("conflict", None),
}
"""The columns of lists by their English headings; one that is not here is its column's name in words."""


def _same(*headings: str) -> dict[str, float]:
    return dict.fromkeys(headings, 1.0)


def _missing(report: Report) -> pd.DataFrame:
    rows = report.result.rows[["saleId", "utilityGroup", "missing", "reasons", "partner", "createdAt", "ageDays"]]
    rows = rows[rows["missing"] != ""]
    texts = (pa.array(rows[each].astype("str"), pa.string()) for each in ("missing", "reasons"))
    types, reasons = (pc.split_pattern(each, SEPARATOR) for each in texts)
    pieces = {"evidenceType": types.flatten(), "reasons": reasons.flatten()}
    lacking: pd.DataFrame = rows.iloc[pc.list_parent_indices(types)].reset_index(drop=True)
    return lacking.assign(**{name: each.dictionary_encode().to_pandas() for name, each in pieces.items()})


def _to_act_on(report: Report) -> pd.DataFrame:
    say, rows = report.language.text, report.result.rows

    def wrong(missing: str, reasons: str, problems: str) -> str:
        pieces = zip(items(missing), items(reasons), strict=True)
        lacks = [
            f"{say(wording.TYPE_NAMES[EvidenceType(piece)])}: {say(_CODES[reason])}" for piece, reason in pieces
        ]
        return "; ".join([*lacks, *(say(_CODES[problem]) for problem in items(problems))])

    return rows.assign(wrong=[*map(wrong, rows["missing"], rows["reasons"], rows["problems"])])


def _findings(report: Report) -> pd.DataFrame:
    found = report.result.findings.rename(columns={"reason": "reasons"})
    said = found.loc[found["toldAt"].notna() | found["answer"].notna(), ["toldAt", "answer", "answerUntil"]]
    days = pd.to_datetime(said["toldAt"], utc=True).dt.tz_convert(report.timezone).dt.date
    heard = cache(partial(_heard, report.language))
    rows = starmap(heard, tuples(said.assign(toldAt=days)))
    return found.assign(toldOrAnswered=pd.Series([*rows], said.index, dtype=object))


def _heard(language: Language, told: date | None, answer: str | None, until: date | None) -> str:
    """Return what the partner answered to a finding, or the day on which it was told."""
    if answer is None:
        return language.text("told {}", language.day(told)) if told else ""
    words = language.text(AnswerKind(answer).text)
    return f"{words}, {language.day(until)}" if until else words


def _found(report: Report, headings: Iterable[str], *more: str) -> pd.DataFrame:
    """Return the findings with the columns below these headings and ``more`` alone: there may be many rows."""
    found, names = section(FINDINGS, report).table, {*more, *(_source(each)[0] for each in headings)}
    return found[[name for name in found.columns if name in names]]


def _open(report: Report) -> pd.DataFrame:
    """Return the open findings, overdue ones first, each with the business days that it is late."""
    found = _found(report, [*BESIDE["open"].columns, *ANSWERS.columns], "status", "dueInBusinessDays", "overdue")
    found = found[found["status"].isin(["open", "reopened"])]
    found = found.assign(
        daysLate=(-found["dueInBusinessDays"]).where(found["overdue"].astype(bool)).astype("Int64")
    )
    return found.sort_values(["overdue", "dueAt"], ascending=[False, True], kind="stable")


_CHANGES: Final = {"new": "new", "reopened": "back again", "resolved": "resolved", BETWEEN: "came and went"}


def _changes(report: Report) -> pd.DataFrame:
    found, say = _found(report, BESIDE["changes"].columns), report.language.text
    kinds = (found[found["change"] == kind].assign(change=say(word)) for kind, word in _CHANGES.items())
    return pd.concat(kinds)


def _changed_partners(report: Report) -> pd.DataFrame:
    columns = {"reopened": "backAgain", BETWEEN: "cameAndWent", "open": "stillOpen"}
    return _named(report.result.changes_by_partner.rename(columns=columns), report)


def _named(table: pd.DataFrame, report: Report) -> pd.DataFrame:
    return table.assign(partner=table["partner"].replace("", report.language.text("no partner")))


def _reviewed(report: Report) -> pd.DataFrame:
    """Return the shares of failed files as texts, each with its interval."""
    say, percent, table = report.language.text, report.language.percent, report.result.reviews.questions
    given = [[percent(each) for each in row[-3:] if each is not None] for row in tuples(table)]
    named = {"partner": say("no partner"), "question": say("all questions")}
    return table.fillna(named).assign(shareFailed=["{} ({}-{})".format(*each) if each else "" for each in given])


def _agreement(report: Report) -> pd.DataFrame:
    table, percent = report.result.reviews.agreement, report.language.percent
    return table.assign(sameAnswer=table["agreed"].map(percent), kappa=table["kappa"].astype(float).round(2))


def _since(report: Report) -> str:
    since = report.result.facts.changes_since
    if since is None:
        return ""
    return report.language.count(
        "Since {1}. {0} finding of then is still there.",
        "Since {1}. {0} findings of then are still there.",
        report.result.change_counts["open"],
        report.moment(since),
    )


def _problems(report: Report) -> pd.DataFrame:
    say, table = report.language.text, report.result.problems
    found = table[table["sales"] > 0].rename(columns={"problem": "code"})
    return found.assign(meaning=[say(CODES[code].meaning) for code in found["code"]])


def _partners(report: Report) -> pd.DataFrame:
    table = report.result.partners
    return _named(table.assign(medianDays=table["medianDays"].astype(float).round(1)), report)


def _file_findings(report: Report) -> pd.DataFrame:
    say = report.language.text

    def meaning(each: Mapping[str, Any]) -> str:
        detail = worded_detail(each["detail"], report.language, report.timezone)
        return f"{say(CODES[each['problem']].meaning)}{f' ({detail})' if detail else ''}"

    rows = [
        (", ".join(each["saleIds"]) or say("none"), each["problem"], meaning(each), "\n".join(each["folders"]))
        for each in report.result.file_findings
    ]
    return pd.DataFrame(rows, columns=["sales", "code", "meaning", "whereTheFilesLie"])


def _warned(report: Report) -> pd.DataFrame:
    say, rows = report.language.text, report.result.warned
    warnings = (
        [*(say(CODES[each].name) for each in items(joined)), *[say("sale without a client")] * nobody]
        for joined, nobody in zip(rows["problems"], rows["clientId"].isna(), strict=True)
    )
    return rows.assign(warning=[*map("; ".join, warnings)])


def _waivers(report: Report) -> pd.DataFrame:
    result, say = report.result, report.language.text
    rows = [
        (
            *(about or say("any") for about in (each.sale_id, each.partner, each.code)),
            *(each.reason, each.owner, each.approved_by, each.end),
            each.days_left(result.today),
        )
        for each in result.waivers
    ]
    columns = ["saleId", "partner", "code", "reason", "owner", "approvedBy", "endsOn", "daysLeft"]
    return pd.DataFrame(rows, columns=columns)


CHANGE: Final = "Trend"  # the heading of numbers that are changes: they are told with their sign

SALES: Final = List(
    "Sales",
    _same("Sale", "Group", "Status", "Missing", "Why", "Problems", "Next deadline", "Who acts", "Waived findings")
    | _same("Partner", "CPF", "Created", "Age, days", "Completed", "Contracting party pays", "Counted evidence"),
    lambda report: report.result.rows,
)

MISSING: Final = List(
    "Missing",
    _same("Sale", "Group", "Evidence", "Type (code)", "Why", "Reason (code)", "Partner", "Created", "Age, days"),
    _missing,
)

FINDINGS: Final = List(
    "Findings",
    _same("Sale", "Finding", "Code", "Why", "Weight", "State", "Partner", "Who has to act", "First seen")
    | _same("Due", "Overdue", "Told or answered", "Remedy"),
    _findings,
)

TO_ACT_ON: Final = List(
    "Sales to act on",
    {"Sale": 1.9, "Group": 0.8, "Status": 1.3, "What is missing, and why": 4.2, "Partner": 1.8, "CPF": 2.0}
    | {"Age, days": 0.8},
    _to_act_on,
    "One row a sale that is not compliant, the gravest and oldest first.",
)

ANSWERS: Final = List(
    "Answers",
    _same("Sale", "Finding", "Evidence", "Due", *HEADINGS.values()),
    lambda report: section(BESIDE["open"], report).table.assign(**dict.fromkeys(("answer", "until", "text"), "")),
)
"""The findings that a partner can answer, in its own workbook alone: it fills in the empty columns."""

PROBLEMS: Final = List(
    "Problems",
    {"Sales": 0.6, "Problem": 2.0, "Meaning": 5.0},
    _problems,
    "Sales with each, the gravest first",
)

BESIDE: Final[Mapping[str, List]] = {
    "open": List(
        "Open findings",
        {"Sale": 1.3, "Finding": 2.0, "Weight": 0.9, "Who has to act": 1.2, "Due": 1.3, "Days late": 0.8}
        | {"Partner": 1.2, "Told or answered": 1.3, "Remedy": 3.4},
        _open,
        "Overdue ones first, then by deadline. Days late are business days.",
    ),
    "partners": List(
        "Partners",
        _same(
            "Partner", "Sales", "compliant", "incomplete", "in conflict", "Findings", "Overdue", "Waived", CHANGE
        )
        | {"Partner": 2.4, "Median days": 1.0},
        _partners,
        "Those with the most overdue findings first. The trend is the change of findings within 30 days; the "
        "median days are those from creation to completion.",
    ),
    "partner-months": List(
        "What partners did",
        {"Partner": 2.4, "Month": 1.0, "Findings": 1.0, "Told": 1.0, "Answered": 1.0, "Mended": 1.0}
        | {"Median days": 1.0, "Still open": 1.0, "Due before told": 1.2},
        lambda report: report.result.partner_months,
        Message(
            "Findings that partners have to mend, by the month in which they came, of the last {} months. "
            "Median days are business days until an audit saw a finding mended; due before told are those whose "
            "deadline passed while nobody had told the partner.",
            MONTHS,
        ),
    ),
    "changes": List(
        "Changes",
        {"Change": 1.0, "Sale": 1.5, "Finding": 2.5, "Why": 1.5, "Partner": 1.5}
        | {"Who has to act": 1.2, "Due": 1.5},
        _changes,
        _since,
    ),
    "changed-partners": List(
        "Changes by partner",
        {"Partner": 2.4} | _same("New", "Back again", "Resolved", "Came and went", "Still open"),
        _changed_partners,
        _since,
    ),
    "reviews": List(
        "Reviews by people",
        {"Partner": 2.4, "Question": 3.0} | _same("Drawn", "Looked at", "Failed") | {"Share failed": 1.4},
        _reviewed,
        "Files that were drawn to be looked at by people, those with a finding three times as likely as others. "
        "The share of failed ones is that of the sample, with its interval of 95 per cent (Wilson) in brackets.",
    ),
    "agreement": List(
        "Agreement of reviewers",
        {"Question": 3.0, "Reviewer": 1.5} | _same("Compared", "Same answer", "Kappa"),
        _agreement,
        "Files that two people looked at: how often they gave the same answer, and Cohen's kappa, which is 1 "
        "where all answers are the same and 0 where they are so by chance.",
    ),
    "trend": List(
        "Trend",
        {"Day": 1.5, "Findings": 1.0, "Came": 1.0, "Went": 1.0},
        lambda report: report.result.trend.query("came + went > 0")[::-1].rename(columns={"present": "findings"}),
        "The latest days on which findings came or went, with those at the end of the day, waived ones too.",
    ),
    "unusable": List(
        "Unusable files",
        {"Sale": 1.5, "Evidence": 2.5, "Fault": 1.5, "Since": 1.5},
        lambda report: report.result.faults,
        "Files that lie in the bucket and do not count, the latest first.",
    ),
    "file-findings": List(
        "Findings about files",
        {"Sales": 1.5, "Finding": 1.6, "Meaning": 3.0, "Where the files lie": 3.0},
        _file_findings,
        "What is odd about the files themselves, gravest first. Those of a record count until it is withdrawn.",
    ),
    "warned": List(
        "Compliant sales with a warning",
        {"Sale": 1.5, "Warning": 3.0, "Partner": 2.0, "Created": 1.5},
        _warned,
        "Nothing is missing, and something should be put right.",
    ),
    "unverified": List(
        "Compliant, not fully verified",
        {"Sale": 1.5, "Partner": 1.0}
        | _same(*(COLUMN_NAMES[each] for each in ("verified", "firstBytes", "never", "unreadable")))
        | {"Created": 1.5},
        lambda report: report.result.unverified,
        Message("Nothing is missing as far as is known. At most {} are listed.", UNPROVEN),
    ),
    "withdrawals": List(
        "Withdrawals",
        {"Sale": 1.2, "Evidence": 1.8, "Reason": 2.2}
        | {"Withdrawn by": 1.35, "Approved by": 1.35, "Withdrawn at": 1.3},
        lambda report: report.result.withdrawals,
        "Evidence records that do not count any more, by the word of two people; the files stay.",
    ),
    "completed": List(
        "Completed sales",
        {"Sale": 1.5, "Partner": 2.0, "Completed": 1.5, "Status": 1.5},
        lambda report: report.result.completed,
        Message(
            "Sales that were completed within the {} days before, at most {} of each partner, and what their "
            "evidence says now.",
            *(COMPLETED_DAYS, MOST),
        ),
    ),
    "waivers": List(
        "Waivers",
        {"Sale": 1.2, "Partner": 1.2, "Finding": 2.0, "Reason": 2.0}
        | {"Owner": 1.5, "Approved by": 1.5, "Ends on": 1.2, "Days left": 0.9},
        _waivers,
        "Findings that two people accept until a day; they are back on it.",
    ),
}
"""The lists beside the sales by their places on the page, in the order in which people act on them."""

Cell = str | int | float | date | datetime | None


class Section:
    """A list as a report has it: its English headings, with the share that each takes, and its rows."""

    def __init__(self, of: List, report: Report) -> None:
        say, self.report = report.language.text, report
        self.table: pd.DataFrame = of.rows(report)
        self.title = say(of.title)
        self.about = report.language.tell(of.about) if isinstance(of.about, str) else of.about(report)
        lacking = {
            each for each in _MAY_LACK if each in of.columns and not self.table[_source(each)[0]].fillna("").any()
        }
        self.columns = {each: share for each, share in of.columns.items() if each not in lacking}

    @property
    def total(self) -> int:
        """The number of its rows."""
        return len(self.table)

    @property
    def headings(self) -> list[str]:
        """The headings in the language of the report."""
        return [*map(self.report.language.text, self.columns)]

    def cells(self, part: slice) -> list[pa.Array]:
        """Return the columns of some of its rows, null for everything that is not known."""
        columns = map(_source, self.columns)
        return [_column(self.table[name].iloc[part], words, self.report) for name, words in columns]

    def rows(self, most: int) -> list[tuple[Cell, ...]]:
        """Return its first rows."""
        return list(zip(*(column.to_pylist() for column in self.cells(slice(0, most))), strict=True))


def section(of: List, report: Report) -> Section:
    """Return a list as this report has it, which its formats make once."""
    if of.title not in report.sections:
        report.sections[of.title] = Section(of, report)
    found: Section = report.sections[of.title]
    return found


def sections_beside(report: Report) -> dict[str, Section]:
    """Return the lists beside the sales that this report has, by their places on the page."""
    return {name: section(BESIDE[name], report) for name in report.beside or BESIDE}


_MAY_LACK: Final = ("Told or answered", "Withdrawn by", "Owner", "Approved by")
"""The headings of columns that are left out where they are empty: a partner is not told of people."""


def _source(heading: str) -> tuple[str, Words]:
    """Return the column that the values below a heading come from, and what stands for them."""
    return COLUMNS.get(heading) or (to_camel(heading.lower().replace(" ", "_")), None)


def _column(values: pd.Series[Any], words: Words, report: Report) -> pa.Array:
    """Return what stands for the values, each distinct one of which is looked up once."""
    if not callable(words):
        cells = pa.chunked_array([pa.array(values, from_pandas=True)]).combine_chunks()
        if not pa.types.is_timestamp(cells.type):
            return cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells
        times = cells.cast(pa.timestamp("us", "UTC"), safe=False)
        local = pc.local_timestamp(times.cast(pa.timestamp("us", report.timezone.key)))
        return times if words is None else local.cast(pa.date32(), safe=False)
    places, distinct = pd.factorize(values)
    texts = pa.array([words(value, report.language.text) for value in distinct], pa.string())
    return texts.take(pa.array(places, mask=places < 0))


def cell_text(cell: Cell, report: Report, heading: str) -> str:
    """Return a cell below a heading as people read it."""
    if isinstance(cell, datetime):
        return report.moment(cell)
    text = report.language.worded(cell, report.timezone)
    return f"+{text}" if heading == CHANGE and isinstance(cell, int | float) and cell > 0 else text
