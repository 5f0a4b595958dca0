"""The clock that operations are given, so that tests can set it."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""Returns the present time as an aware ``datetime``."""


def wall_clock() -> datetime:
    """Return the time of this machine."""
    return datetime.now(UTC)
