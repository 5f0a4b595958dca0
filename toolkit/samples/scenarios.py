"""The story of the sample: three months of sales, and every case of the minimum-evidence rules in them.

A line of ``SALES`` is a sale: what it is called, its traits, and what happens to it so many days before the end.
On one day, in the order of the line:

- ``sold``; ``marked`` as completed by the sales system; ``completed`` by the toolkit;
- ``DOC`` and the like: a file of that type is asked for and sent. ``DOC:lapsed`` is never sent, ``DOC:waiting``
  not yet; ``POV:silent`` and other words say what was sent instead of a sound file of its own (``evidence_files``
  makes it): ``twin`` the same bytes in each sale, ``alike`` the same with another tag, ``same`` the same bytes in
  all files of the sale, ``phone`` a codec that nothing here decodes. What no upload form takes is written by
  somebody who has the keys of the bucket: ``page`` is handed out as a web page, and no record names ``stray``,
  where forms lead, and ``outside``, elsewhere;
- ``POV:withdrawn``: its record is withdrawn. ``POV:deleted``, ``POV:written``: somebody who has the keys of the
  bucket deletes the file, or writes another one in its place.

Of the traits, ``other payer`` says that somebody else than the contracting party pays, ``other partner`` that the
sale belongs to another partner; ``usual 3`` makes a sale common among those that fill the sample up, each at
another time.

``README.md`` beside this module names the few codes of the catalogue that the story does not tell.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Self

from toolkit.contract.evidence import EvidenceType
from toolkit.contract.rules import EvidenceState

DAYS: Final = (84, 70, 56, 42, 28, 21, 14, 7, 3, 1, 0)
"""The days on which something happens, before the end of the story; each but the last ends with an audit."""

SALES: Final = """
document and recording                    | usual 8               | 0 sold DOC POV
separate payer                            | other payer; usual 3  | 1 sold DOC POV, 0 AUT PAYER
combined document                         | usual 2               | 3 sold BOTH, 1 POV
combined document, separate payer         | other payer; usual 1  | 1 sold BOTH POV, 0 AUT
more than the rule asks                   |                       | 14 sold DOC:link POV AUT
KYC alone                                 | usual 2               | 0 sold KYC
KYC alone, separate payer                 | other payer           | 21 sold KYC:script
combined document and a separate one      |                       | 21 sold DOC:blank, 14 BOTH POV
KYC with a recording                      |                       | 14 sold KYC, 0 POV
KYC twice                                 |                       | 28 sold KYC KYC
KYC twice, with documents                 |                       | 7 sold KYC KYC DOC
nothing yet                               | usual 2               | 0 sold
nothing for six weeks, separate payer     | other payer           | 42 sold
document came, recording on its way       |                       | 7 sold, 0 DOC POV:waiting
recording on its way, document lapsed     |                       | 7 sold, 3 DOC:lapsed, 0 POV:waiting
document on its way, recording lapsed     |                       | 21 sold, 14 POV:lapsed, 0 DOC:waiting
payer's recording on its way              | other payer           | 14 sold DOC POV, 7 PAYER:lapsed, 0 AUT:waiting
payer's document on its way               | other payer           | 28 sold DOC POV, 21 AUT:lapsed, 0 PAYER:waiting
lapsed, then requested again              |                       | 7 sold DOC, 3 POV:lapsed, 0 POV:waiting
web page sent as the recording            |                       | 14 sold DOC, 7 POV:web-page
photo sent as the document                |                       | 3 sold POV, 1 DOC:photo
the payer's files unusable                | other payer           | 42 sold DOC POV, 28 AUT:web-page PAYER:photo
photo sent as the combined document       | other payer           | 28 sold POV AUT, 21 BOTH:photo
silent recording                          |                       | 21 sold DOC, 14 POV:silent
recording cut short                       |                       | 14 sold DOC, 7 POV:cut
recording of half a second                |                       | 14 sold DOC, 7 POV:short
document cut short                        |                       | 7 sold POV, 3 DOC:cut
document behind a password                |                       | 28 sold POV, 21 DOC:locked
completed as it should be                 | usual 4               | 14 sold DOC, 7 POV, 3 completed
completed after a recording came late     |                       | 84 sold DOC, 28 POV:declined, 21 completed
completed today                           |                       | 21 sold DOC, 14 POV, 0 completed
completed elsewhere without a recording   |                       | 56 sold DOC, 42 marked
completed, then its recording withdrawn   |                       | 70 sold DOC POV, 56 completed, 3 POV:withdrawn
conflict mended by a withdrawal           |                       | 28 sold KYC, 21 POV, 14 POV:withdrawn
recording came late, withdrawn today      |                       | 42 sold DOC, 28 POV, 0 POV:withdrawn
recording waived for a while              |                       | 28 sold DOC
recording waived, and never sent          |                       | 56 sold DOC
recording waived, waiver revoked          |                       | 42 sold DOC
unknown utility group                     | group E               | 21 sold DOC POV
utility group put right                   | group E until 28      | 56 sold DOC POV:phone
sale without a client                     | no client             | 42 sold DOC POV
client named after a month                | no client until 14    | 42 sold DOC POV
a recording used twice, first sale        |                       | 56 sold DOC POV:twin
a recording used twice, second sale       |                       | 21 sold DOC POV:twin
a recording with another tag, first sale  |                       | 42 sold DOC POV:alike
a recording with another tag, second sale |                       | 7 sold DOC POV:alike
one recording as two types                | other payer           | 14 sold BOTH POV:same AUT:same
documents deleted by mistake              | other payer           | 42 sold DOC PAYER, 3 DOC:deleted PAYER:deleted
recordings deleted by mistake             | other payer           | 42 sold BOTH POV AUT, 3 POV:deleted AUT:deleted
recording replaced after it was seen      |                       | 28 sold DOC POV, 7 POV:written
recording written after its time          |                       | 21 sold DOC, 14 POV:lapsed, 3 POV:written
empty recording                           |                       | 14 sold DOC, 7 POV:empty
document stored as a web page             |                       | 21 sold POV, 14 DOC:page
files that nobody asked for               |                       | 14 sold DOC POV, 7 AUT:stray POV:outside
moved to another partner                  | other partner until 7 | 28 sold DOC, 3 POV
"""

_TYPES: Final = {
    "POV": EvidenceType.POV,
    "AUT": EvidenceType.AUT,
    "DOC": EvidenceType.DOC_CONTRATANTE,
    "PAYER": EvidenceType.DOC_RESPONSAVEL_FINANCEIRO,
    "BOTH": EvidenceType.DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO,
    "KYC": EvidenceType.KYC,
}

FOR_EVER: Final = -1

_SOUND: Final = (
    *("sound", "declined", "twin", "alike", "same"),
    *("link", "script", "blank", "phone", "page", "stray", "outside"),
)
_UNUSABLE: Final = ("web-page", "photo", "silent", "short", "cut", "locked", "empty")
_STATES: Final = {
    **dict.fromkeys(_SOUND, EvidenceState.COUNTED),
    **dict.fromkeys(_UNUSABLE, EvidenceState.UNUSABLE),
    "waiting": EvidenceState.NOT_UPLOADED,
    "lapsed": EvidenceState.EXPIRED,
}
"""Every word for what is sent, with the state of its record at the end."""
_WITHOUT_RECORD: Final = ("stray", "outside")
_PAST_THE_TOOLKIT: Final = ("page", "empty", *_WITHOUT_RECORD)
"""Contents that no upload form takes: somebody with the keys of the bucket writes them."""
_ODD: Final = ("link", "script", "blank", "phone", *_UNUSABLE, *_PAST_THE_TOOLKIT)
_DEEDS: Final = ("withdrawn", "written", "deleted")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One piece of evidence of a sale: when it is asked for, what is sent, and on which day each deed is done."""

    evidence_type: EvidenceType
    day: int
    content: str
    deeds: Mapping[str, int] = field(default_factory=dict)

    @property
    def state(self) -> EvidenceState:
        """The state of its record at the end."""
        if "deleted" in self.deeds:
            return EvidenceState.VANISHED
        return EvidenceState.COUNTED if "written" in self.deeds else _STATES[self.content]

    @property
    def has_record(self) -> bool:
        """Tell whether it is asked for."""
        return self.content not in _WITHOUT_RECORD

    @property
    def by_partner(self) -> bool:
        """Tell whether it is none that an analyst asks for: others send it, without looking at it."""
        return self.content in _ODD or bool(self.deeds)

    @property
    def is_sent(self) -> bool:
        """Tell whether it comes by an upload form, now or later."""
        return self.content not in ("lapsed", *_PAST_THE_TOOLKIT)

    @property
    def by_manifest(self) -> bool:
        """Tell whether the demo asks for it: what was sound in the past came from partners."""
        return self.content == "waiting" or (self.is_sent and not self.by_partner and not self.day)

    @property
    def written(self) -> int | None:
        """The day on which somebody with the keys of the bucket writes it."""
        return self.day if self.content in _PAST_THE_TOOLKIT else self.deeds.get("written")


WAIVERS: Final[Mapping[str, tuple[int, int, int | None, str]]] = {
    "recording waived for a while": (14, -9, None, "The customer is abroad until next week"),
    "recording waived, and never sent": (42, 7, None, "The partner repeats the call"),
    "recording waived, waiver revoked": (21, -30, 7, "The partner repeats the call"),
}
"""By the name of a sale: the days on which the waiver of its recording starts, ends and is revoked; the reason."""


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
    usual: int = 0

    def has(self, trait: str, day: int) -> bool:
        """Tell whether the sale has a trait on a day."""
        return trait in self.traits and day > self.traits[trait]

    def earlier(self, steps: int) -> Self:
        """Return the same story, so many of ``DAYS`` earlier."""

        def moved(day: int) -> int:
            return DAYS[DAYS.index(day) - steps]

        attempts = tuple(replace(each, day=moved(each.day)) for each in self.attempts)
        completed = None if self.completed is None else moved(self.completed)
        return replace(self, sold=moved(self.sold), attempts=attempts, completed=completed)


def _scenario(line: str) -> Scenario:
    name, traits, story = (part.strip() for part in line.split("|"))
    days: dict[str, int] = {}
    attempts: list[Attempt] = []
    for day, *acts in (part.split() for part in story.split(",")):
        for act in acts:
            kind, _, word = act.partition(":")
            if word in _DEEDS:
                known = next(each for each in attempts if each.evidence_type is _TYPES[kind])
                deeds = {**known.deeds, word: int(day)}
                attempts[attempts.index(known)] = replace(known, deeds=deeds)
            elif kind in _TYPES:
                attempts.append(Attempt(_TYPES[kind], int(day), word or "sound"))
            else:
                days[act] = int(day)
    given = [trait.strip().partition(" until ") for trait in traits.split(";")]
    return Scenario(
        name,
        attempts=tuple(attempts),
        traits={trait: int(until or FOR_EVER) for trait, _, until in given},
        usual=sum(int(trait.removeprefix("usual ")) for trait, *_ in given if trait.startswith("usual ")),
        **days,
    )


SCENARIOS: Final = tuple(map(_scenario, SALES.strip().splitlines()))  # each once

USUAL: Final = tuple(scenario for scenario in SCENARIOS for _ in range(scenario.usual))
"""The scenarios that fill up the sample beyond one sale for each: mostly sales in good order."""
