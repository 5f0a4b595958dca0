"""The minimum-evidence rules as data, and their reading for one sale.

The data are ``GROUP_RULES``, ``REPLACED_BY_COMBINED`` and the enumerations they are made of. Two readings
derive from them: ``evaluate`` here, and the audit's expression over all sales
(``toolkit.operations.judge.audit``). Property tests hold the two together.

Source: contract, "Minimum evidence rules per utility group".
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from toolkit.domain.evidence import KIND_OF, EvidenceType, FileKind, UtilityGroup
from toolkit.domain.findings import MissingPiece, Problem, Reason, Status, Verdict


@dataclass(frozen=True, slots=True)
class Requirement:
    """One piece of evidence that a sale needs.

    ``accepts`` lists the types that meet it, the single type first: that one is named when it is missing.
    """

    accepts: tuple[EvidenceType, ...]
    only_with_separate_payer: bool = False

    @property
    def named(self) -> EvidenceType:
        """The type that is reported as missing."""
        return self.accepts[0]


COMBINED: Final = EvidenceType.DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO
"""One document for both parties ..."""

REPLACED_BY_COMBINED: Final = (EvidenceType.DOC_CONTRATANTE, EvidenceType.DOC_RESPONSAVEL_FINANCEIRO)
"""... and the separate ones that it makes redundant."""

STANDARD: Final = (
    Requirement((EvidenceType.POV,)),
    Requirement((EvidenceType.AUT,), only_with_separate_payer=True),
    Requirement((EvidenceType.DOC_CONTRATANTE, COMBINED)),
    Requirement((EvidenceType.DOC_RESPONSAVEL_FINANCEIRO, COMBINED), only_with_separate_payer=True),
)
"""The rule that all four groups share today, in the order of the contract's evidenceType table.

A *separate payer* is a financially responsible person other than the contracting party, that is
``isClientFinancialResponsible`` is false.
"""

GROUP_RULES: Final[dict[UtilityGroup, tuple[Requirement, ...]]] = dict.fromkeys(UtilityGroup, STANDARD)

REPLACES_ALL: Final = EvidenceType.KYC
"""Exactly one file of this type is enough, and nothing else may stand beside it."""


class EvidenceState(StrEnum):
    """The stage that one evidence record has reached."""

    COUNTED = "COUNTED"
    UNUSABLE = "UNUSABLE"
    VANISHED = "VANISHED"
    NOT_UPLOADED = "NOT_UPLOADED"
    EXPIRY_UNKNOWN = "EXPIRY_UNKNOWN"
    EXPIRED = "EXPIRED"


REASON_OF: Final[dict[EvidenceState, Reason]] = {
    state: Reason(state) for state in EvidenceState if state is not EvidenceState.COUNTED
}
"""The reason that an attempt in this state gives; no attempt at all is ``NEVER_REQUESTED``."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One evidence record that is not withdrawn, reduced to what the rules look at."""

    evidence_type: EvidenceType
    state: EvidenceState


@dataclass(frozen=True, slots=True)
class Sale:
    """A sale, reduced to what the rules look at."""

    utility_group: str
    is_client_financial_responsible: bool | None
    """``None`` where the service does not say it."""
    completed: bool = False


def requirements(sale: Sale) -> tuple[Requirement, ...]:
    """Return what the sale needs by its utility group; nothing where no rule knows the group."""
    if sale.utility_group not in set(UtilityGroup):
        return ()
    rule = GROUP_RULES[UtilityGroup(sale.utility_group)]
    return tuple(
        each for each in rule if not (each.only_with_separate_payer and sale.is_client_financial_responsible)
    )


def evidence_state(
    evidence_type: EvidenceType,
    *,
    size: int | None,
    kind: FileKind | None,
    damaged: bool,
    expired: bool | None,
    vanished: bool = False,
) -> EvidenceState:
    """Return the stage of a record, derived from the facts about its object.

    ``size`` is in bytes, ``None`` where no object lies under the record's key; ``kind`` is by the bytes,
    ``None`` where they were not examined yet; ``damaged`` stands for every fault that a verification of the
    contents found; ``expired`` tells whether the credentials ran out, ``None`` where nobody knows until when they
    were valid; ``vanished`` tells whether an object that is not there now was seen there before.
    """
    if size is None and vanished:
        return EvidenceState.VANISHED
    if size is None:
        if expired is None:
            return EvidenceState.EXPIRY_UNKNOWN
        return EvidenceState.EXPIRED if expired else EvidenceState.NOT_UPLOADED
    usable = size > 0 and kind in (None, KIND_OF[evidence_type]) and not damaged
    return EvidenceState.COUNTED if usable else EvidenceState.UNUSABLE


def ran_out(expires_at: datetime | None, now: datetime) -> bool | None:
    """Tell whether credentials ran out; ``None`` where the service does not say until when they are valid."""
    return None if expires_at is None else expires_at <= now


def evaluate(sale: Sale, evidences: Iterable[Evidence]) -> Verdict:
    """Judge one sale by its evidence records that are not withdrawn."""
    records = list(evidences)
    counted = [record.evidence_type for record in records if record.state is EvidenceState.COUNTED]
    conflicts = _conflicts(sale, counted)
    missing: tuple[MissingPiece, ...] = ()
    if not conflicts and REPLACES_ALL not in counted:
        missing = tuple(_missing(sale, records))
    status = Status.CONFLICT if conflicts else Status.INCOMPLETE if missing else Status.COMPLIANT
    problems = list(conflicts)
    if sale.completed and status is not Status.COMPLIANT:
        problems.insert(0, Problem.COMPLETED_WITHOUT_EVIDENCE)
    if COMBINED in counted and any(replaced in counted for replaced in REPLACED_BY_COMBINED):
        problems.append(Problem.DOCUMENT_REDUNDANT)
    return Verdict(status, missing, tuple(problems))


def _conflicts(sale: Sale, counted: list[EvidenceType]) -> list[Problem]:
    found = []
    kyc = counted.count(REPLACES_ALL)
    if sale.utility_group not in set(UtilityGroup):
        found.append(Problem.GROUP_UNKNOWN)
    if sale.is_client_financial_responsible is None and not kyc:
        found.append(Problem.PAYER_UNKNOWN)
    if kyc and kyc < len(counted):
        found.append(Problem.KYC_NOT_ALONE)
    if kyc > 1:
        found.append(Problem.KYC_REPEATED)
    return found


def _missing(sale: Sale, records: list[Evidence]) -> Iterable[MissingPiece]:
    for requirement in requirements(sale):
        states = {record.state for record in records if record.evidence_type in requirement.accepts}
        if EvidenceState.COUNTED in states:
            continue
        reason = next((REASON_OF[state] for state in REASON_OF if state in states), Reason.NEVER_REQUESTED)
        yield MissingPiece(requirement.named, reason)
