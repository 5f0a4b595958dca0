"""The rules for single fields, each written once, as types that pydantic models are made of, and the request body.

Text is trimmed before it is judged. The reasons are written for the person who has to correct the
value; they never repeat the value itself, which may be personal data.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Annotated, Any, Final, TypeVar

from email_validator import EmailNotValidError, validate_email
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails
from validate_docbr import CPF

from toolkit.contract.people import person
from toolkit.errors import InvalidField, InvalidFields, ToolkitError
from toolkit.message import Message

TRIMMED: Final = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u200b"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""Characters cut from both ends of a text: Unicode white space, zero-width space, byte order mark."""

UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")  # NUL and unpaired surrogates, which no database stores
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # never valid inside a text

NOT_IN_TEXT: Final = r"\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Control characters, and those that show a text in another order or on two lines, so that two look the same."""
MISLEADING: Final = re.compile(rf"[{NOT_IN_TEXT}\ud800-\udfff]")
NOT_MISLEADING: Final = "must not contain control or text-direction characters"

CPF_SHAPE: Final = re.compile(r"[0-9]{11}|[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}")
CEP_SHAPE: Final = re.compile(r"[0-9]{5}-?[0-9]{3}")
PHONE_SHAPE: Final = re.compile(r"[0-9]{11}")
DATE_SHAPE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

LOWEST_CEP: Final = "01000000"
TEXT_MAX: Final = 255  # characters in a text for which the contract states no longest length
NEIGHBORHOOD_MIN: Final = 3
INSTALLATION_MIN: Final = 7
INSTALLATION_MAX: Final = 11

REQUIRED: Final = Message("Required")  # the contract's reason for a missing required field

_cpf = CPF()


def invalid(reason: str, *values: object) -> ValueError:
    """Return an error of a validator whose reason becomes that of the field."""
    return ValueError(Message(reason, *values))


def reason_of(detail: ErrorDetails) -> str:
    """Return one error of pydantic's as a message: our own reason, else what its type says was expected."""
    context = detail.get("ctx", {})
    if isinstance(own := context.get("error"), ValueError) and own.args and isinstance(own.args[0], Message):
        return own.args[0]
    kind = detail["type"]
    expected = _EXPECTED.get(kind) or _EXPECTED.get(kind.partition("_")[0])
    if expected is not None:
        return expected
    if "expected" in context:
        return Message("Must be one of {}", str(context["expected"]).replace(" or ", ", ").replace("'", ""))
    return Message(_BOUNDS[kind], *context.values()) if kind in _BOUNDS else Message("Is not what is wanted here")


_EXPECTED: Final = {
    "missing": REQUIRED,
    "extra_forbidden": Message("is not known here"),
    "string_pattern_mismatch": Message("Has characters that are not allowed here, or is too long"),
    "string_type": Message("Must be a string"),
    **dict.fromkeys(("list", "tuple"), Message("Must be a list")),
    **dict.fromkeys(("dict", "model"), Message("Must be a table")),
    "int": Message("Must be a whole number"),
    "bool": Message("Must be true or false"),
    "date": Message("Must be a date"),
    "uuid": Message("Must be an id"),
}
_BOUNDS: Final = {
    "greater_than_equal": "Must be at least {}",
    "less_than_equal": "Must be at most {}",
    "string_too_short": "Must have at least {} characters",
    "string_too_long": "Must have at most {} characters",
    "too_short": "Must not be empty",
}
"""What each type of pydantic's errors, or its first word, says was expected, and what its bounds are."""


def _text(value: Any) -> str:
    if value is None:
        raise invalid(REQUIRED)
    if isinstance(value, ValueError):  # whoever read a file found the cell wrong
        raise value
    if not isinstance(value, str):
        raise invalid("Must be a string")
    trimmed = value.strip(TRIMMED)
    if _CONTROL.search(trimmed):
        raise invalid("Must not contain control characters")
    if MISLEADING.search(trimmed):
        raise invalid("Must not contain text-direction characters")
    return trimmed


def required_text(value: Any) -> str:
    """Return the trimmed text of a required field, or the reason why it is none."""
    trimmed = _text(value)
    if not trimmed:
        raise invalid("Must not be empty")
    return trimmed


def optional(check: Callable[[Any], object]) -> BeforeValidator:
    """Return what checks the text of an optional field; blank is absent."""
    return BeforeValidator(lambda value: None if value is None or not _text(value) else check(value))


def _check_cpf(value: Any) -> str:
    text = required_text(value)
    if not CPF_SHAPE.fullmatch(text):
        raise invalid("Must be a CPF: 11 digits, or 000.000.000-00")
    digits = text.replace(".", "").replace("-", "")
    if not _cpf.validate(digits):
        raise invalid("Must be a valid CPF: the check digits do not fit")
    return digits


def _check_cep(value: Any) -> str:
    text = required_text(value)
    if not CEP_SHAPE.fullmatch(text):
        raise invalid("Must be a postal code (CEP): 8 digits, or 00000-000")
    digits = text.replace("-", "")
    if digits < LOWEST_CEP:
        raise invalid("Must be a valid postal code (CEP): none is below 01000-000")
    return digits


def _check_phone(value: Any) -> str:
    text = required_text(value)
    if not PHONE_SHAPE.fullmatch(text):
        raise invalid("Must have 11 digits: area code (2) and number (9)")
    return text


def _check_email(text: str) -> str:
    try:
        return validate_email(text, check_deliverability=False).normalized
    except EmailNotValidError:
        raise invalid("Must be a valid e-mail address") from None


def check_date(value: Any) -> date:
    """Return a day, also of its text, or the reason why it is none."""
    if isinstance(value, date):
        return value
    text = required_text(value)
    if not DATE_SHAPE.fullmatch(text):
        raise invalid("Must be a date written YYYY-MM-DD")
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise invalid("Must be a date that exists, written YYYY-MM-DD") from None


CONSUMER_UNIT_DIGITS: Final = 15
_CONSUMER_UNIT: Final = re.compile(f"[0-9]{{{CONSUMER_UNIT_DIGITS}}}")
"""The number of a consumer unit on bills since January 2026 (REN ANEEL 1.095/2024)."""


def _check_installation(value: Any) -> str:
    text = required_text(value)
    if _CONSUMER_UNIT.fullmatch(text):
        raise invalid(
            "Holds the consumer unit's number of {} digits; the installation number of {} to {} characters is "
            "wanted, which the bill shows beside it",
            CONSUMER_UNIT_DIGITS,
            INSTALLATION_MIN,
            INSTALLATION_MAX,
        )
    if not INSTALLATION_MIN <= len(text) <= INSTALLATION_MAX:
        raise invalid("Must have {} to {} characters, as on the bill", INSTALLATION_MIN, INSTALLATION_MAX)
    return text


NotBlank: Final = BeforeValidator(required_text)
_Text = Annotated[str, Field(max_length=TEXT_MAX)]
RequiredText = Annotated[_Text, NotBlank, Field(description=f"Not blank; trimmed; at most {TEXT_MAX} characters.")]
OptionalText = Annotated[
    _Text | None,
    optional(required_text),
    Field(description=f"Blank counts as absent; at most {TEXT_MAX} characters."),
]
Cpf = Annotated[str, BeforeValidator(_check_cpf), Field(description="Valid check digits; 11 digits, or masked.")]
"""A valid CPF, kept as 11 digits."""
Cep = Annotated[
    str, BeforeValidator(_check_cep), Field(description="8 digits, not below 01000-000; - may follow the fifth.")
]
"""A valid postal code, kept as 8 digits."""
Phone = Annotated[str | None, optional(_check_phone), Field(description="11 digits: area code and number.")]
# Long ones are not looked into: to normalise 30,000 combining marks halts all requests for a second.
Email = Annotated[
    Annotated[_Text, AfterValidator(_check_email)] | None,
    optional(required_text),
    Field(description="A valid e-mail address."),
]
Birthdate = Annotated[date, BeforeValidator(check_date), Field(description="A real date, written YYYY-MM-DD.")]
Neighborhood = Annotated[
    _Text,
    Field(min_length=NEIGHBORHOOD_MIN, description=f"{NEIGHBORHOOD_MIN} to {TEXT_MAX} characters."),
    NotBlank,
]
InstallationNumber = Annotated[
    str,
    BeforeValidator(_check_installation),
    Field(description=f"{INSTALLATION_MIN} to {INSTALLATION_MAX} characters."),
]

M = TypeVar("M", bound="RequestModel")

_OF_OBJECTS = {"model_type", "model_attributes_type", "dict_type"}


class RequestModel(BaseModel):
    """A request body: contract names outside, Python names inside, unknown fields ignored."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True, hide_input_in_errors=True
    )


def parse(model: type[M], body: Mapping[str, Any]) -> M:
    """Validate ``body`` (contract names) as ``model``.

    Raises:
        InvalidFields: with every invalid field at once, nested names dotted (``address.zipCode``).
    """
    try:
        return model.model_validate(body, by_alias=True, by_name=False)
    except ValidationError as error:
        raise InvalidFields(invalid_fields(error)) from None


def invalid_fields(error: ValidationError) -> list[InvalidField]:
    """Return the contract's reading of a pydantic error: one entry per field, none with its value."""
    found: dict[str, InvalidField] = {}
    for detail in error.errors(include_url=False):
        name = ".".join(str(part) for part in detail["loc"])
        no_object = detail["type"] in _OF_OBJECTS
        absent = detail["type"] == "missing" or (no_object and detail["input"] is None)
        reason = REQUIRED if absent else Message("Must be an object") if no_object else reason_of(detail)
        found.setdefault(name, InvalidField(name, reason))
    return list(found.values())


def pick_camel(value: object, *names: str) -> dict[str, Any]:
    """Return these attributes of a value by their names in a document: ``sale_id`` as ``saleId``."""
    return {to_camel(name): getattr(value, name) for name in names}


def stated(refused: type[ToolkitError], reason: str, *people: str) -> tuple[str, ...]:
    """Return a reason and the names of one person or of two, trimmed, as they are kept with what people decide.

    Raises:
        ToolkitError: ``refused``, where a text is missing or misleads, or names are not Latin or look alike.
    """
    texts = tuple(text.strip(TRIMMED) for text in (reason, *people))
    names = [person(name) for name in texts[1:]]
    if not all((texts[0], *names)):
        raise refused("Give a reason, and the name of each person, in Latin letters.")
    if MISLEADING.search("".join(texts)):
        raise refused("The reason and the names {}.", NOT_MISLEADING)
    if len(set(names)) < len(names):
        raise refused("It takes two people, and these two names look alike: somebody else has to approve.")
    return texts
