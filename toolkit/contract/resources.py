"""The contract's resources ("Resources and their fields"): clients, sales, and the answers of the service.

Beside them stand doubtful values, and the answers of partners to findings. The contract shows of a sale its id and
``isClientFinancialResponsible``; its other fields are what the rules and the reports need. No answer to a finding
changes a verdict.
"""

import re
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator
from pydantic.alias_generators import to_camel

from toolkit.contract import fields
from toolkit.contract.evidence import SALE_ID_MAX
from toolkit.message import LabelledEnum


class Address(fields.RequestModel):
    """The installation unit."""

    neighborhood: fields.Neighborhood = Field(title="Neighbourhood")
    installation_number: fields.InstallationNumber = Field(title="Number printed on the bill")
    address: fields.RequiredText = Field(title="Street or avenue")
    address_number: fields.RequiredText = Field(title="Street number")
    city: fields.RequiredText = Field(title="City")
    zip_code: fields.Cep = Field(title="Postal code (CEP)")


class Client(fields.RequestModel):
    """A valid client, normalised: CPF, CEP and phone as digits, blank optional fields as ``None``."""

    external_id: fields.OptionalText = Field(None, title="Partner tracking id")
    cpf: fields.Cpf = Field(title="Brazilian taxpayer number")
    rg: fields.OptionalText = Field(None, title="Identity document number")
    number_on_dealership: fields.RequiredText = Field(title="Client code at the utility")
    enrollment: fields.RequiredText = Field(title="Residence number")
    first_name: fields.RequiredText = Field(title="Given name")
    last_name: fields.RequiredText = Field(title="Family name")
    email: fields.Email = Field(None, title="E-mail address")
    birthdate: fields.Birthdate = Field(title="Date of birth")
    phone_number: fields.Phone = Field(None, title="Telephone number")
    address: Address


AREA_CODES: Final = frozenset((
    "11", "12", "13", "14", "15", "16", "17", "18", "19", "21", "22", "24", "27", "28",
    "31", "32", "33", "34", "35", "37", "38", "41", "42", "43", "44", "45", "46", "47", "48", "49",
    "51", "53", "54", "55", "61", "62", "63", "64", "65", "66", "67", "68", "69",
    "71", "73", "74", "75", "77", "79", "81", "82", "83", "84", "85", "86", "87", "88", "89",
    "91", "92", "93", "94", "95", "96", "97", "98", "99",
))  # fmt: skip
"""Area codes (DDD) in use in Brazil."""

UNASSIGNED_CEP: Final = ("78900000", "78999999")  # the one gap in the ranges of the states, ends included

OLDEST_YEARS: Final = 120


class QualityWarning(LabelledEnum):
    """A value that is valid and yet doubtful, in a file of clients or among those that are registered."""

    AREA_CODE_UNKNOWN = "AREA_CODE_UNKNOWN", "phoneNumber starts with an area code that is not in use"
    CEP_UNASSIGNED = "CEP_UNASSIGNED", "zipCode lies in a range that is not assigned"
    BIRTHDATE_IN_FUTURE = "BIRTHDATE_IN_FUTURE", "birthdate lies in the future"
    BIRTHDATE_TOO_OLD = "BIRTHDATE_TOO_OLD", f"birthdate lies more than {OLDEST_YEARS} years ago"
    MISREAD = "MISREAD", "a name or an address has lost its accents, or was read in another encoding"
    NUMBER_IS_DATE = "NUMBER_IS_DATE", "a date in the place of a number; a spreadsheet may have made it of 3-5"
    NUMBER_ROUNDED = "NUMBER_ROUNDED", "a number in scientific notation; its last digits may be lost"
    OTHER_VALUES = (
        "OTHER_VALUES",
        "skipped with other values than the same client was registered with; they were not taken over",
    )
    CPF_SHAPE = "CPF_SHAPE", "the CPF is not 11 digits"
    INSTALLATION_LENGTH = (
        "INSTALLATION_LENGTH",
        "the installation number has another length than the contract allows",
    )
    NO_EMAIL = "NO_EMAIL", "no e-mail address"
    NO_PHONE = "NO_PHONE", "no phone number"
    NO_SALE = "NO_SALE", "no sale names this client"


def oldest_birthdate(today: date) -> date:
    """Return the first day that is not more than ``OLDEST_YEARS`` ago."""
    year = today.year - OLDEST_YEARS
    return date(year, 2, 28) if (today.month, today.day) == (2, 29) else today.replace(year=year)


YES: Final = frozenset({"true", "1", "yes", "sim", "s", "verdadeiro"})
NO: Final = frozenset({"false", "0", "no", "não", "nao", "n", "falso"})

DAY_FIRST: Final = re.compile(r"^([0-9]{2})/([0-9]{2})/([0-9]{4})")  # dates with slashes are day first, always


def is_possible_sale_id(sale_id: str) -> bool:
    """Tell whether a sale can have this id: one that no database can store is not looked up."""
    return 0 < len(sale_id) <= SALE_ID_MAX and not fields.UNSTORABLE.search(sale_id)


def _check_client_id(value: Any) -> UUID:
    try:
        return UUID(fields.required_text(value))
    except ValueError:
        raise fields.invalid("Must be the UUID that the registration answered, or empty") from None


def _check_flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = fields.required_text(value).lower()
    if text not in YES | NO:
        raise fields.invalid("Must be true or false")
    return text in YES


_FARTHEST: Final = timedelta(hours=16)  # PostgreSQL takes only offsets below this one


def _check_moment(value: Any) -> datetime:
    text = fields.required_text(value)
    try:
        moment = datetime.fromisoformat(DAY_FIRST.sub(r"\3-\2-\1", text))
        if abs(moment.utcoffset() or timedelta()) >= _FARTHEST:
            raise ValueError(text)
        return moment
    except ValueError:
        raise fields.invalid("Must be a time such as 2026-11-20T18:00:00-03:00") from None


SaleId = Annotated[str, Field(max_length=SALE_ID_MAX), fields.NotBlank]


class SaleRecord(fields.RequestModel):
    """One sale; ``partner``, ``client_id`` and ``completed_at`` may be absent."""

    sale_id: SaleId
    client_id: Annotated[UUID | None, fields.optional(_check_client_id)] = None
    utility_group: fields.RequiredText
    is_client_financial_responsible: Annotated[bool, BeforeValidator(_check_flag)]
    created_at: Annotated[datetime, BeforeValidator(_check_moment)]
    partner: fields.OptionalText = None
    completed_at: Annotated[datetime | None, fields.optional(_check_moment)] = None


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

Answer = Annotated[AnswerKind, fields.NotBlank]

_NEEDED: Final = {"until": {AnswerKind.WILL_COME}, "text": {AnswerKind.DISPUTED, AnswerKind.WAIVER_ASKED}}
"""The answers that need each field."""


class FindingAnswer(fields.RequestModel):
    """A partner's answer to one finding of its sales."""

    answer: Answer
    until: Annotated[
        fields.Birthdate | None,
        Field(None, validate_default=True, description="YYYY-MM-DD: the day by which it comes, for `willCome`."),
    ]
    text: Annotated[
        fields.OptionalText,
        Field(None, validate_default=True, description="Why, for `disputed` and `waiverAsked`."),
    ]

    @field_validator("until", "text", mode="after")
    @classmethod
    def _is_there(cls, value: Any, info: ValidationInfo) -> Any:
        if value is None and info.data.get("answer") in _NEEDED[info.field_name or ""]:
            raise fields.invalid(fields.REQUIRED)
        return value
