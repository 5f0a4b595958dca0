"""Time a piece of work, and print a line about it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Timed(Generic[T]):
    """The time that something took, by the clock and of the processors, and its answer."""

    seconds: float
    cpu: float
    answer: T


def timed(work: Callable[[], T], elsewhere: Callable[[], float] = lambda: 0.0) -> Timed[T]:
    """Do the work; its CPU seconds are those of this process, its ended children, and a server elsewhere."""
    started, before = time.perf_counter(), sum(os.times()[:4]) + elsewhere()
    answer = work()
    return Timed(time.perf_counter() - started, sum(os.times()[:4]) + elsewhere() - before, answer)


def line(name: str, seconds: float, count: int, remark: str = "") -> None:
    """Print what took so many seconds, and how many of ``count`` it did in each."""
    print(f"{name:46}{seconds:>8.2f}{count / seconds:>12,.0f}  {remark}", flush=True)
