"""The analyst's options for a load, and the texts of its repairs and warnings."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from toolkit.domain.documents import named
from toolkit.domain.quality import QualityWarning
from toolkit.domain.worded import Worded
from toolkit.language import ENGLISH, Language


class OnDuplicate(StrEnum):
    """The treatment of a client who is registered already (same CPF, installation and dealership number)."""

    SKIP = "skip"
    """Leave the client alone and list the row with the clientId."""
    REJECT = "reject"
    """Put the row among the rejected ones, with the clientId in the reason."""
    REGISTER = "register"
    """Register the client again, as every ``POST /clients`` does."""


class Repair(Worded):
    """A change to a cell that certainly gives the value that was meant."""

    WHITE_SPACE = "white_space", "white space around a cell removed"
    CPF_MASK = "cpf_mask", "mask of a CPF removed"
    CPF_ZEROS = "cpf_zeros", "leading zeros of a CPF restored"
    CEP_MASK = "cep_mask", "mask of a CEP removed"
    CEP_ZEROS = "cep_zeros", "leading zero of a CEP restored"
    PHONE_MASK = "phone_mask", "mask of a phone number removed"
    PHONE_COUNTRY_CODE = "phone_country_code", "country code 55 of a phone number removed"
    DATE_DAY_FIRST = "date_day_first", "date written dd/mm/yyyy rewritten"
    DATE_MIDNIGHT = "date_midnight", "midnight after a date removed"
    EXCEL_DATE = "excel_date", "Excel's day number rewritten as a date"


NUMBER_ROUNDED: Final = "NUMBER_ROUNDED"
"""A warning of our own: a spreadsheet shows a long number as 1,23E+10, and its last digits may be gone."""

WARNINGS: Final[Mapping[str, str]] = {
    **{str(kind): kind.text for kind in QualityWarning},
    NUMBER_ROUNDED: "a number in scientific notation; its last digits may be lost",
}
"""All warnings of a load, with a text for people."""

WARNED_FIELD: Final[Mapping[str, str]] = {
    QualityWarning.AREA_CODE_UNKNOWN: "phoneNumber",
    QualityWarning.CEP_UNASSIGNED: "address.zipCode",
    QualityWarning.BIRTHDATE_IN_FUTURE: "birthdate",
    QualityWarning.BIRTHDATE_TOO_OLD: "birthdate",
}


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """The options for reading and judging the files of a load.

    ``headings`` maps headings of the file to field names of the contract, before those that are known.
    """

    strict: bool = False
    """Repair nothing: what the contract would not accept as it stands is rejected."""
    pad_cpf: bool = False
    """Give CPF and CEP back the zeros that they lost in a text cell or a CSV file."""
    on_duplicate: OnDuplicate = OnDuplicate.SKIP
    warnings_as_errors: bool = False
    """Reject rows with a data-quality warning."""
    headings: Mapping[str, str] = field(default_factory=dict)
    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None
    language: Language = ENGLISH
    """The language of the reasons in the workbook of rejected rows."""

    def deciding(self) -> dict[str, Any]:
        """Return the options that change what becomes of a row, as they are kept with a batch."""
        told = named(self, "strict", "pad_cpf", "warnings_as_errors", "encoding", "delimiter", "sheet")
        return told | {"onDuplicate": str(self.on_duplicate), "headings": dict(sorted(self.headings.items()))}

    def fingerprint(self, sha256: str) -> str:
        """Return the fingerprint of a file with these contents, loaded with these options."""
        document = json.dumps([sha256, self.deciding()], sort_keys=True)
        return hashlib.sha256(document.encode()).hexdigest()
