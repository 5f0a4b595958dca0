"""Read the sales of the story (``toolkit.samples.three_months``) as values, each with its verdict."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Self

from toolkit.domain.evidence import EvidenceType, UtilityGroup
from toolkit.domain.findings import Verdict
from toolkit.domain.rules import Evidence, EvidenceState, Sale, evaluate
from toolkit.samples.three_months import DAYS, SALES, WAIVERS

_NOT_SENT: Final = {"waiting": EvidenceState.NOT_UPLOADED, "lapsed": EvidenceState.EXPIRED}
_TYPES: Final = {
    "POV": EvidenceType.POV,
    "AUT": EvidenceType.AUT,
    "DOC": EvidenceType.DOC_CONTRATANTE,
    "PAYER": EvidenceType.DOC_RESPONSAVEL_FINANCEIRO,
    "BOTH": EvidenceType.DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO,
    "KYC": EvidenceType.KYC,
}


FOR_EVER: Final = -1


class Content(StrEnum):
    """The content of a file that was sent."""

    SOUND = "sound"
    TWIN = "twin"
    """The same bytes in each sale that has one."""
    ALIKE = "alike"
    """The same recording in each sale that has one, with a tag of its own."""
    SAME = "same"
    """The same bytes in all such files of the sale."""
    LINK = "link"
    SCRIPT = "script"
    BLANK = "blank"
    PHONE = "phone"
    """A recording with a codec of telephones, which nothing here decodes, under the name of another."""
    WEB_PAGE = "web-page"
    PHOTO = "photo"
    SILENT = "silent"
    SHORT = "short"
    CUT = "cut"
    LOCKED = "locked"


_ODD: Final = {Content.LINK, Content.SCRIPT, Content.BLANK, Content.PHONE}
_USABLE: Final = {Content.SOUND, Content.TWIN, Content.ALIKE, Content.SAME, *_ODD}


@dataclass(frozen=True, slots=True)
class Attempt:
    """One piece of evidence of a sale: when it is asked for and withdrawn, and its state at the end."""

    evidence_type: EvidenceType
    day: int
    state: EvidenceState
    content: Content
    withdrawn: int | None = None

    @property
    def by_partner(self) -> bool:
        """Tell whether a partner's own software sends it, without looking at it."""
        return self.state is EvidenceState.UNUSABLE or self.content in _ODD or self.withdrawn is not None


@dataclass(frozen=True, slots=True)
class Waiving:
    """A waiver of the story: the code, its days, and the day on which it is revoked."""

    code: str
    start: int
    end: int
    revoked: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """The story of one sale, in days before the end."""

    name: str
    sold: int
    attempts: tuple[Attempt, ...]
    traits: Mapping[str, int]
    """Each trait with the day on which it ends, ``FOR_EVER`` for one that stays."""
    marked: int | None = None
    completed: int | None = None
    waiver: Waiving | None = None
    usual: int = 0

    def has(self, trait: str, day: int) -> bool:
        """Tell whether the sale has a trait on a day."""
        return trait in self.traits and day > self.traits[trait]

    @property
    def verdict(self) -> Verdict:
        """The verdict that the rules give at the end."""
        records = [Evidence(each.evidence_type, each.state) for each in self.attempts if each.withdrawn is None]
        group = "E" if self.has("group E", 0) else UtilityGroup.A
        is_completed = (self.marked, self.completed) != (None, None)
        return evaluate(Sale(group, not self.has("other payer", 0), is_completed), records)

    def earlier(self, steps: int) -> Self:
        """Return the same story, so many of ``DAYS`` earlier."""

        def moved(day: int) -> int:
            return DAYS[DAYS.index(day) - steps]

        attempts = tuple(replace(each, day=moved(each.day)) for each in self.attempts)
        completed = None if self.completed is None else moved(self.completed)
        return replace(self, sold=moved(self.sold), attempts=attempts, completed=completed)


def _scenario(line: str, waivers: dict[str, Waiving]) -> Scenario:
    name, traits, story = (part.strip() for part in line.split("|"))
    days: dict[str, int] = {}
    attempts: list[Attempt] = []
    for day, *acts in (part.split() for part in story.split(",")):
        for act in acts:
            kind, _, word = act.partition(":")
            if act.startswith("-"):
                taken = next(each for each in attempts if each.evidence_type is _TYPES[act[1:]])
                attempts[attempts.index(taken)] = replace(taken, withdrawn=int(day))
            elif kind in _TYPES:
                content = Content(word) if word in set(Content) else Content.SOUND
                sent = EvidenceState.COUNTED if content in _USABLE else EvidenceState.UNUSABLE
                attempts.append(Attempt(_TYPES[kind], int(day), _NOT_SENT.get(word, sent), content))
            else:
                days[act] = int(day)
    given = [trait.strip().partition(" until ") for trait in traits.split(";")]
    return Scenario(
        name,
        attempts=tuple(attempts),
        traits={trait: int(until or FOR_EVER) for trait, _, until in given},
        waiver=waivers.get(name),
        usual=sum(int(trait.removeprefix("usual ")) for trait, *_ in given if trait.startswith("usual ")),
        **days,
    )


def _waiver(line: str) -> tuple[str, Waiving]:
    name, code, days, reason = (part.strip() for part in line.split("|"))
    span, _, revoked = days.partition("; revoked ")
    start, end = map(int, span.split(" to "))
    return name, Waiving(code, start, end, int(revoked) if revoked else None, reason)


_OF_SALES: Final = dict(_waiver(line) for line in WAIVERS.strip().splitlines())

SCENARIOS: Final = tuple(_scenario(line, _OF_SALES) for line in SALES.strip().splitlines())
"""Each once."""

USUAL: Final = tuple(scenario for scenario in SCENARIOS for _ in range(scenario.usual))
"""The scenarios that fill up the sample beyond one sale for each: mostly sales in good order."""
