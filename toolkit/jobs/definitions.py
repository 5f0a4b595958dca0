"""The contents of a ``jobs.toml``: jobs, the dates on which they are due, their steps in order, their limits.

The packaged ``jobs.toml`` beside this module explains each key. A logical date is the time at which a run was due;
dates in braces, such as ``{yesterday}``, are counted from it, in the zone of the office.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from pydantic import Field, PlainValidator, ValidationInfo

from toolkit.contract.fields import invalid
from toolkit.contract.people import looks_secret
from toolkit.contract.toml_files import TomlTable, read_toml
from toolkit.errors import SettingsError, UnreadableFile

PACKAGED: Final = Path(__file__).parent / "jobs.toml"  # the jobs that come with the toolkit
_A_DAY_AND_A_SHIFT: Final = timedelta(hours=27)  # a span longer than any change of the clocks can move a date
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True, slots=True)
class Schedule:
    """The logical dates of a job, always in UTC: five cron fields in a zone.

    Where clocks are put forward, a time that does not exist is due at the first one that does; where they are put
    back, a time that comes twice is due once, as in Debian's cron.
    """

    expression: str
    zone: ZoneInfo

    def __post_init__(self) -> None:
        try:
            _minute, _hour, _day, _month, _weekday = self.expression.split()
            next(CronSim(self.expression, datetime(2024, 1, 1, tzinfo=UTC)))
        except (CronSimError, StopIteration, ValueError):
            raise invalid(
                "{!r} is not a schedule. Write five fields: minute, hour, day of month, month, day of week; "
                "for example 0 2 * * * for every day at 02:00.",
                self.expression,
            ) from None

    def between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Yield the dates later than ``after``, up to ``until`` inclusive."""
        # Times of one zone compare by the clock on its wall, which shows some times twice; those in UTC do not.
        for local in CronSim(self.expression, after.astimezone(self.zone)):
            due = local.astimezone(UTC)
            if due > until:
                return
            if due > after:  # in an hour that comes twice, it begins with dates of the first one
                yield due

    def latest(self, now: datetime) -> datetime | None:
        """Return the date that was due last, ``None`` where there never was any."""
        back = CronSim(self.expression, (now - _A_DAY_AND_A_SHIFT).astimezone(self.zone), reverse=True)
        start = next(back, None)
        return start and max(self.between(start.astimezone(UTC) - timedelta(minutes=1), now), default=None)

    def following(self, now: datetime) -> datetime:
        """Return the date that is due next."""
        return next(self.between(now, datetime.max.replace(tzinfo=UTC)))

    def holds(self, moment: datetime) -> bool:
        """Tell whether the job is due at ``moment``."""
        return moment in self.between(moment.astimezone(UTC) - timedelta(seconds=1), moment)


def _schedule(text: Any, info: ValidationInfo) -> Schedule:
    return Schedule(text if isinstance(text, str) else "", (info.context or {})["zone"])


def _duration(text: Any) -> timedelta:
    found = re.fullmatch(r"([1-9][0-9]{0,4}|[1-9][0-9]{5}(?!d))([smhd])", text) if isinstance(text, str) else None
    if found is None:
        raise invalid("must be a length of time such as 90s, 15m, 6h or 2d")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$")]
Duration = Annotated[timedelta, PlainValidator(_duration)]
Count = Annotated[int, Field(ge=0)]


class Step(TomlTable, strict=True):
    """One step of a job: a command of the toolkit."""

    name: Name
    command: Annotated[str, Field(min_length=1)]

    def words(self, names: Mapping[str, str]) -> list[str]:
        """Return the words of the command, each ``{name}`` in them replaced."""
        try:
            return [word.format_map(names) for word in shlex.split(self.command)]
        except (KeyError, ValueError, AttributeError):
            raise SettingsError(
                "{!r} cannot be filled in. Between braces stands one of {}; a doubled brace stands for itself.",
                *(self.command, ", ".join(names)),
            ) from None

    def model_post_init(self, _context: Any) -> None:
        """Refuse a secret, which the history would keep."""
        for word in self.command.replace("=", " ").split():
            option = word if word.startswith("--") else ""
            if looks_secret(option.lstrip("-"), word):
                raise invalid(
                    "{!r} looks like a secret, and the history would keep it. Hand secrets over in the "
                    "environment or in a file that it names.",
                    option or "...",
                )


class Notify(TomlTable, strict=True):
    """The findings that people want a notice of."""

    findings: Count | None = None
    new_critical: bool = False


class Job(TomlTable, strict=True):
    """One job of a ``jobs.toml``."""

    about: str = ""
    schedule: Annotated[Schedule, PlainValidator(_schedule)]
    grace: Duration = timedelta(hours=6)
    timeout: Duration = timedelta(hours=6)
    keep_days: Annotated[int, Field(ge=1, le=99_999)] = 90
    notify: Notify = Notify()
    steps: Annotated[tuple[Step, ...], Field(min_length=1, strict=False)]
    name: str = ""

    def model_post_init(self, _context: Any) -> None:
        """Refuse two steps of one name."""
        if len({step.name for step in self.steps}) < len(self.steps):
            raise invalid("two of its steps have the same name")


class _JobsFile(TomlTable, strict=True):
    jobs: dict[Name, Job] = Field(min_length=1)


def load_jobs(file: Path, zone: ZoneInfo) -> dict[str, Job]:
    """Return the jobs that the file defines, by name.

    Raises:
        SettingsError: the file is not there, is not valid TOML, or defines something wrong.
    """
    try:
        read, _ = read_toml(file, file.name, _JobsFile, {"zone": zone})
    except (SettingsError, UnreadableFile) as error:
        raise SettingsError("The jobs file {} (TOOLKIT_JOBS) cannot be used: {}", file, error) from None
    return {name: job.model_copy(update={"name": name}) for name, job in read.jobs.items()}


RELATIVE_DATES: Final[dict[str, Callable[[date], date]]] = {
    "today": lambda day: day,
    "yesterday": lambda day: day - timedelta(days=1),
    "month-start": lambda day: day.replace(day=1),
    "last-month-start": lambda day: (day.replace(day=1) - timedelta(days=1)).replace(day=1),
    "last-month-end": lambda day: day.replace(day=1) - timedelta(days=1),
}
"""Each name, and the date that it stands for on the day of a run."""


def named_values(logical_date: datetime, zone: ZoneInfo, out: Path) -> dict[str, str]:
    """Return the names allowed between braces: the dates above, the ``logical-date``, ``out`` for the files."""
    local = logical_date.astimezone(zone)
    dates = {name: find(local.date()).isoformat() for name, find in RELATIVE_DATES.items()}
    return {**dates, "logical-date": local.isoformat(), "out": str(out)}
