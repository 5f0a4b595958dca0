"""Deadlines of findings in business days of Brazil, by code and utility group, and the clock."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from dateutil.easter import easter

from toolkit.contract.codes import CODES

_FIXED: Final = ("01-01", "04-21", "05-01", "09-07", "10-12", "11-02", "11-15", "12-25")
"""The national holidays that fall on one day each year (Laws 662/1949 and 6,802/1980)."""

_FIXED_SINCE_2024: Final = (*_FIXED, "11-20")
"""These, and the Day of Zumbi and of Black Awareness (Law 14,759/2023)."""


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
    return day.weekday() < 5 and day not in _holidays(day.year)


@lru_cache
def _holidays(year: int) -> frozenset[date]:
    fixed = _FIXED if year < 2024 else _FIXED_SINCE_2024
    good_friday = easter(year) - timedelta(days=2)
    return frozenset([good_friday, *(date.fromisoformat(f"{year}-{day}") for day in fixed)])


Clock = Callable[[], datetime]  # returns the present time as an aware ``datetime``


def wall_clock() -> datetime:
    """Return the time of this machine."""
    return datetime.now(UTC)
