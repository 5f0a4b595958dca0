"""Enumerations whose members have a text for people."""

from enum import StrEnum
from typing import Self


class Worded(StrEnum):
    """An enumeration of codes; each member is written as its code and its ``text``."""

    text: str

    def __new__(cls, code: str, text: str = "") -> Self:
        """Make a member; the text is left out only where a member is looked up by its code."""
        member = str.__new__(cls, code)
        member._value_, member.text = code, text
        return member
