"""The English words of a report: the names and meanings of codes and columns, and the glossary."""

import re
from collections.abc import Mapping
from typing import Final, TypeVar

from toolkit.domain.codes import CODES, Owner, Severity
from toolkit.domain.contents import Coverage
from toolkit.domain.custody_events import CustodyEvent
from toolkit.domain.evidence import EvidenceType
from toolkit.domain.finding_life import FindingStatus
from toolkit.domain.findings import Problem, Reason, Status
from toolkit.domain.integrity import IntegrityProblem
from toolkit.domain.rules import EvidenceState
from toolkit.language import Language
from toolkit.operations.judge.audit.records import TYPE_UNKNOWN, WITHDRAWN

TITLE: Final = "Missing evidence"

TYPE_NAMES: Final = {
    EvidenceType.POV: "Audio of the contracting party",
    EvidenceType.AUT: "Audio of the financially responsible person",
    EvidenceType.DOC_CONTRATANTE: "Document of the contracting party",
    EvidenceType.DOC_RESPONSAVEL_FINANCEIRO: "Document of the financially responsible person",
    EvidenceType.DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO: "Single document covering both",
    EvidenceType.KYC: "Know Your Customer, facial biometrics",
}
"""The contract's meaning of each evidence type."""

STATUS_NAMES: Final = {
    Status.COMPLIANT: "compliant",
    Status.INCOMPLETE: "incomplete",
    Status.CONFLICT: "in conflict",
}

SEVERITY_NAMES: Final = {
    Severity.CRITICAL: "critical",
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
}

OWNER_NAMES: Final = {
    Owner.PARTNER: "the partner",
    Owner.COMPLIANCE: "compliance",
    Owner.OPERATIONS: "operations",
}

FINDING_STATUS_NAMES: Final = {
    FindingStatus.OPEN: "open",
    FindingStatus.WAIVED: "waived",
    FindingStatus.RESOLVED: "resolved",
    FindingStatus.REOPENED: "back again",
}

RECORD_STATE_NAMES: Final = {
    str(EvidenceState.COUNTED): "counts for the sale",
    WITHDRAWN: "withdrawn",
    TYPE_UNKNOWN: "of a type that the contract does not know",
    **{str(each): CODES[each].name for each in EvidenceState if each is not EvidenceState.COUNTED},
}

COVERAGE_NAMES: Final = {
    Coverage.VERIFIED: "fully verified",
    Coverage.FIRST_BYTES: "by its first bytes only",
    Coverage.NEVER: "never",
    Coverage.UNREADABLE: "could not be read",
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

K = TypeVar("K", bound=str)


def unturned(text: str) -> str:
    """Return the text with each such character as a backslash, ``u`` and its four digits."""
    return re.sub(TURNING, lambda found: f"\\u{ord(found.group()):04x}", text)


def told(names: Mapping[K, str], language: Language) -> dict[str, str]:
    """Return the names of codes in a language, by code."""
    return {str(code): language.text(name) for code, name in names.items()}
