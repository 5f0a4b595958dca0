"""The verdict on a sale, and the identity and states of a finding over time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from uuid import UUID, uuid5

from toolkit.contract.contents import HASH, IntegrityProblem
from toolkit.contract.evidence import EvidenceType


class Status(StrEnum):
    """The one status of a sale."""

    COMPLIANT = "compliant"
    INCOMPLETE = "incomplete"
    CONFLICT = "conflict"


class Reason(StrEnum):
    """The reason why a piece is missing: the stage that its best attempt reached, furthest first."""

    UNUSABLE = "UNUSABLE"
    VANISHED = "VANISHED"
    NOT_UPLOADED = "NOT_UPLOADED"
    EXPIRY_UNKNOWN = "EXPIRY_UNKNOWN"
    EXPIRED = "EXPIRED"
    WITHDRAWN = "WITHDRAWN"
    TYPE_UNKNOWN = "TYPE_UNKNOWN"
    NEVER_REQUESTED = "NEVER_REQUESTED"


class Problem(StrEnum):
    """A problem of a sale other than a missing piece, gravest first."""

    COMPLETED_WITHOUT_EVIDENCE = "COMPLETED_WITHOUT_EVIDENCE"
    GROUP_UNKNOWN = "GROUP_UNKNOWN"
    PAYER_UNKNOWN = "PAYER_UNKNOWN"
    KYC_NOT_ALONE = "KYC_NOT_ALONE"
    KYC_REPEATED = "KYC_REPEATED"
    TYPE_UNKNOWN = "TYPE_UNKNOWN"
    DOCUMENT_REDUNDANT = "DOCUMENT_REDUNDANT"


@dataclass(frozen=True, slots=True)
class MissingPiece:
    """A required evidence type that is not counted, and how far its best attempt got."""

    evidence_type: EvidenceType
    reason: Reason


@dataclass(frozen=True, slots=True)
class Verdict:
    """The rules' verdict on one sale at one moment.

    ``missing`` is in the order of the contract's evidenceType table and empty unless the status is
    ``incomplete``; ``problems`` are gravest first.
    """

    status: Status
    missing: tuple[MissingPiece, ...] = ()
    problems: tuple[Problem, ...] = ()


NAMESPACE: Final = UUID("6f9b3f0e-4c1d-5b8e-9d55-2d1f0c7a6e21")
"""The namespace of the ids of findings; an id is a UUID of version 5 in it and never changes."""


class FindingStatus(StrEnum):
    """The state of a finding at one moment."""

    OPEN = "open"
    WAIVED = "waived"
    RESOLVED = "resolved"
    REOPENED = "reopened"


STANDING: Final = (FindingStatus.OPEN, FindingStatus.REOPENED)
"""The states of a finding on which somebody has to act."""


def finding_id(code: str, *subject: str) -> str:
    """Return the id of a finding: of a sale, its code and the sale id; of a file, also what tells the file.

    The parts are joined by the unit separator, which neither a sale id nor a code can hold.
    """
    return str(uuid5(NAMESPACE, "\x1f".join((code, *subject))))


def file_finding(
    problem: IntegrityProblem,
    keys: Sequence[str],
    evidence_ids: Iterable[object] = (),
    sale_ids: Sequence[str] = (),
    detail: str = "",
) -> dict[str, Any]:
    """Return a finding about files: its records, sales and folders, without names of files, which may be people's.

    It has one id for each sale that the files concern; one where there is none. Files with the same contents are
    told by them, since another may join them, and every other by the key of its object; what lies outside the
    layout is one finding, whatever lies there.
    """
    contents = problem.startswith("CONTENT_") and "".join(detail.partition(HASH)[1:])
    all_alike = problem is IntegrityProblem.KEY_OUTSIDE_LAYOUT
    subject = "" if all_alike else contents or "|".join(dict.fromkeys(keys))
    return {
        "problem": str(problem),
        "sale_ids": list(sale_ids),
        "evidence_ids": [*map(str, evidence_ids)],
        "folders": [f"{key.rpartition('/')[0]}/" for key in keys],
        "detail": detail,
        "finding_ids": [finding_id(problem, subject, each) for each in sale_ids] or [finding_id(problem, subject)],
    }


REPORT: Final = "missing-evidence"  # the name of the report's files without their suffix
SEPARATOR: Final = "|"  # between the items of a list in one cell


def items(joined: str) -> list[str]:
    """Return the items of a list in one cell; an empty cell is an empty list."""
    return joined.split(SEPARATOR) if joined else []
