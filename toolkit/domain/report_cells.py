"""The name of the report and the lists in its cells, for those who write it and those who read it again."""

from typing import Final

REPORT: Final = "missing-evidence"
"""The name of the report's files without their suffix."""

SEPARATOR: Final = "|"
"""Between the items of a list in one cell."""


def items(joined: str) -> list[str]:
    """Return the items of a list in one cell; an empty cell is an empty list."""
    return joined.split(SEPARATOR) if joined else []
