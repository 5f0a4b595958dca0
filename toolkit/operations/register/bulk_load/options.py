"""The analyst's options for a load, and the texts of its repairs and warnings."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from toolkit.domain.documents import named
from toolkit.domain.quality import WARNING_TEXTS, QualityWarning
from toolkit.language import ENGLISH, Language


class OnDuplicate(StrEnum):
    """The treatment of a client who is registered already (same CPF, installation and dealership number)."""

    SKIP = "skip"
    """Leave the client alone and list the row with the clientId."""
    REJECT = "reject"
    """Put the row among the rejected ones, with the clientId in the reason."""
    REGISTER = "register"
    """Register the client again, as every ``POST /clients`` does."""


class Repair(StrEnum):
    """A change to a cell that certainly gives the value that was meant."""

    WHITE_SPACE = "white_space"
    CPF_MASK = "cpf_mask"
    CPF_ZEROS = "cpf_zeros"
    CEP_MASK = "cep_mask"
    CEP_ZEROS = "cep_zeros"
    PHONE_MASK = "phone_mask"
    PHONE_COUNTRY_CODE = "phone_country_code"
    DATE_DAY_FIRST = "date_day_first"
    DATE_MIDNIGHT = "date_midnight"
    EXCEL_DATE = "excel_date"


REPAIR_TEXTS: Final = {
    Repair.WHITE_SPACE: "white space around a cell removed",
    Repair.CPF_MASK: "mask of a CPF removed",
    Repair.CPF_ZEROS: "leading zeros of a CPF restored",
    Repair.CEP_MASK: "mask of a CEP removed",
    Repair.CEP_ZEROS: "leading zero of a CEP restored",
    Repair.PHONE_MASK: "mask of a phone number removed",
    Repair.PHONE_COUNTRY_CODE: "country code 55 of a phone number removed",
    Repair.DATE_DAY_FIRST: "date written dd/mm/yyyy rewritten",
    Repair.DATE_MIDNIGHT: "midnight after a date removed",
    Repair.EXCEL_DATE: "Excel's day number rewritten as a date",
}

NUMBER_ROUNDED: Final = "NUMBER_ROUNDED"
"""A warning of our own: a spreadsheet shows a long number as 1,23E+10, and its last digits may be gone."""

WARNINGS: Final[Mapping[str, str]] = {
    **{str(kind): text for kind, text in WARNING_TEXTS.items()},
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
