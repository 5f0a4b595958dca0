"""Names of people who decide something, told apart for the four-eyes rule."""

from __future__ import annotations

import unicodedata


def person(name: str) -> str:
    """The name without what two spellings of it may differ in: case, white space, ways to write a character.

    Nor does a character that nobody sees, such as a zero-width space, make another person.
    """
    folded = unicodedata.normalize("NFKC", name).casefold()
    return "".join(one for one in folded if not one.isspace() and unicodedata.category(one) != "Cf")


def same_person(one: str, other: str) -> bool:
    """Tell whether two names are spellings of one."""
    return person(one) == person(other)
