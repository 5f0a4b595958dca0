"""Data-quality warnings: values that the contract accepts and that are probably wrong."""

from datetime import date
from typing import Final

from toolkit.domain.worded import Worded

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


class QualityWarning(Worded):
    """A value that is valid and yet doubtful."""

    AREA_CODE_UNKNOWN = "AREA_CODE_UNKNOWN", "phoneNumber starts with an area code that is not in use"
    CEP_UNASSIGNED = "CEP_UNASSIGNED", "zipCode lies in a range that is not assigned"
    BIRTHDATE_IN_FUTURE = "BIRTHDATE_IN_FUTURE", "birthdate lies in the future"
    BIRTHDATE_TOO_OLD = "BIRTHDATE_TOO_OLD", f"birthdate lies more than {OLDEST_YEARS} years ago"


def oldest_birthdate(today: date) -> date:
    """Return the first day that is not more than ``OLDEST_YEARS`` ago."""
    year = today.year - OLDEST_YEARS
    return date(year, 2, 28) if (today.month, today.day) == (2, 29) else today.replace(year=year)
