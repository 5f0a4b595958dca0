"""Slots: the times at which a job is due, from a cron expression in one zone.

A slot is an aware time, always given in UTC. Where clocks are put forward, a time that does not exist is due at
the first one that does; where they are put back, a time that comes twice is due once, as in Debian's cron.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from toolkit.errors import SettingsError

_FIELDS = 5
_A_DAY_AND_A_SHIFT = timedelta(hours=27)
"""A span longer than any change of the clocks can move a slot."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The times of a job: five cron fields (minute, hour, day of month, month, day of week) in a zone."""

    expression: str
    zone: ZoneInfo

    def __post_init__(self) -> None:
        try:
            if len(self.expression.split()) != _FIELDS:
                raise CronSimError("Wrong number of fields")
            next(CronSim(self.expression, datetime(2024, 1, 1, tzinfo=UTC)))
        except (CronSimError, StopIteration) as error:
            reason = str(error) or "it never comes"
            raise SettingsError(
                f"{self.expression!r} is not a schedule ({reason}). Write five fields: minute, hour, day of "
                "month, month, day of week; for example 0 2 * * * for every day at 02:00."
            ) from None

    def between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Yield the slots later than ``after``, up to ``until`` inclusive, in UTC."""
        for slot in self._from(after):
            if slot > until:
                return
            yield slot

    def latest(self, now: datetime) -> datetime | None:
        """Return the slot that was due last, ``None`` where there never was any."""
        try:
            start = next(CronSim(self.expression, (now - _A_DAY_AND_A_SHIFT).astimezone(self.zone), reverse=True))
        except StopIteration:
            return None
        return max(self.between(start.astimezone(UTC) - timedelta(minutes=1), now), default=None)

    def following(self, now: datetime) -> datetime:
        """Return the slot that is due next."""
        return next(self._from(now))

    def holds(self, moment: datetime) -> bool:
        """Tell whether ``moment`` is a slot."""
        before = moment.astimezone(UTC) - timedelta(seconds=1)
        return any(slot == moment for slot in self.between(before, moment))

    def _from(self, after: datetime) -> Iterator[datetime]:
        # Times of one zone compare by the clock on its wall, which shows some times twice; those in UTC do not.
        for slot in CronSim(self.expression, after.astimezone(self.zone)):
            yield slot.astimezone(UTC)
