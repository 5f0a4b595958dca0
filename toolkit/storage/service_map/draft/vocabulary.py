"""Read the meanings of the words that tables and columns are named by: ``words.toml`` holds them."""

import re
import tomllib
import unicodedata
from functools import cache
from pathlib import Path
from typing import Final

_WORDS: Final = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))

MEANINGS: Final = frozenset(_WORDS["meanings"]) - {""}
"""All tokens, which stand for words."""

_MEANT: Final = {word: token for token, listed in _WORDS["meanings"].items() for word in listed.split()}

COLUMN_WORDS: Final[dict[str, dict[str, list[str]]]] = {
    relation: {column: " ".join(named.split()).split(", ") for column, named in columns.items()}
    for relation, columns in _WORDS["columns"].items()
}
"""Names of each column as tokens, the surest first."""

FAMILIES: Final = {column: listed.split() for column, listed in _WORDS["families"].items()}
QUESTIONS: Final[dict[str, str]] = _WORDS["questions"]
WEIGHTS: Final[dict[str, dict[str, float]]] = _WORDS["weights"]

_JOINED: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+")


def words(name: str) -> tuple[str, ...]:
    """Return the words of a name, without case and accents, whatever parts them."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return tuple(part.lower() for part in _JOINED.split(plain) if part)


@cache
def tokens(name: str) -> tuple[str, ...]:
    """Return the meanings of the words in a name; words without meaning are left out."""
    return tuple(token for word in words(name) for token in _meant(word) if token)


def _meant(word: str) -> tuple[str, ...]:
    """Return what a word means; one such as ``deletedat`` lost its capitals where nobody quoted it."""
    known = _MEANT.get(word, _MEANT.get(word.removesuffix("s")))
    parts = None if known is not None else _UNQUOTED.fullmatch(word) or _UNQUOTED_FLAG.fullmatch(word)
    if parts is not None and {*parts.groups()} <= _MEANT.keys():
        return _MEANT[parts[1]], _MEANT[parts[2]]
    return (word if known is None else known,)


_UNQUOTED: Final = re.compile("(.{4,})(at|id|by|key|type|name|date|code|number|group|status|pays)")
_UNQUOTED_FLAG: Final = re.compile("(is|has)(.{4,})")


def spoken(name: str, comment: str) -> str:
    """Return what a comment calls a column or a table whose name has no known word; else nothing."""
    subjects = MEANINGS - _GENERAL
    head = _HEAD.split(comment.strip())[0]
    cryptic = set(tokens(name)) - MEANINGS and not set(tokens(name)) & subjects
    return head if cryptic and set(tokens(head)) & subjects else ""


_GENERAL: Final = {"code", "id", "uuid", "number", "date", "time", "at", "flag", "by"}
"""Tokens that say nothing without another one."""
_HEAD: Final = re.compile(r"\s*[:;=(,.\n]|(?<=s) d[aeo]s? ")
"""The end of a comment's first words; in a heading such as ``Arquivos da venda`` the first names the rows."""


TABLE_WORDS: Final = {
    "clients": ({"client"}, set[str]()),
    "addresses": ({"address", "installation"}, set[str]()),
    "sales": ({"sale"}, set[str]()),
    "evidences": ({"evidence"}, {"file", "document"}),
}
"""Tokens that name each relation's table: surely, and perhaps."""

GROUPS: Final = re.compile(
    r"(?:(?:utility|tarifa|tariff)?[ _-]*(?:group|grupo|grp|gr|g)?[ _-]*)([abcd])"
    r"|(?:group|grupo) +([abcd])(?: *[-–—:(].*)?",
    re.IGNORECASE,
)

LISTS: Final = {name: frozenset(listed.split()) for name, listed in _WORDS["lists"].items()}
"""Words that stand for one thing wherever they are, beside the meanings that they have in names."""

PAYER: Final = {"payer", "responsible", "financial"}
"""Tokens that name the one who pays."""
