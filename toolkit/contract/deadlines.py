"""Deadlines of findings in business days of Brazil, by code and utility group, and the clock."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from toolkit.contract.codes import CODES

_SATURDAY: Final = 5
_ONE: Final = timedelta(days=1)


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

    def due_at(self, opened_at: datetime, code: str, group: str | None) -> datetime:
        """Return the last second of the day on which the deadline ends, in the time zone."""
        return end_of_day(due_on(self.day_of(opened_at), self.days(code, group)), self.timezone)

    def day_of(self, moment: datetime) -> date:
        """Return the calendar day of a moment in the time zone."""
        return moment.astimezone(self.timezone).date()


def end_of_day(day: date, timezone: ZoneInfo) -> datetime:
    """Return the last second of a calendar day."""
    return datetime.combine(day + _ONE, time(), timezone) - timedelta(seconds=1)


@lru_cache(maxsize=100_000)
def due_on(opened_on: date, days: int) -> date:
    """Return the day that lies ``days`` business days after another."""
    day = opened_on
    while days:
        day += _ONE
        days -= is_business_day(day)
    return day


@lru_cache(maxsize=100_000)
def business_days(start: date, end: date) -> int:
    """Return the business days after ``start`` up to ``end``; negative where ``end`` is the earlier one."""
    if end < start:
        return -business_days(end, start)
    return sum(is_business_day(start + number * _ONE) for number in range(1, (end - start).days + 1))


def is_business_day(day: date) -> bool:
    """Tell whether it is a day from Monday to Friday and no national holiday of Brazil."""
    return day.weekday() < _SATURDAY and day not in _holidays(day.year)


@lru_cache(maxsize=64)
def _holidays(year: int) -> frozenset[date]:
    import holidays  # an extra, and slow to load

    return frozenset(holidays.country_holidays("BR", years=year))


Clock = Callable[[], datetime]
"""Returns the present time as an aware ``datetime``."""


def wall_clock() -> datetime:
    """Return the time of this machine."""
    return datetime.now(UTC)
