"""The verdict on a sale: its status, each missing piece with its reason, and its other problems."""

from dataclasses import dataclass
from enum import StrEnum

from toolkit.domain.evidence import EvidenceType


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
    NEVER_REQUESTED = "NEVER_REQUESTED"


class Problem(StrEnum):
    """A problem of a sale other than a missing piece, gravest first."""

    COMPLETED_WITHOUT_EVIDENCE = "COMPLETED_WITHOUT_EVIDENCE"
    GROUP_UNKNOWN = "GROUP_UNKNOWN"
    PAYER_UNKNOWN = "PAYER_UNKNOWN"
    KYC_NOT_ALONE = "KYC_NOT_ALONE"
    KYC_REPEATED = "KYC_REPEATED"
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
