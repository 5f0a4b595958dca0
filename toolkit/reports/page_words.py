"""The words of the page: the choices above its grid, the names of codes, and the sentences of its script."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from toolkit.domain.codes import CODES, names_of
from toolkit.domain.findings import Problem, Reason, Status
from toolkit.language import Language
from toolkit.operations.judge.audit.census import AGE_BANDS, OLDER, UNKNOWN_GROUP
from toolkit.reports import wording
from toolkit.reports.report import Report
from toolkit.reports.wording import told

NOBODY: Final = " "
"""The value of the filter for sales without a partner; no partner has a blank name."""


def filters(report: Report) -> list[dict[str, Any]]:
    """Return the filters above the grid: name, label, text when unused, and values."""
    say, result, words = report.language.text, report.result, page_words(report.language)
    groups = {
        each: say("unknown") if each == UNKNOWN_GROUP else each
        for each in map(str, result.by_group["utilityGroup"])
    }
    partners = sorted(result.rows["partner"].dropna().unique(), key=str.casefold)
    types = {each: words["types"][each] for each in result.missing["evidenceType"]}
    statuses = dict(words["statuses"])
    statuses[str(Status.COMPLIANT)] = say("compliant, with something to look at")
    ages = {band: band for band in [*AGE_BANDS, OLDER]}
    only = {
        "unexamined": say("files not examined"),
        "no-client": say("no client"),
        "completed": say("completed"),
        "overdue": say("an overdue finding"),
        "file-finding": say("a finding about a file"),
    }
    chosen = (
        ("status", say("Status"), say("all"), statuses),
        ("group", say("Group"), say("all"), groups),
        ("missing", say("Missing"), say("anything"), types),
        ("reason", say("Why"), say("any reason"), told(names_of(Reason), report.language)),
        ("problem", say("Problem"), say("any or none"), told(names_of(Problem), report.language)),
        ("partner", say("Partner"), say("all"), {each: each for each in partners} | {NOBODY: say("no partner")}),
        ("age", say("Age, days"), say("any"), ages),
        ("only", say("Only with"), say("anything"), only),
    )  # fmt: skip
    return [dict(zip(("name", "label", "unused", "values"), each, strict=True)) for each in chosen]


@cache
def page_words(language: Language) -> dict[str, Any]:
    """Return the words for statuses, evidence types, codes and columns."""
    return {
        "statuses": told(wording.STATUS_NAMES, language),
        "types": told(wording.TYPE_NAMES, language),
        "states": told(wording.RECORD_STATE_NAMES, language),
        "coverages": told(wording.COVERAGE_NAMES, language),
        "events": told(wording.EVENT_NAMES, language),
        "findingStatuses": told(wording.FINDING_STATUS_NAMES, language),
        "codes": {
            str(code): {
                "name": language.text(CODES[code].name),
                "meaning": language.text(CODES[code].meaning),
                "remedy": language.text(CODES[code].remedy),
                "severity": str(CODES[code].severity or ""),
                "owner": language.text(wording.OWNER_NAMES[owner]) if (owner := CODES[code].owner) else "",
            }
            for code in CODES
        },
        "columns": told(wording.COLUMN_NAMES | {"dueAt": "Due", "overdue": "Overdue findings"}, language),
    }


def script_words(language: Language) -> Mapping[str, str]:
    """Return the sentences of the script; names in braces stand for values."""
    say = language.text
    return {
        "all": say("{all} shown"),
        "some": say("{shown} of {all} shown"),
        "none": say("No sale fits these choices."),
        "printed": say(
            "Printed as filtered ({filters}): {shown} of {all} sales. The figures above are of all sales."
        ),
        "printedFirst": say("Only the first {printed} of {shown} sales are printed."),
        "search": say("Search"),
        "noPartner": say("no partner"),
        "noClient": say("no client"),
        "no": say("no"),
        "yes": say("yes"),
        "there": say("there is {counted}"),
        "counted": say("Counted evidence"),
        "nothingCounted": say("no file counts"),
        "missing": say("What is missing, and why"),
        "problems": say("Problems"),
        "files": say("Findings about files"),
        "toDo": say("To do ({owner})"),
        "facts": say("The sale"),
        "rule": say("Rule"),
        "or": say("or"),
        "orKyc": say("or exactly one KYC and nothing else"),
        "noRule": say("none: the utility group is unknown"),
        "records": say("Evidence records"),
        "noRecords": say("No evidence record had been observed."),
        "file": say("File"),
        "byte": say("{number} byte"),
        "bytes": say("{number} bytes"),
        "seconds": say("{number} s"),
        "onePage": say("{number} page"),
        "pages": say("{number} pages"),
        "looked": say("Looked at"),
        "fault": say("Fault"),
        "seen": say("Observed since"),
        "requested": say("Requested"),
        "withdrawn": say("Withdrawn"),
        "withdrawnBy": say("by {by}, approved by {approver}"),
        "reason": say("Reason"),
        "record": say("Record"),
        "findings": say("Findings"),
        "status": say("Status"),
        "first": say("First seen"),
        "due": say("Due"),
        "overdue": say("past due"),
        "waived": say("Waived until {day}"),
        "waivedBy": say("by {owner}, approved by {approver}"),
        "timeLine": say("Time line"),
        "noLog": say("The custody log is not part of a snapshot, and its database could not be asked."),
        "noEvents": say("The custody log tells of no event."),
        "when": say("When"),
        "event": say("Event"),
        "evidence": say("Evidence"),
        "noCase": say(
            "This page has the records, deadlines and time lines of the first {sales} sales, the gravest and "
            "oldest ones. This sale comes after them."
        ),
        "cutOff": say("The records and the time line cannot be read: the file of this page is not whole."),
        "more": say("The same and more, as it is now:"),
        "otherSale": say("{sale} is none of the sales to act on: it is compliant, or no sale of this report."),
    }
