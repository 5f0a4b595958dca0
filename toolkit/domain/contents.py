"""Faults in the contents of an evidence file; a file with one does not count."""

from enum import StrEnum
from typing import Final


class ContentProblem(StrEnum):
    """The reason why a file is unusable though it may be of the right kind."""

    EMPTY = "EMPTY"
    DAMAGED = "DAMAGED"
    ENCRYPTED = "ENCRYPTED"
    TOO_SHORT = "TOO_SHORT"
    SILENT = "SILENT"


class ActivePart(StrEnum):
    """Properties of a document that are findings: it acts by itself, leads out, or shows nothing."""

    JAVASCRIPT = "JAVASCRIPT"
    ACTION = "ACTION"
    """It starts a program, sends a form or loads data."""
    ATTACHMENT = "ATTACHMENT"
    LINK = "LINK"
    """It leads to an address or to another file when somebody follows it."""
    BLANK = "BLANK"
    """Nothing can be seen on its pages."""
    UNCLEAR = "UNCLEAR"
    """Not all of the document could be looked at, or the recording not be decoded."""


SHORTEST_SECONDS: Final = 1.0
"""A recording that lasts less proves nothing."""


class GoneHow(StrEnum):
    """The way in which an object ended that had been seen."""

    OVERWRITTEN = "OVERWRITTEN"
    DELETE_MARKER = "DELETE_MARKER"
    """It was deleted in a versioned bucket, and can be restored."""
    DELETED = "DELETED"


class Coverage(StrEnum):
    """The depth to which a file was looked at: all of its bytes, its first ones, or none."""

    VERIFIED = "verified"
    FIRST_BYTES = "firstBytes"
    NEVER = "never"
    UNREADABLE = "unreadable"
