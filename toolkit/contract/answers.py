"""The answers that a partner can give to a finding; none of them changes a verdict."""

from typing import Annotated, Any, Final

from pydantic import Field, ValidationInfo, field_validator

from toolkit.contract.codes import LabelledEnum
from toolkit.contract.fields import REQUIRED, Birthdate, OptionalText, RequestModel, invalid, one_of


class AnswerKind(LabelledEnum):
    """The answer itself; a request for a waiver waits until two people of the company add one."""

    SENT_AGAIN = "sentAgain", "sent again"
    WILL_COME = "willCome", "will come"
    DISPUTED = "disputed", "is wrong"
    WAIVER_ASKED = "waiverAsked", "asks for a waiver"


HEADINGS: Final = {"answer": "Answer", "until": "Until", "text": "Text", "findingId": "Finding id"}
"""The fields of an answer in a workbook, and the heading of each."""


Answer = Annotated[AnswerKind, one_of(AnswerKind, "answer_kind")]

_NEEDED: Final = {
    "until": {AnswerKind.WILL_COME},
    "text": {AnswerKind.DISPUTED, AnswerKind.WAIVER_ASKED},
}
"""The answers that need each field."""


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

    @field_validator("until", "text", mode="after")
    @classmethod
    def _is_there(cls, value: Any, info: ValidationInfo) -> Any:
        if value is None and info.data.get("answer") in _NEEDED[info.field_name or ""]:
            raise invalid("missing", REQUIRED)
        return value
