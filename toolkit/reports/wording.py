"""The English words of a report and its page: names and meanings of codes and columns, colours, glossary."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final
from unicodedata import normalize

from toolkit.contract.codes import CODES, Owner, Severity, names_of
from toolkit.contract.contents import Coverage, IntegrityProblem
from toolkit.contract.events import CustodyEvent
from toolkit.contract.evidence import EvidenceType
from toolkit.contract.findings import FindingStatus, Problem, Reason, Status, items
from toolkit.contract.rules import EvidenceState
from toolkit.language import Language
from toolkit.reports.audited import AGE_BANDS, OLDER, UNKNOWN_GROUP
from toolkit.reports.report import Report

COLOURS: Final[Mapping[str, tuple[str, str]]] = {
    Status.COMPLIANT: ("#b7cdc4", "#47625a"),
    Status.INCOMPLETE: ("#e09a2d", "#dc9a35"),
    Status.CONFLICT: ("#a52f45", "#d9546c"),
    Reason.UNUSABLE: ("#7d4a97", "#a87bc2"),
    Reason.VANISHED: ("#b85a7f", "#d58aa8"),
    Reason.NOT_UPLOADED: ("#9cc3dd", "#c3dcec"),
    Reason.EXPIRY_UNKNOWN: ("#75a9cb", "#9fc4dc"),
    Reason.EXPIRED: ("#4f8fb9", "#6aa6cd"),
    Reason.WITHDRAWN: ("#8a8f98", "#a4a9b2"),
    Reason.TYPE_UNKNOWN: ("#5c6470", "#7b8390"),
    Reason.NEVER_REQUESTED: ("#1c4e74", "#3a78a8"),
}
"""The colour of each code, and that on a dark screen."""

TYPE_NAMES: Final = {each: each.text for each in EvidenceType}

OWNER_NAMES: Final = {each: each.text for each in Owner}

STATUS_NAMES: Final = {each: each.value for each in Status} | {Status.CONFLICT: "in conflict"}

SEVERITY_NAMES: Final = {each: each.value for each in Severity}

FINDING_STATUS_NAMES: Final = {each: each.value for each in FindingStatus} | {FindingStatus.REOPENED: "back again"}

RECORD_STATE_NAMES: Final = {
    str(EvidenceState.COUNTED): "counts for the sale",
    str(Reason.TYPE_UNKNOWN): "of a type that the contract does not know",
    **{str(each): CODES[each].name for each in EvidenceState if each is not EvidenceState.COUNTED},
}

EVENT_NAMES: Final[Mapping[str, str]] = {
    CustodyEvent.ASKED: "credentials asked for",
    CustodyEvent.ISSUED: "credentials issued",
    CustodyEvent.REISSUED: "credentials issued again",
    CustodyEvent.RECORDED: "record observed",
    CustodyEvent.RECORD_CHANGED: "record changed",
    CustodyEvent.RECORD_GONE: "record gone",
    CustodyEvent.UPLOADED: "file observed in the bucket",
    CustodyEvent.RESTORED: "earlier version of the file is back",
    CustodyEvent.GONE: "file gone from the bucket, or replaced",
    CustodyEvent.VERIFIED: "file verified",
    CustodyEvent.WITHDRAWN: "record withdrawn",
    CustodyEvent.OPENED: "link to the file made",
    CustodyEvent.COMPLETED: "sale completed on this file",
    CustodyEvent.REVIEWED: "looked at by a person",
}
"""The events of the custody log that concern one evidence record."""

COLUMN_NAMES: Final = {
    "saleId": "Sale",
    "utilityGroup": "Group",
    "status": "Status",
    "missing": "Missing",
    "reasons": "Why",
    "problems": "Problems",
    "counted": "Counted evidence",
    "isClientFinancialResponsible": "Contracting party pays",
    "partner": "Partner",
    "clientId": "Client",
    "cpf": "CPF",
    "createdAt": "Created",
    "ageDays": "Age, days",
    "completedAt": "Completed",
    "oldestRequest": "First requested",
    "unexamined": "Files not examined",
    "verified": "Counted files verified",
    "firstBytes": "Counted files, first bytes seen",
    "never": "Counted files never looked at",
    "unreadable": "Counted files that could not be read",
}
"""The columns of the rows, as headings for people."""

GLOSSARY: Final = {
    "Evidence": "A recording or document that a sale needs before it can be completed.",
    "Counted": (
        "A file counts when it lies in the bucket under the key of an evidence record that is not withdrawn, "
        "and nothing was found wrong with it. A record without a file counts for nothing."
    ),
    "Open": "A sale that is incomplete or in conflict: somebody has to act.",
    "File finding": (
        "Something is odd about a file itself. It goes on counting until somebody withdraws its record, with a "
        "reason and a second person."
    ),
    "Age": "Whole days between the creation of the sale and the moment of this report.",
    "Not examined": "A file that nobody has looked into yet. It counts until somebody has.",
    "Utility group": "A, B, C or D; all four demand a document and an audio of the contracting party.",
}

MEANINGS: Final = {
    "isClientFinancialResponsible": (
        "Whether the contracting party pays. If not, an audio and a document of the financially responsible "
        "person are demanded too."
    ),
    **{evidence_type.value: name for evidence_type, name in TYPE_NAMES.items()},
    **{code: CODES[code].meaning for code in (*Reason, *Problem, *IntegrityProblem)},
}
"""The meaning of each code of the tables."""

TURNING: Final = "[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
"""Characters that show a text in another order; people read them written out, programs get them as they are."""
_TURNING: Final = re.compile(TURNING)  # there are thousands of texts to look through


def escape_bidi(text: str) -> str:
    """Return the text with each such character as a backslash, ``u`` and its four digits."""
    return _TURNING.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def names_in(names: Mapping[Any, str], language: Language) -> dict[str, str]:
    """Return the names of codes in a language, by code."""
    return {str(code): language.text(name) for code, name in names.items()}


NOBODY: Final = " "  # the value of the filter for sales without a partner; no partner has a blank name


def _alphabetical(name: str) -> str:
    """Return what a name is sorted by: its letters without regard to case, accents after them."""
    return normalize("NFKD", name.casefold())


def filters(report: Report) -> list[dict[str, Any]]:
    """Return the filters above the grid: name, label, text when unused, and values."""
    say, result, words = report.language.text, report.result, page_words(report.language)
    groups = {
        each: say("unknown") if each == UNKNOWN_GROUP else each
        for each in map(str, result.by_group["utilityGroup"])
    }
    partners = sorted(result.rows["partner"].dropna().unique(), key=_alphabetical)
    types = {each: words["types"][each] for each in result.missing["evidenceType"]}
    statuses = words["statuses"] | {str(Status.COMPLIANT): say("compliant, with something to look at")}
    acting = {owner for joined in result.listed["owners"].unique() for owner in items(joined)}
    others = sorted(acting - OWNER_NAMES.keys(), key=_alphabetical)
    owners = names_in(OWNER_NAMES, report.language) | {each: each for each in others}
    only = {
        "unexamined": say("files not examined"),
        "no-client": say("no client"),
        "completed": say("completed"),
        "overdue": say("an overdue finding"),
        "open": say("an open finding"),
        "critical": say("an open critical finding"),
        "waived": say("a waived finding"),
        "file-finding": say("a finding about a file"),
    }
    chosen = (
        ("status", say("Status"), say("any"), statuses),
        ("group", say("Group"), say("all"), groups),
        ("missing", say("Missing"), say("anything"), types),
        ("reason", say("Why"), say("any reason"), names_in(names_of(Reason), report.language)),
        ("problem", say("Problem"), say("any or none"), names_in(names_of(Problem), report.language)),
        ("partner", say("Partner"), say("all"), {each: each for each in partners} | {NOBODY: say("no partner")}),
        ("owner", say("Who has to act"), say("all"), owners),
        ("age", say("Age, days"), say("any"), {band: band for band in [*AGE_BANDS, OLDER]}),
        ("only", say("Only with"), say("anything"), only),
    )  # fmt: skip
    return [dict(zip(("name", "label", "unused", "values"), each, strict=True)) for each in chosen]


@cache
def page_words(language: Language) -> dict[str, Any]:
    """Return the words for statuses, evidence types, codes and columns."""
    return {
        "statuses": names_in(STATUS_NAMES, language),
        "types": names_in(TYPE_NAMES, language),
        "owners": names_in(OWNER_NAMES, language),
        "states": names_in(RECORD_STATE_NAMES, language),
        "coverages": names_in({each: each.text for each in Coverage}, language),
        "events": names_in(EVENT_NAMES, language),
        "findingStatuses": names_in(FINDING_STATUS_NAMES, language),
        "codes": {
            str(code): {
                "name": language.text(CODES[code].name),
                "meaning": language.text(CODES[code].meaning),
                "remedy": language.text(CODES[code].remedy),
                "severity": str(CODES[code].severity or ""),
                "owner": language.text(OWNER_NAMES[owner]) if (owner := CODES[code].owner) else "",
            }
            for code in CODES
        },
        "columns": names_in(COLUMN_NAMES | {"dueAt": "Due"}, language),
    }


_SAID: Final = re.compile(r'\bsay\("([^"]+)"')


@cache
def script_words(script: str, language: Language) -> Mapping[str, str]:
    """Return the sentences that a script says in a language, by the English ones that stand in it."""
    return {sentence: language.text(sentence) for sentence in _SAID.findall(script)}
