"""People and partners: names compared for the four-eyes rule, masks for personal data, texts that look secret."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from urllib.parse import unquote, urlsplit

_LATIN: Final = str.maketrans({"æ": "ae", "ð": "d", "ø": "o", "þ": "th", "đ": "d", "ł": "l", "œ": "oe"})
"""Latin letters that are no letter with an accent."""

_AS_SHOWN: Final = str.maketrans("01i|", "olll")  # characters that look like a letter


def person(name: str) -> str:
    """Return the name as it looks: without case, accents, spaces and punctuation, look-alikes made one.

    Letters of other alphabets look like Latin ones: a name that holds any cannot be compared, and
    the answer is empty.
    """
    letters = unicodedata.normalize("NFKD", name).casefold().translate(_LATIN).translate(_AS_SHOWN)
    shown = "".join(one for one in letters if unicodedata.category(one)[0] in "LN")
    return shown.replace("rn", "m").replace("vv", "w") if shown.isascii() else ""


NAME_MAX: Final = 200  # characters in the name of a subject or of a partner

_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control and text-direction characters, halves of characters, line separators, and what is not assigned."""


class TokenScope(StrEnum):
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

    ``partner`` is the one that the token names, else the subject of the token.
    """

    subject: str
    partner: str
    unassigned: UnassignedSales
    open_forms: int  # records of one sale and type that may have valid upload credentials at the same time


def is_plain_name(name: str) -> bool:
    """Tell whether a subject or partner may have this name: all of it is visible, and it can be stored."""
    return (
        bool(name.strip())
        and len(name) <= NAME_MAX
        and not any(unicodedata.category(character) in _INVISIBLE for character in name)
    )


def mask_cpf(cpf: str) -> str:
    """``***.456.789-**``, the usual mask, for the 11 digits of a CPF; anything else is hidden whole."""
    if len(cpf) != 11 or not (cpf.isascii() and cpf.isdigit()):
        return "***"
    return f"***.{cpf[3:6]}.{cpf[6:9]}-**"


_SECRET_NAME: Final = re.compile(
    r"(?:^|[_-])(?:passwords?|passwd|senhas?|secrets?|tokens?|jwt|api[_-]?keys?|access[_-]?keys?|private[_-]?keys?)"
    r"(?:[_-]|$)",
    re.IGNORECASE,
)
_SECRET_VALUE: Final = re.compile(
    r"://[^/@\s]+:[^/@\s]+@"  # an address with user and password
    r"|\beyJ[\w-]+\.[\w-]+\.[\w-]*"  # a bearer token
    r"|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
)


def looks_secret(name: str, value: Any) -> bool:
    """Tell whether a parameter's name says that it is a secret, or a text anywhere in its value does."""
    if isinstance(value, dict):
        return any(looks_secret(str(key), item) for key, item in value.items()) or looks_secret(name, "")
    if isinstance(value, (list, tuple)):
        return any(looks_secret(name, item) for item in value)
    return bool(_SECRET_NAME.search(name) or (isinstance(value, str) and _SECRET_VALUE.search(value)))


_SHORTEST: Final = 6  # characters of a secret; a shorter one stands in many texts by chance


def secret_values(environ: Mapping[str, str]) -> list[str]:
    """Return the secrets of an environment, and the passwords of the addresses in it; the longest first."""
    found = set()
    for name, value in environ.items():
        if looks_secret(name, value) and not name.endswith(("_FILE", "_PUBLIC_KEY")):
            try:
                password = urlsplit(value).password or ""
            except ValueError:  # no address
                password = ""
            found |= {value, password, unquote(password)}
    return sorted((secret for secret in found if len(secret) >= _SHORTEST), key=len, reverse=True)
