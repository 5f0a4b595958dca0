"""The cases of the minimum-evidence rules, each as one sale.

What happened to the evidence is written down here; ``toolkit.samples.dataset`` makes files of it, and
``toolkit.entrypoints.demo`` lets it happen on a real database and bucket.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from toolkit.domain.evidence import EvidenceType, UtilityGroup
from toolkit.domain.findings import Verdict
from toolkit.domain.rules import Evidence, EvidenceState, Sale, evaluate

POV: Final = EvidenceType.POV
AUT: Final = EvidenceType.AUT
DOC: Final = EvidenceType.DOC_CONTRATANTE
DOC_PAYER: Final = EvidenceType.DOC_RESPONSAVEL_FINANCEIRO
COMBINED: Final = EvidenceType.DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO
KYC: Final = EvidenceType.KYC


class Fate(Enum):
    """The fate of one piece of evidence."""

    UPLOADED = EvidenceState.COUNTED
    """Requested and uploaded."""
    WAITING = EvidenceState.NOT_UPLOADED
    """Requested just now; the file has not come in yet."""
    LAPSED = EvidenceState.EXPIRED
    """Requested, and never sent before the credentials ran out."""
    UNUSABLE = EvidenceState.UNUSABLE
    """Sent by a partner's own software, and not what its type demands."""
    WITHDRAWN = None
    """Sent by a partner's own software, then taken out of the count."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One piece of evidence of a sale, and its fate."""

    evidence_type: EvidenceType
    fate: Fate = Fate.UPLOADED


@dataclass(frozen=True, slots=True)
class Scenario:
    """One sale with its evidence.

    ``utility_group`` is ``None`` where any of the four will do; ``recording`` is shared by the sales that
    have the same one: their voice files are equal, byte for byte.
    """

    name: str
    attempts: tuple[Attempt, ...]
    separate_payer: bool = False
    utility_group: str | None = None
    marked_completed: bool = False
    completable: bool = False
    has_client: bool = True
    recording: str | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict that the rules give."""
        records = [Evidence(each.evidence_type, each.fate.value) for each in self.attempts if each.fate.value]
        return evaluate(
            Sale(self.utility_group or UtilityGroup.A, not self.separate_payer, self.marked_completed), records
        )


def _sent(*types: EvidenceType) -> tuple[Attempt, ...]:
    return tuple(Attempt(evidence_type) for evidence_type in types)


SCENARIOS: Final = (
    Scenario("document and recording", _sent(DOC, POV)),
    Scenario("separate payer", _sent(DOC, POV, AUT, DOC_PAYER), separate_payer=True),
    Scenario("combined document", _sent(COMBINED, POV)),
    Scenario("combined document, separate payer", _sent(COMBINED, POV, AUT), separate_payer=True),
    Scenario("more than the rule asks", _sent(DOC, POV, AUT)),
    Scenario("KYC alone", _sent(KYC)),
    Scenario("KYC alone, separate payer", _sent(KYC), separate_payer=True),
    Scenario("combined document and a separate one", _sent(COMBINED, DOC, POV)),
    Scenario("KYC with a recording", _sent(KYC, POV)),
    Scenario("KYC twice", _sent(KYC, KYC)),
    Scenario("KYC twice, with documents", _sent(KYC, KYC, DOC)),
    Scenario("nothing yet", ()),
    Scenario("nothing yet, separate payer", (), separate_payer=True),
    Scenario("recording on its way, document lapsed", (Attempt(POV, Fate.WAITING), Attempt(DOC, Fate.LAPSED))),
    Scenario("document on its way, recording lapsed", (Attempt(DOC, Fate.WAITING), Attempt(POV, Fate.LAPSED))),
    Scenario(
        "payer's recording on its way, payer's document lapsed",
        (*_sent(DOC, POV), Attempt(AUT, Fate.WAITING), Attempt(DOC_PAYER, Fate.LAPSED)),
        separate_payer=True,
    ),
    Scenario(
        "payer's document on its way, payer's recording lapsed",
        (*_sent(DOC, POV), Attempt(AUT, Fate.LAPSED), Attempt(DOC_PAYER, Fate.WAITING)),
        separate_payer=True,
    ),
    Scenario("lapsed, then requested again", (Attempt(POV, Fate.LAPSED), Attempt(POV, Fate.WAITING), *_sent(DOC))),
    Scenario("web page sent as the recording", (Attempt(POV, Fate.UNUSABLE), *_sent(DOC))),
    Scenario("photo sent as the document", (Attempt(DOC, Fate.UNUSABLE), *_sent(POV))),
    Scenario(
        "the payer's files unusable",
        (*_sent(DOC, POV), Attempt(AUT, Fate.UNUSABLE), Attempt(DOC_PAYER, Fate.UNUSABLE)),
        separate_payer=True,
    ),
    Scenario(
        "photo sent as the combined document",
        (Attempt(COMBINED, Fate.UNUSABLE), *_sent(POV, AUT)),
        separate_payer=True,
    ),
    Scenario("completed as it should be", _sent(DOC, POV), completable=True),
    Scenario("completed elsewhere without a recording", _sent(DOC), marked_completed=True),
    Scenario("conflict mended by a withdrawal", (*_sent(KYC), Attempt(POV, Fate.WITHDRAWN))),
    Scenario("recording withdrawn", (*_sent(DOC), Attempt(POV, Fate.WITHDRAWN))),
    Scenario("unknown utility group", _sent(DOC, POV), utility_group="E"),
    Scenario("sale without a client", _sent(DOC, POV), has_client=False),
    Scenario("a recording used twice, first sale", _sent(DOC, POV), recording="reused"),
    Scenario("a recording used twice, second sale", _sent(DOC, POV), recording="reused"),
)
"""The scenarios, each once."""

USUAL: Final = (
    *(SCENARIOS[0],) * 8,
    *(SCENARIOS[1],) * 3,
    *(SCENARIOS[2],) * 2,
    SCENARIOS[3],
    *(SCENARIOS[5],) * 2,
    *(SCENARIOS[11],) * 2,
    SCENARIOS[12],
)
"""The scenarios that fill up the sample: mostly sales in good order."""
