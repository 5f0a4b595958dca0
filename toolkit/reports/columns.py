"""Name the columns of lists for people: their headings, where their values come from, and the words for codes."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from toolkit.domain.codes import CODES, names_of
from toolkit.domain.report_cells import items
from toolkit.reports import wording
from toolkit.reports.report import MOMENTS

Words = Callable[[Any, Callable[[str], str]], Any]
"""Gives what stands for a value, its words translated by the function."""


def of(names: Mapping[Any, str]) -> Words:
    """Return the words that give the name of a code."""
    return lambda code, say: say(names[code]) if code in names else code


def each_of(names: Mapping[Any, str]) -> Words:
    """Return the words that give the name of each code of a list, on a line of its own."""
    return lambda joined, say: "\n".join(of(names)(code, say) for code in items(joined))


def moment(value: Any, _: Callable[[str], str]) -> Any:
    """Mark a column of times; they stand for themselves."""
    return value


_CODES: Final = names_of(CODES)

_WORDED: Final = {
    "status": of(wording.STATUS_NAMES),
    "missing": each_of(wording.TYPE_NAMES),
    "reasons": each_of(_CODES),
    "problems": each_of(_CODES),
    "counted": each_of(wording.TYPE_NAMES),
    **dict.fromkeys(MOMENTS, moment),
}

COLUMNS: Final[Mapping[str, tuple[str, Words | None]]] = {
    **{heading: (name, _WORDED.get(name)) for name, heading in wording.COLUMN_NAMES.items()},
    "Approved by": ("approvedBy", None),
    "Came": ("came", None),
    "Change": ("change", None),
    "Code": ("code", None),
    "Day": ("day", None),
    "Due": ("dueAt", moment),
    "Ends on": ("end", None),
    "Ends soon": ("soon", None),
    "Evidence": ("evidenceType", of(wording.TYPE_NAMES)),
    "Fault": ("code", of(_CODES)),
    "Finding": ("code", of(_CODES)),
    "Findings": ("findings", None),
    "First seen": ("firstSeen", moment),
    "Meaning": ("meaning", None),
    "Median days": ("medianDays", None),
    "Overdue": ("overdue", None),
    "Owner": ("owner", None),
    "Problem": ("code", of(_CODES)),
    "Reason": ("reason", None),
    "Reason (code)": ("reasons", None),
    "Remedy": ("remedy", lambda text, say: say(text)),
    "Sales": ("sales", None),
    "Since": ("since", moment),
    "State": ("status", of(wording.FINDING_STATUS_NAMES)),
    "Trend": ("trend", None),
    "Type (code)": ("evidenceType", None),
    "Waived": ("waived", None),
    "Warning": ("warning", None),
    "Weight": ("severity", of(wording.SEVERITY_NAMES)),
    "Went": ("went", None),
    "Where the files lie": ("folders", None),
    "Who has to act": ("owner", of(wording.OWNER_NAMES)),
    "Withdrawn at": ("withdrawnAt", moment),
    "Withdrawn by": ("withdrawnBy", None),
    "compliant": ("compliant", None),
    "in conflict": ("conflict", None),
    "incomplete": ("incomplete", None),
}
"""The columns that a list can have, by their English headings."""
