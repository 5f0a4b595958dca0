"""Read the sales of the story (``toolkit.samples.three_months``) as values, each with its verdict."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Self

from toolkit.contract.evidence import EvidenceType, UtilityGroup
from toolkit.contract.findings import Verdict
from toolkit.contract.rules import Evidence, EvidenceState, Sale, evaluate
from toolkit.samples.three_months import DAYS, SALES, WAIVERS

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
    """The content of a file, or why there is none."""

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
    PAGE = "page"
    """A sound file that the bucket hands out as a web page."""
    STRAY = "stray"
    """A sound file that no record names, where upload forms lead."""
    OUTSIDE = "outside"
    """A sound file that no record names, elsewhere in the bucket."""
    WEB_PAGE = "web-page"
    PHOTO = "photo"
    SILENT = "silent"
    SHORT = "short"
    CUT = "cut"
    LOCKED = "locked"
    EMPTY = "empty"
    WAITING = "waiting"
    """Not sent yet."""
    LAPSED = "lapsed"
    """Never sent."""


class Deed(StrEnum):
    """A thing that is done about a file after it was asked for."""

    WITHDRAWN = "withdrawn"
    WRITTEN = "written"
    """Another sound file is written in its place, past the toolkit."""
    DELETED = "deleted"


_UNUSABLE: Final = {
    Content.WEB_PAGE, Content.PHOTO, Content.SILENT, Content.SHORT, Content.CUT, Content.LOCKED, Content.EMPTY,
}  # fmt: skip
_STATES: Final = {
    Content.WAITING: EvidenceState.NOT_UPLOADED,
    Content.LAPSED: EvidenceState.EXPIRED,
} | dict.fromkeys(_UNUSABLE, EvidenceState.UNUSABLE)
_WITHOUT_RECORD: Final = {Content.STRAY, Content.OUTSIDE}
_PAST_THE_TOOLKIT: Final = {Content.PAGE, Content.EMPTY, *_WITHOUT_RECORD}
"""Contents that no upload form takes: somebody with the keys of the bucket writes them."""
_ODD: Final = {Content.LINK, Content.SCRIPT, Content.BLANK, Content.PHONE, *_UNUSABLE, *_PAST_THE_TOOLKIT}


class Route(StrEnum):
    """The way in which a file comes into the bucket."""

    MANIFEST = "manifest"
    """The demo asks for it and sends it, or waits for it."""
    PARTNER = "partner"
    KEYS = "keys"
    """Somebody with the keys of the bucket writes it."""
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One piece of evidence of a sale: when it is asked for, what is sent, and on which day each deed is done."""

    evidence_type: EvidenceType
    day: int
    content: Content
    deeds: Mapping[Deed, int] = field(default_factory=dict)

    @property
    def state(self) -> EvidenceState:
        """The state of its record at the end."""
        if Deed.DELETED in self.deeds:
            return EvidenceState.VANISHED
        content = Content.SOUND if Deed.WRITTEN in self.deeds else self.content
        return _STATES.get(content, EvidenceState.COUNTED)

    @property
    def has_record(self) -> bool:
        """Tell whether it is asked for."""
        return self.content not in _WITHOUT_RECORD

    @property
    def by_partner(self) -> bool:
        """Tell whether it is none that an analyst asks for: others send it, without looking at it."""
        return self.content in _ODD or bool(self.deeds)

    @property
    def route(self) -> Route:
        """The way in which it comes into the bucket: what was sound in the past came from partners."""
        if self.content not in {Content.LAPSED, Content.WAITING, *_PAST_THE_TOOLKIT}:
            return Route.PARTNER if self.by_partner or self.day else Route.MANIFEST
        if self.written is not None:
            return Route.KEYS
        return Route.NEVER if self.content is Content.LAPSED else Route.MANIFEST

    @property
    def written(self) -> int | None:
        """The day on which somebody with the keys of the bucket writes it."""
        return self.day if self.content in _PAST_THE_TOOLKIT else self.deeds.get(Deed.WRITTEN)


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
        records = [
            Evidence(each.evidence_type, EvidenceState.WITHDRAWN if Deed.WITHDRAWN in each.deeds else each.state)
            for each in self.attempts
            if each.has_record
        ]
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
            if word in set(Deed):
                known = next(each for each in attempts if each.evidence_type is _TYPES[kind])
                deeds = {**known.deeds, Deed(word): int(day)}
                attempts[attempts.index(known)] = replace(known, deeds=deeds)
            elif kind in _TYPES:
                attempts.append(Attempt(_TYPES[kind], int(day), Content(word or Content.SOUND)))
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
