"""Deadlines of findings in business days of Brazil, by code and utility group, and the clock."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from toolkit.contract.codes import CODES

if TYPE_CHECKING:
    from holidays import HolidayBase


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The business days that each finding has, counted from the day on which it was last opened.

    ``own`` overrides the catalogue: by code and group (``MISSING_POV/D``), else by code (``MISSING_POV``).
    """

    timezone: ZoneInfo
    own: Mapping[str, int] = field(default_factory=dict)

    def days(self, code: str, group: str | None) -> int:
        """Return the business days that a finding of this code has for a sale of this group."""
        catalogued = CODES[code].deadline
        assert catalogued is not None, f"{code} is the code of no finding"
        return self.own.get(f"{code}/{group}", self.own.get(code, catalogued))

    def day_of(self, moment: datetime) -> date:
        """Return the calendar day of a moment in the time zone."""
        return moment.astimezone(self.timezone).date()


def is_business_day(day: date) -> bool:
    """Tell whether it is a day from Monday to Friday and no national holiday of Brazil."""
    return _calendar().is_working_day(day)


@lru_cache(maxsize=1)
def _calendar() -> "HolidayBase":
    import holidays  # an extra, and slow to load

    return holidays.country_holidays("BR")


Clock = Callable[[], datetime]
"""Returns the present time as an aware ``datetime``."""


def wall_clock() -> datetime:
    """Return the time of this machine."""
    return datetime.now(UTC)
