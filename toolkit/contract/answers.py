"""The answers of the service (contract, "Resources and their fields"), and those of partners to findings.

No answer to a finding changes a verdict.
"""

from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic.alias_generators import to_camel

from toolkit.contract.codes import LabelledEnum
from toolkit.contract.fields import REQUIRED, Birthdate, OptionalText, RequestModel, invalid, one_of

EXAMPLE_CREDENTIALS: Final[dict[str, Any]] = {
    "id": "019a7c55-0f2e-7d33-a1b2-c3d4e5f60718",
    "url": "https://evidence.example.com/evidence",
    "fields": {
        "bucket": "evidence",
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": "...",
        "X-Amz-Date": "20260302T120000Z",
        "X-Amz-Security-Token": "...",
        "key": "evidences/2026/03/02/019a7c55-0f2e-7d33-a1b2-c3d4e5f60718/contratante.pdf",
        "Policy": "...",
        "X-Amz-Signature": "...",
    },
}


class AnswerBody(BaseModel):
    """A body, under the contract's names."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, from_attributes=True, frozen=True)


class RegisteredClient(AnswerBody):
    """The registered client."""

    message: str = Field(description="Confirmation text.")
    client_id: UUID = Field(description="Id of the created client.")
    address_id: UUID = Field(description="Id of the created address.")


class UploadCredentials(AnswerBody):
    """The address and the form fields for posting the file to the bucket."""

    model_config = ConfigDict(json_schema_extra={"example": EXAMPLE_CREDENTIALS})

    id: UUID = Field(description="Id of the evidence record.")
    url: str = Field(description="Address of the storage bucket to which the file is posted.")
    fields: dict[str, str] = Field(description="Form fields to be sent with the file.", repr=False)


class AnswerKind(LabelledEnum):
    """The answer itself; a request for a waiver waits until two people of the company add one."""

    SENT_AGAIN = "sentAgain", "sent again"
    WILL_COME = "willCome", "will come"
    DISPUTED = "disputed", "is wrong"
    WAIVER_ASKED = "waiverAsked", "asks for a waiver"


HEADINGS: Final = {"answer": "Answer", "until": "Until", "text": "Text", "findingId": "Finding id"}
"""The fields of an answer in a workbook, and the heading of each."""


Answer = Annotated[AnswerKind, one_of(AnswerKind, "answer_kind")]

_NEEDED: Final = {"until": {AnswerKind.WILL_COME}, "text": {AnswerKind.DISPUTED, AnswerKind.WAIVER_ASKED}}
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
