"""Pause between attempts: twice as long each time, randomly spread, and as long as the other side asks."""

import random
from collections.abc import Iterator
from typing import Final

import urllib3

ATTEMPTS: Final = 6
"""The largest number of attempts; the pauses between them add up to about half a minute."""

FIRST_PAUSE: Final = 1.0
"""Seconds before the second attempt."""

LONGEST_PAUSE: Final = 30.0


def pauses() -> Iterator[float]:
    """Yield the seconds before each further attempt."""
    seconds = FIRST_PAUSE
    for _ in range(ATTEMPTS - 1):
        yield seconds * random.uniform(0.5, 1)  # noqa: S311  # spreads retries, no secret
        seconds = min(seconds * 2, LONGEST_PAUSE)


def seconds_asked(response: urllib3.BaseHTTPResponse) -> float:
    """Return the seconds that an answer asks to wait (``Retry-After``), ``LONGEST_PAUSE`` at most, else 0."""
    asked = response.headers.get("Retry-After", "")
    return min(float(asked), LONGEST_PAUSE) if asked.isascii() and asked.isdigit() else 0
