"""The minimum-evidence rules as data, and their reading for one sale.

The data are ``GROUP_RULES``, ``REPLACED_BY_COMBINED`` and the enumerations they are made of. Two readings
derive from them: ``evaluate`` here, and the audit's expression over all sales
(``toolkit.audit.judge``). Property tests hold the two together.

Source: contract, "Minimum evidence rules per utility group".
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from importlib.metadata import version
from typing import Final

from toolkit.contract.evidence import KIND_OF, EvidenceType, FileKind, UtilityGroup
from toolkit.contract.findings import MissingPiece, Problem, Reason, Status, Verdict
from toolkit.errors import InvalidInput


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
REPLACED_BY_COMBINED: Final = (EvidenceType.DOC_CONTRATANTE, EvidenceType.DOC_RESPONSAVEL_FINANCEIRO)
"""One document for both parties, and the separate ones that it makes redundant."""

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

GROUP_RULES: Final[Mapping[str, tuple[Requirement, ...]]] = dict.fromkeys(UtilityGroup, STANDARD)

REPLACES_ALL: Final = EvidenceType.KYC  # one file of this type is enough, and nothing else may stand beside it


class EvidenceState(StrEnum):
    """The stage that one evidence record has reached, furthest first; each but the first is a ``Reason``, too."""

    COUNTED = "COUNTED"
    UNUSABLE = "UNUSABLE"
    VANISHED = "VANISHED"
    NOT_UPLOADED = "NOT_UPLOADED"
    EXPIRY_UNKNOWN = "EXPIRY_UNKNOWN"
    EXPIRED = "EXPIRED"
    WITHDRAWN = "WITHDRAWN"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One evidence record, reduced to what the rules look at."""

    evidence_type: str  # an ``EvidenceType``, or a type that the contract does not know
    state: EvidenceState

    def __post_init__(self) -> None:
        """Take the text of a state for it, and refuse any other: it would count for nothing."""
        object.__setattr__(self, "state", EvidenceState(self.state))

    @property
    def known(self) -> bool:
        """True for a type of the contract."""
        return self.evidence_type in KIND_OF


@dataclass(frozen=True, slots=True)
class Sale:
    """A sale, reduced to what the rules look at."""

    utility_group: str
    is_client_financial_responsible: bool | None  # ``None`` where the service does not say it
    completed: bool = False

    def __post_init__(self) -> None:
        if self.is_client_financial_responsible not in (True, False, None):  # a text would count as true
            raise InvalidInput(
                "isClientFinancialResponsible is true, false or not known, never {!r}.",
                self.is_client_financial_responsible,
            )


def requirements(sale: Sale) -> tuple[Requirement, ...]:
    """Return what the sale needs by its utility group; nothing where no rule knows the group."""
    rule = GROUP_RULES.get(sale.utility_group, ())
    return tuple(
        each for each in rule if not (each.only_with_separate_payer and sale.is_client_financial_responsible)
    )


def evidence_state(
    evidence_type: str,
    *,
    size: int | None,
    kind: FileKind | None,
    damaged: bool,
    expired: bool | None,
    vanished: bool = False,
    withdrawn: bool = False,
) -> EvidenceState:
    """Return the stage of a record, derived from the facts about its object.

    ``size`` is in bytes, ``None`` where no object lies under the record's key; ``kind`` is by the bytes,
    ``None`` where they were not examined yet; ``damaged`` stands for every fault that a verification of the
    contents found; ``expired`` tells whether the credentials ran out, ``None`` where nobody knows until when they
    were valid; ``vanished`` tells whether an object that is not there now was seen there before. A file of a type
    that the contract does not know is never usable.
    """
    if withdrawn:
        return EvidenceState.WITHDRAWN
    if size is None and vanished:
        return EvidenceState.VANISHED
    if size is None:
        if expired is None:
            return EvidenceState.EXPIRY_UNKNOWN
        return EvidenceState.EXPIRED if expired else EvidenceState.NOT_UPLOADED
    wanted = KIND_OF.get(evidence_type)
    usable = wanted is not None and size > 0 and kind in (None, wanted) and not damaged
    return EvidenceState.COUNTED if usable else EvidenceState.UNUSABLE


def ran_out(expires_at: datetime | None, now: datetime) -> bool | None:
    """Tell whether credentials ran out; ``None`` where the service does not say until when they are valid."""
    return None if expires_at is None else expires_at <= now


def evaluate(sale: Sale, evidences: Iterable[Evidence]) -> Verdict:
    """Judge one sale by its evidence records, the withdrawn ones and those of unknown types included."""
    records = list(evidences)
    counted = [each.evidence_type for each in records if each.known and each.state is EvidenceState.COUNTED]
    unknown = [each for each in records if not each.known and each.state is not EvidenceState.WITHDRAWN]
    conflicts = _conflicts(sale, counted, unknown)
    missing: tuple[MissingPiece, ...] = ()
    if not conflicts and REPLACES_ALL not in counted:
        missing = tuple(_missing(sale, records, Reason.TYPE_UNKNOWN if unknown else Reason.NEVER_REQUESTED))
    status = Status.CONFLICT if conflicts else Status.INCOMPLETE if missing else Status.COMPLIANT
    problems = set(conflicts)
    if unknown:
        problems.add(Problem.TYPE_UNKNOWN)
    if sale.completed and status is not Status.COMPLIANT:
        problems.add(Problem.COMPLETED_WITHOUT_EVIDENCE)
    if COMBINED in counted and any(replaced in counted for replaced in REPLACED_BY_COMBINED):
        problems.add(Problem.DOCUMENT_REDUNDANT)
    return Verdict(status, missing, tuple(each for each in Problem if each in problems))


def _conflicts(sale: Sale, counted: list[str], unknown: list[Evidence]) -> Iterable[Problem]:
    found = []
    kyc = counted.count(REPLACES_ALL)
    if sale.utility_group not in GROUP_RULES:
        found.append(Problem.GROUP_UNKNOWN)
    if sale.is_client_financial_responsible is None and not kyc:
        found.append(Problem.PAYER_UNKNOWN)
    if kyc and kyc < len(counted):
        found.append(Problem.KYC_NOT_ALONE)
    if kyc > 1:
        found.append(Problem.KYC_REPEATED)
    if kyc and any(each.state is EvidenceState.UNUSABLE for each in unknown):  # a file that may be other evidence
        found.append(Problem.TYPE_UNKNOWN)
    return found


def _missing(sale: Sale, records: list[Evidence], otherwise: Reason) -> Iterable[MissingPiece]:
    for requirement in requirements(sale):
        states = {record.state for record in records if record.evidence_type in requirement.accepts}
        if EvidenceState.COUNTED in states:
            continue
        reason = next((Reason(state) for state in EvidenceState if state in states), otherwise)
        yield MissingPiece(requirement.named, reason)


def toolkit_version() -> str:
    """Return the version of this toolkit."""
    return version("evidence-toolkit")


def rules_fingerprint() -> str:
    """Return twelve hexadecimal digits over the rules as data."""
    groups = {
        group: [[requirement.accepts, requirement.only_with_separate_payer] for requirement in requirements]
        for group, requirements in GROUP_RULES.items()
    }
    reasons = [(state, Reason(state)) for state in EvidenceState if state is not EvidenceState.COUNTED]
    rules = [groups, REPLACES_ALL, COMBINED, REPLACED_BY_COMBINED, reasons, KIND_OF]
    return sha256(json.dumps(rules).encode()).hexdigest()[:12]
