"""The answers that a partner can give to a finding; none of them changes a verdict."""

from datetime import date
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from toolkit.contract.codes import LabelledEnum
from toolkit.contract.fields import REQUIRED, Birthdate, OptionalText, RequestModel, invalid, required_text


class AnswerKind(LabelledEnum):
    """The answer itself; a request for a waiver waits until two people of the company add one."""

    SENT_AGAIN = "sentAgain", "sent again"
    WILL_COME = "willCome", "will come"
    DISPUTED = "disputed", "is wrong"
    WAIVER_ASKED = "waiverAsked", "asks for a waiver"


HEADINGS: Final = {"answer": "Answer", "until": "Until", "text": "Text", "findingId": "Finding id"}
"""The fields of an answer in a workbook, and the heading of each."""


def _check_kind(value: Any) -> AnswerKind:
    try:
        return AnswerKind(required_text(value))
    except ValueError:
        raise invalid("answer_kind", "Must be one of {}", ", ".join(AnswerKind)) from None


Answer = Annotated[AnswerKind, BeforeValidator(_check_kind)]


class FindingAnswer(RequestModel):
    """A partner's answer to one finding of its sales."""

    answer: Answer
    until: Annotated[
        Birthdate | None,
        Field(None, validate_default=True, description="YYYY-MM-DD: the day by which it comes, for `willCome`."),
    ]
    text: Annotated[
        OptionalText, Field(None, validate_default=True, description="Why, for `disputed` and `waiverAsked`.")
    ]

    @field_validator("until", mode="after")
    @classmethod
    def _has_a_day(cls, until: date | None, info: ValidationInfo) -> date | None:
        if until is None and info.data.get("answer") is AnswerKind.WILL_COME:
            raise invalid("missing", REQUIRED)
        return until

    @field_validator("text", mode="after")
    @classmethod
    def _has_a_reason(cls, text: str | None, info: ValidationInfo) -> str | None:
        if text is None and info.data.get("answer") in {AnswerKind.DISPUTED, AnswerKind.WAIVER_ASKED}:
            raise invalid("missing", REQUIRED)
        return text
