"""The client: a person and the installation address (contract, "Client" and "Address"), and doubtful values."""

from datetime import date
from typing import Final

from pydantic import Field

from toolkit.contract.codes import LabelledEnum
from toolkit.contract.fields import (
    Birthdate,
    Cep,
    Cpf,
    Email,
    InstallationNumber,
    Neighborhood,
    OptionalText,
    Phone,
    RequestModel,
    RequiredText,
)


class Address(RequestModel):
    """The installation unit."""

    neighborhood: Neighborhood = Field(title="Neighbourhood")
    installation_number: InstallationNumber = Field(title="Number printed on the bill")
    address: RequiredText = Field(title="Street or avenue")
    address_number: RequiredText = Field(title="Street number")
    city: RequiredText = Field(title="City")
    zip_code: Cep = Field(title="Postal code (CEP)")


class Client(RequestModel):
    """A valid client, normalised: CPF, CEP and phone as digits, blank optional fields as ``None``."""

    external_id: OptionalText = Field(None, title="Partner tracking id")
    cpf: Cpf = Field(title="Brazilian taxpayer number")
    rg: OptionalText = Field(None, title="Identity document number")
    number_on_dealership: RequiredText = Field(title="Client code at the utility")
    enrollment: RequiredText = Field(title="Residence number")
    first_name: RequiredText = Field(title="Given name")
    last_name: RequiredText = Field(title="Family name")
    email: Email = Field(None, title="E-mail address")
    birthdate: Birthdate = Field(title="Date of birth")
    phone_number: Phone = Field(None, title="Telephone number")
    address: Address


AREA_CODES: Final = frozenset((
    "11", "12", "13", "14", "15", "16", "17", "18", "19", "21", "22", "24", "27", "28",
    "31", "32", "33", "34", "35", "37", "38", "41", "42", "43", "44", "45", "46", "47", "48", "49",
    "51", "53", "54", "55", "61", "62", "63", "64", "65", "66", "67", "68", "69",
    "71", "73", "74", "75", "77", "79", "81", "82", "83", "84", "85", "86", "87", "88", "89",
    "91", "92", "93", "94", "95", "96", "97", "98", "99",
))  # fmt: skip
"""Area codes (DDD) in use in Brazil."""

UNASSIGNED_CEP: Final = ("78900000", "78999999")
"""The one gap in the public ranges of the states, both ends included."""

OLDEST_YEARS: Final = 120


class QualityWarning(LabelledEnum):
    """A value that is valid and yet doubtful."""

    AREA_CODE_UNKNOWN = "AREA_CODE_UNKNOWN", "phoneNumber starts with an area code that is not in use"
    CEP_UNASSIGNED = "CEP_UNASSIGNED", "zipCode lies in a range that is not assigned"
    BIRTHDATE_IN_FUTURE = "BIRTHDATE_IN_FUTURE", "birthdate lies in the future"
    BIRTHDATE_TOO_OLD = "BIRTHDATE_TOO_OLD", f"birthdate lies more than {OLDEST_YEARS} years ago"


def oldest_birthdate(today: date) -> date:
    """Return the first day that is not more than ``OLDEST_YEARS`` ago."""
    year = today.year - OLDEST_YEARS
    return date(year, 2, 28) if (today.month, today.day) == (2, 29) else today.replace(year=year)
