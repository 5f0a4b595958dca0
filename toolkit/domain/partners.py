"""Partners that subjects of tokens act for, and the scopes of tokens."""

import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

NAME_MAX: Final = 200
"""Characters in the name of a subject or of a partner."""

_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control and text-direction characters, halves of characters, line separators, and what is not assigned."""


class Scope(StrEnum):
    """The purposes that a token may be used for."""

    REGISTER_CLIENTS = "clients:register"
    REQUEST_EVIDENCE = "evidence:request"


class UnassignedSales(StrEnum):
    """The partners that may ask for a sale that names no partner."""

    ANY = "any"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class PartnerAccess:
    """The limits of a partner's request for upload credentials.

    ``partner`` is the one that the token names. Where it names none, the table of partners and subjects decides,
    and for a subject that the table has never known, the subject is the partner.
    """

    partner: str | None
    unassigned: UnassignedSales
    open_forms: int
    """Records of one sale and type that may have valid upload credentials at the same time."""


def is_plain_name(name: str) -> bool:
    """Tell whether a subject or partner may have this name: all of it is visible, and it can be stored."""
    return (
        bool(name.strip())
        and len(name) <= NAME_MAX
        and not any(unicodedata.category(character) in _INVISIBLE for character in name)
    )
