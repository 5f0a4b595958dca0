"""People and partners: names compared for the four-eyes rule, masks for personal data, texts that look secret.

The table of letters is made of Unicode's data on confusable characters (UTS 39), for Latin letters and digits.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from urllib.parse import unquote, urlsplit

_LOOK_ALIKE: Final = {
    "2": "ƨϩ\u14bf\u2781\ua645\ua6ef\ua75b",
    "3": "ȝɜʒзӡ\u2782\u2ccd\ua76b\U000118ca\U00016f3b\U0001d206",
    "4": "\u13ce\u2783\U000118cf",
    "5": "ƽ\u2784\U000118db",
    "6": "б\u13ee\u2785\u2cd3\U000118d5",
    "7": "\u2786\U000104fa\U000118c6\U0001d212",
    "8": "ȣ\u09ea\u0a6a\u0b03\u2787\U0001031a",
    "9": "\u09ed\u0a67\u0b68\u0d6d\u2788\u2ccb\ua76f\U000118cc\U000118d6",
    "a": "ᴀɑαа\u13aa\u15c5\u237a\ua4ee\U000102a0\U00016f40",
    "b": "ʙƅβвь\u13cf\u13f4\u1472\u15af\u15f7\ua4d0\ua7b5\U00010282\U000102a1\U00010301",
    "c": "©с\u13df\u1d04\u2ca5\ua4da\U000102a2\U00010302\U0001043d\U0001051c\U000118e9\U000118f2\U0001f74c",
    "d": "ᴅԁ\u13a0\u13e7\u146f\u15de\u15ea\ua4d2\ua4d3",
    "e": "ᴇεеҽ\u13ac\u212e\u22ff\u2d39\ua4f0\uab32\U00010286\U000118ce",
    "f": "\ua730ϝք\u15b4\u1e9d\ua4dd\ua799\uab35\U00010287\U000102a5\U00010525\U000118c2\U0001d213",
    "g": "ɢƍɡԍց\u13c0\u13f3\u1d83\ua4d6",
    "h": "ʜнһհ\u13bb\u13c2\u157c\u2c8f\ua4e7\U000102cf",
    "j": "ᴊʝϳј\u13ab\u148d\ua4d9",
    "k": "ᴋκк\u13e6\u16d5\u2c95\ua4d7\U00010518",
    "l": (
        "ʟ|ıǀɩɪιіӏ\u06f1\u13a5\u13de\u14aa\u16c1\u18f3\u2223\u2373\u23fd\u2502\u2780\u2c93\u2cd1\u2d4f\ua4e1"
        "\ua4f2\ua647\U0001028a\U00010309\U00010320\U00010443\U00010526\U000118c3\U000118d2\U00016f16"
        "\U00016f28\U0001d22a"
    ),
    "m": "ᴍμϻм\u13b7\u15f0\u16d6\u2c99\ua4df\uab51\U000102b0\U00010311",
    "n": "ɴηпɲոռ\u2c9b\ua4e0\U00010513",
    "o": (
        "οσоօ\u06f5\u0966\u09e6\u0a66\u0ae6\u0b20\u0b66\u0be6\u0c02\u0c66\u0c82\u0ce6\u0d02\u0d20\u0d66\u0d82"
        "\u0e50\u0ed0\u101d\u1040\u10ff\u12d0\u1d0f\u1d11\u2c9f\u2d54\u3007\ua4f3\uab3d\U00010292\U000102ab"
        "\U0001042c\U000104ea\U00010516\U000114d0\U000118c8\U000118d7\U000118e0\U0001f10d"
    ),
    "p": "ᴘρр\u13e2\u146d\u18d6\u2117\u2374\u2ca3\ua4d1\U00010295",
    "q": "ԛգզ\u2d55",
    "r": "®ʀг\u13a1\u13b1\u13d2\u1587\u18f4\u1d26\u2c85\ua4e3\uab47\uab48\U000104dc\U00016f35\U0001d216",
    "s": "ѕտ\u13d5\u13da\u18f5\ua4e2\ua731\U00010296\U00010448\U000118c1\U00016f3a",
    "t": "ᴛƫτт\u13a2\u22a4\u27d9\u2ca7\ua4d4\U00010297\U000102b1\U00010315\U000118dc\U00016f0a\U0001f768",
    "u": "ʋυս\u1200\u144c\u1d1c\u222a\u22c3\ua4f4\ua79f\uab4e\uab52\U000104f6\U000118d8\U00016f42",
    "v": (
        "νѵ\u06f7\u13d9\u142f\u1d20\u2228\u22c1\u2d38\ua4e6\ua6df\U0001051d\U00011706\U000118c0\U00016f08"
        "\U0001d20d"
    ),
    "w": "ɯѡԝա\u13b3\u13d4\u1d21\ua4ea\U0001170a\U0001170e\U0001170f\U000118e6\U000118ef",
    "x": (
        "×χх\u1541\u157d\u166d\u166e\u16b7\u2573\u292b\u292c\u2a2f\u2cad\u2d5d\ua4eb\uab53\U00010290"
        "\U000102b4\U00010317\U00010322\U00010527\U000118ec"
    ),
    "y": "ɣʏγуү\u10e7\u13a9\u13bd\u1d8c\u1eff\u2ca9\ua4ec\uab5a\U000102b2\U000118c4\U00016f43",
    "z": "ζ\u13c3\u1646\u1d22\ua4dc\U000102f5\U000118c9\U000118e5",
}
"""For each letter or digit the characters, in small letters and without accents, that look like it."""

_AS_SHOWN: Final = str.maketrans(
    {other: shown for shown, others in _LOOK_ALIKE.items() for other in others} | {"0": "o", "1": "l", "i": "l"}
)


_CAPITALS: Final = str.maketrans("\u0397\u039d", "HN")
"""Greek capitals that look like another letter than their small ones do."""

_BLANK: Final = dict.fromkeys(map(ord, "\u115f\u1160\u2800"))
"""Letters and signs that show nothing."""


def person(name: str) -> str:
    """Return the name as it looks: without case, accents and spaces, look-alikes made one; empty if invisible."""
    capital = unicodedata.normalize("NFKC", name).translate(_CAPITALS)
    folded = unicodedata.normalize("NFKD", capital.casefold()).translate(_BLANK)
    shown = "".join(one for one in folded if not one.isspace() and unicodedata.category(one) not in _OVERLOOKED)
    return shown.translate(_AS_SHOWN).replace("rn", "m").replace("vv", "w")


def same_person(one: str, other: str) -> bool:
    """Tell whether two names are spellings of one, or look like one to a reader."""
    return person(one) == person(other)


_OVERLOOKED: Final = frozenset({"Cf", "Mn", "Me"})


NAME_MAX: Final = 200
"""Characters in the name of a subject or of a partner."""

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

    partner: str
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


@dataclass(frozen=True, slots=True)
class Unmasking:
    """A request to see personal data: the account that is signed in and its reason, for the custody log."""

    account: str
    reason: str


def mask_cpf(cpf: str) -> str:
    """``***.456.789-**``, the usual mask, for the 11 digits of a CPF; anything else is hidden whole."""
    if len(cpf) != 11 or not (cpf.isascii() and cpf.isdigit()):
        return "***"
    return f"***.{cpf[3:6]}.{cpf[6:9]}-**"


def mask_text(text: str) -> str:
    """Return the first character and three dots, so that a person can tell rows apart and no more."""
    return f"{text[:1]}..." if text else ""


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


_SHORTEST: Final = 6
"""Characters of a secret; a shorter one stands in many texts by chance."""


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
