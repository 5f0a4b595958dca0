"""A report: an audit's result, and how it is to be shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from zoneinfo import ZoneInfo

from toolkit.operations.audit import AuditResult

STEM: Final = "missing-evidence"
"""What every file of a report is called, before its format."""

MOMENTS: Final = ("createdAt", "completedAt", "oldestRequest")
"""The columns of the rows that hold times."""


@dataclass(frozen=True, slots=True)
class Report:
    """An audit's result in the making; each format is one module that writes it into one file."""

    result: AuditResult
    timezone: ZoneInfo
    """The zone that times are shown in."""
    formats: tuple[str, ...]
    """All formats that are written, so that one can point to another."""
