"""Scorecards: the questions that people answer about a file when they look at it or listen to it."""

from collections.abc import Mapping
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from pydantic import Field

from toolkit.contract.evidence import EvidenceType
from toolkit.contract.toml_files import TomlTable, line_of, read_toml
from toolkit.errors import InvalidField, InvalidFields, SettingsError
from toolkit.message import Message


class Mark(StrEnum):
    """The answer to a question."""

    YES = "yes"
    NO = "no"
    NOT_APPLICABLE = "notApplicable"


class Question(TomlTable):
    """A question about files of some types; a file to which an answer is ``critical`` fails the review."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
    text: Annotated[str, Field(min_length=3, max_length=300)]
    of: Annotated[list[EvidenceType], Field(min_length=1)]
    weight: Annotated[int, Field(ge=0, le=100, strict=True)] = 1
    critical: list[Mark] = Field(default_factory=list)


class Scorecard(TomlTable):
    """The questions of a company, and the days for which a file that passed them is taken as looked at."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    accepted_for_days: Annotated[int, Field(ge=1, le=3650, strict=True)] = 365
    question: Annotated[list[Question], Field(min_length=1)]

    def questions(self, evidence_type: str) -> list[Question]:
        """Return the questions about files of a type, in their order."""
        return [each for each in self.question if evidence_type in each.of]

    @property
    def types(self) -> list[EvidenceType]:
        """The types that it has questions about, in the order of the contract."""
        return [each for each in EvidenceType if self.questions(each)]

    def marked(self, evidence_type: str, answers: Mapping[str, str | None]) -> dict[str, Mark]:
        """Return the answers to all questions about a file of this type.

        Raises:
            InvalidFields: a question is not answered, or not by one of the marks, or there is none of that id.
        """
        asked = {each.id for each in self.questions(evidence_type)}
        wrong = [InvalidField(name, "Is no question about this file") for name in answers if name not in asked]
        marks: dict[str, Mark] = {}
        for name in sorted(asked):
            try:
                marks[name] = Mark(answers.get(name) or "")
            except ValueError:
                wrong.append(InvalidField(name, "Must be yes, no or notApplicable"))
        if wrong:
            raise InvalidFields(wrong)
        return marks

    def failures(self, evidence_type: str, marks: Mapping[str, Mark]) -> list[str]:
        """Return the questions whose answer is critical."""
        return [each.id for each in self.questions(evidence_type) if marks[each.id] in each.critical]

    def score(self, evidence_type: str, marks: Mapping[str, Mark]) -> float | None:
        """Return the weight of the questions answered by yes, as a share of those that apply; ``None`` if none."""
        applying = [each for each in self.questions(evidence_type) if marks[each.id] is not Mark.NOT_APPLICABLE]
        whole = sum(each.weight for each in applying)
        return sum(each.weight for each in applying if marks[each.id] is Mark.YES) / whole if whole else None


def read_scorecard(place: Path | None) -> Scorecard:
    """Read a scorecard from its TOML file; without one, that of the package. Raises as ``read_toml`` does."""
    path = files("toolkit.contract") / "scorecard.toml" if place is None else place
    name = "scorecard.toml" if place is None else place
    card, text = read_toml(path, name, Scorecard)
    ids = [each.id for each in card.question]
    for number, each in enumerate(ids):
        if each in ids[:number]:
            line = line_of(text, ["question", number, "id"])
            raise SettingsError(
                "{}, line {}: {}: {}", name, line, "id", Message("the question {} stands there twice", each)
            )
    for kind in card.types:
        if not sum(each.weight for each in card.questions(kind)):
            number = ids.index(card.questions(kind)[0].id)
            line = line_of(text, ["question", number, "weight"])
            reason = Message("the weights for {} add up to nothing", kind)
            raise SettingsError("{}, line {}: {}: {}", name, line, "weight", reason)
    return card
