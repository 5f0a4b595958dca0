"""The jobs, one module each: arguments in, values out, no globals.

Operations are given their database, bucket and clock; only ``toolkit.entrypoints`` assembles them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

Clock = Callable[[], datetime]
"""Tells the moment as an aware ``datetime``; handed in, so that tests can set it."""

__all__ = ["Clock"]
