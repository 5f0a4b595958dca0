"""Time a piece of work."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """The seconds that something takes, and its answer."""
    started = time.perf_counter()
    answer = work()
    return time.perf_counter() - started, answer
