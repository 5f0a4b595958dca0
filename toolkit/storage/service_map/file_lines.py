"""Find the line of a mapping file that a place such as ``sales.columns.id`` stands in, and its comment."""

import re
from collections.abc import Mapping
from typing import Final

Lines = Mapping[str, tuple[int, str]]
"""The number of each line with a key, and the comment at its end, by its place."""

NO_LINES: Final[Lines] = {}

_SECTION: Final = re.compile(r"\s*\[\s*([\w.]+)\s*\]")
_KEY: Final = re.compile(r"\s*(\w+)\s*=")


def lines_of(text: str) -> Lines:
    """Return the lines of a mapping file."""
    found: dict[str, tuple[int, str]] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        comment = line.rpartition("  # ")[2] if "  # " in line else ""
        if header := _SECTION.match(line):
            section = header[1] + "."
            found[header[1]] = (number, comment)
        elif key := _KEY.match(line):
            found[section + key[1]] = (number, comment)
    return found


def at_line(lines: Lines, place: str) -> str:
    """Return ``line 7, `` for a place, or for what holds it; nothing where the file has no such line."""
    while place and place not in lines:
        place = place.rpartition(".")[0]
    return f"line {lines[place][0]}, " if place else ""
