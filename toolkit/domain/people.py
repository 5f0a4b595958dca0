"""Compare the names of two people for the four-eyes rule."""

from toolkit.domain.confusables import skeleton


def person(name: str) -> str:
    """Return the name without case, accents and spaces, to compare spellings; empty where nothing is visible."""
    return skeleton(name)


def same_person(one: str, other: str) -> bool:
    """Tell whether two names are spellings of one, or look like one to a reader."""
    return person(one) == person(other)
