"""The verdict on a sale: its status, each missing piece with its reason, and its other problems."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from toolkit.domain.evidence import EvidenceType


class Status(StrEnum):
    """The one status of a sale."""

    COMPLIANT = "compliant"
    INCOMPLETE = "incomplete"
    CONFLICT = "conflict"


class Reason(StrEnum):
    """The reason why a piece is missing: the stage that its best attempt reached, furthest first."""

    UNUSABLE = "UNUSABLE"
    NOT_UPLOADED = "NOT_UPLOADED"
    EXPIRED = "EXPIRED"
    NEVER_REQUESTED = "NEVER_REQUESTED"


class Severity(StrEnum):
    """The weight of a finding, gravest first."""

    CRITICAL = "critical"
    ERROR = "error"
    WARNING = "warning"


class Problem(StrEnum):
    """A problem of a sale other than a missing piece, gravest first."""

    COMPLETED_WITHOUT_EVIDENCE = "COMPLETED_WITHOUT_EVIDENCE"
    GROUP_UNKNOWN = "GROUP_UNKNOWN"
    KYC_NOT_ALONE = "KYC_NOT_ALONE"
    KYC_REPEATED = "KYC_REPEATED"
    DOCUMENT_REDUNDANT = "DOCUMENT_REDUNDANT"


SEVERITY_OF: Final = {
    Problem.COMPLETED_WITHOUT_EVIDENCE: Severity.CRITICAL,
    Problem.GROUP_UNKNOWN: Severity.ERROR,
    Problem.KYC_NOT_ALONE: Severity.ERROR,
    Problem.KYC_REPEATED: Severity.ERROR,
    Problem.DOCUMENT_REDUNDANT: Severity.WARNING,
}

PROBLEM_TEXTS: Final = {
    Problem.COMPLETED_WITHOUT_EVIDENCE: "The sale is marked as completed, but its evidence does not allow it.",
    Problem.GROUP_UNKNOWN: "The utility group is none of A, B, C, D: no rule says what the sale needs.",
    Problem.KYC_NOT_ALONE: "A KYC file replaces all other evidence and must not be sent together with any.",
    Problem.KYC_REPEATED: "Exactly one KYC file may be sent.",
    Problem.DOCUMENT_REDUNDANT: "The combined document is there, and so is a separate one that it replaces.",
}

REASON_TEXTS: Final = {
    Reason.UNUSABLE: "A file is in the bucket, but it cannot be used.",
    Reason.NOT_UPLOADED: "Credentials were issued and are still valid; the file has not arrived.",
    Reason.EXPIRED: "Credentials were issued and ran out before a file arrived.",
    Reason.NEVER_REQUESTED: "Nobody has asked for upload credentials.",
}


@dataclass(frozen=True, slots=True)
class MissingPiece:
    """A required evidence type that is not counted, and how far its best attempt got."""

    evidence_type: EvidenceType
    reason: Reason


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to act on: a problem of a sale, with its weight and a text for people."""

    problem: Problem

    @property
    def severity(self) -> Severity:
        """The weight of this problem."""
        return SEVERITY_OF[self.problem]

    @property
    def text(self) -> str:
        """The problem in a sentence."""
        return PROBLEM_TEXTS[self.problem]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The rules' verdict on one sale at one moment.

    ``missing`` is in the order of the contract's evidenceType table and empty unless the status is
    ``incomplete``; ``problems`` are gravest first.
    """

    status: Status
    missing: tuple[MissingPiece, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The problems with weight and text."""
        return tuple(Finding(problem) for problem in self.problems)
