"""The contents of a ``jobs.toml``: jobs, the dates on which they are due, their steps in order, their limits.

The packaged ``jobs.toml`` beside this module explains each key. A logical date is the time at which a run was due;
dates in braces, such as ``{yesterday}``, are counted from it, in the zone of the office.
"""

import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationError, ValidationInfo

from toolkit.contract.people import looks_secret
from toolkit.errors import SettingsError

PACKAGED: Final = Path(__file__).parent / "jobs.toml"
"""The jobs that come with the toolkit."""
_FIELDS: Final = 5
_DAY: Final = timedelta(days=1)
_A_DAY_AND_A_SHIFT: Final = timedelta(hours=27)
"""A span longer than any change of the clocks can move a date."""
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


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
            if len(self.expression.split()) != _FIELDS:
                raise CronSimError("Wrong number of fields")
            next(CronSim(self.expression, datetime(2024, 1, 1, tzinfo=UTC)))
        except (CronSimError, StopIteration) as error:
            reason = str(error) or "it never comes"
            raise ValueError(
                f"{self.expression!r} is not a schedule ({reason}). Write five fields: minute, hour, day of "
                "month, month, day of week; for example 0 2 * * * for every day at 02:00."
            ) from None

    def between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Yield the dates later than ``after``, up to ``until`` inclusive."""
        # Times of one zone compare by the clock on its wall, which shows some times twice; those in UTC do not.
        for due in CronSim(self.expression, after.astimezone(self.zone)):
            if due.astimezone(UTC) > until:
                return
            yield due.astimezone(UTC)

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
    found = re.fullmatch(r"([1-9][0-9]{0,5})([smhd])", text.strip()) if isinstance(text, str) else None
    if found is None:
        raise ValueError("must be a length of time such as 90s, 15m, 6h or 2d")
    return timedelta(seconds=int(found[1]) * _UNITS[found[2]])


def _name(text: Any) -> str:
    if not isinstance(text, str) or not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,39}", text):
        raise ValueError("a name has up to 40 of a-z, 0-9, _ and -, and begins with a-z or 0-9")
    return text


Name = Annotated[str, BeforeValidator(_name)]
Duration = Annotated[timedelta, PlainValidator(_duration)]
Count = Annotated[int, Field(ge=0)]


class _Table(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, alias_generator=lambda name: name.replace("_", "-")
    )


class Step(_Table):
    """One step of a job: a notebook with its parameters, or a command of the toolkit."""

    name: Name
    notebook: str = ""
    command: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)

    @property
    def target(self) -> str:
        """The notebook or the command, for people."""
        return self.notebook or f"toolkit {self.command}"

    def filled(self, names: Mapping[str, str]) -> dict[str, Any]:
        """Return what is to run, each ``{name}`` in it replaced: ``words`` of a command, or ``parameters``."""
        if self.command:
            return {"words": [_filled(word, names) for word in shlex.split(self.command)]}
        return {"parameters": _filled(self.parameters, names)}

    def model_post_init(self, _context: Any) -> None:
        """Refuse a step of both kinds or of none, and one that holds a secret, which the history would keep."""
        if bool(self.notebook) == bool(self.command) or (self.command and self.parameters):
            raise ValueError("write either notebook, with its parameters, or command, with its options")
        words = self.command.replace("=", " ").split()
        given = [*self.parameters.items(), *((word if word.startswith("--") else "", word) for word in words)]
        secret = next((name for name, value in given if looks_secret(name.lstrip("-"), value)), None)
        if secret is not None:
            raise ValueError(
                f"{secret!r} looks like a secret, and the history would keep it. "
                "Hand secrets over in the environment or in a file that it names."
            )


class Notify(_Table):
    """The findings that people want a notice of."""

    findings: Count | None = None
    new_critical: bool = False


class Job(_Table):
    """One job of a ``jobs.toml``."""

    about: str = ""
    schedule: Annotated[Schedule, PlainValidator(_schedule)]
    grace: Duration = timedelta(hours=6)
    timeout: Duration = timedelta(hours=6)
    keep_days: Count = 90
    notify: Notify = Notify()
    steps: Annotated[tuple[Step, ...], Field(min_length=1, strict=False)]
    name: Name = ""

    def model_post_init(self, _context: Any) -> None:
        """Refuse two steps of one name."""
        names = [step.name for step in self.steps]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"there is a step {twice!r} already")


class _JobsFile(_Table):
    jobs: dict[Name, Job] = Field(min_length=1)


def read_jobs(document: Mapping[str, Any], zone: ZoneInfo) -> dict[str, Job]:
    """Return the jobs of a parsed ``jobs.toml``, by name.

    Raises:
        SettingsError: naming the place and what is wrong there.
    """
    try:
        jobs = _JobsFile.model_validate(document, context={"zone": zone}).jobs
    except ValidationError as error:
        raise SettingsError(_complaint(error)) from None
    return {name: job.model_copy(update={"name": name}) for name, job in jobs.items()}


def _complaint(error: ValidationError) -> str:
    """Return the first mistake and its place; the value itself may be a secret."""
    [first, *_] = error.errors(include_input=False, include_url=False)
    place = [str(part + 1) if isinstance(part, int) else part for part in first["loc"] if part != "[key]"]
    where = " ".join(["job", *place[1:]])
    if place == ["jobs"]:
        return "jobs.toml names no job; write a table [jobs.NAME]."
    if first["type"] == "extra_forbidden":
        keys = {field.alias or "" for table in (Job, Step, Notify) for field in table.model_fields.values()}
        near = get_close_matches(place[-1], keys, n=1)
        return f"{where}: there is no key {place[-1]!r}." + (f" Did you mean {near[0]!r}?" if near else "")
    return f"{where}: {first['msg'].removeprefix('Value error, ')}"


def load_jobs(file: Path, zone: ZoneInfo) -> dict[str, Job]:
    """Return the jobs that the file defines, by name.

    Raises:
        SettingsError: the file is not there, is not valid TOML, or defines something wrong.
    """
    try:
        return read_jobs(tomllib.loads(file.read_text(encoding="utf-8")), zone)
    except SettingsError as error:
        raise SettingsError("{}: {}", file, error) from None
    except OSError as error:
        raise SettingsError(
            "{} cannot be read: {}. TOOLKIT_JOBS names the jobs file.", file, error.strerror
        ) from None
    except (ValueError, RecursionError) as error:
        raise SettingsError("{} is not valid TOML in UTF-8: {}", file, error) from None


RELATIVE_DATES: Final[dict[str, Callable[[date], date]]] = {
    "today": lambda day: day,
    "yesterday": lambda day: day - _DAY,
    "tomorrow": lambda day: day + _DAY,
    "week-start": lambda day: day - _DAY * day.weekday(),
    "month-start": lambda day: day.replace(day=1),
    "month-end": lambda day: (day.replace(day=28) + 4 * _DAY).replace(day=1) - _DAY,
    "last-month-start": lambda day: (day.replace(day=1) - _DAY).replace(day=1),
    "last-month-end": lambda day: day.replace(day=1) - _DAY,
    "year-start": lambda day: day.replace(month=1, day=1),
}
"""Each name, and the date that it stands for on the day of a run; weeks begin on Monday."""


def named_values(logical_date: datetime, zone: ZoneInfo, out: Path) -> dict[str, str]:
    """Return the names allowed between braces: the dates above, the ``logical-date``, ``out`` for the files."""
    local = logical_date.astimezone(zone)
    dates = {name: find(local.date()).isoformat() for name, find in RELATIVE_DATES.items()}
    return {**dates, "logical-date": local.isoformat(), "out": str(out)}


def _filled(value: Any, names: Mapping[str, str]) -> Any:
    """Return the value with each ``{name}`` in its texts replaced; a doubled brace stands for itself."""
    if isinstance(value, list):
        return [_filled(item, names) for item in value]
    if isinstance(value, dict):
        return {key: _filled(item, names) for key, item in value.items()}
    if not isinstance(value, str):
        return value
    try:
        parts = list(Formatter().parse(value))
    except ValueError:
        raise SettingsError("a brace in {!r} has no pair; a doubled one stands for itself.", value) from None
    for _, name, form, conversion in parts:
        if name is not None and (form or conversion or name not in names):
            near = get_close_matches(name, names, n=1)
            hint = f" Did you mean {{{near[0]}}}?" if near else ""
            raise SettingsError(
                "{!r} between braces stands for nothing.{} There are: {}", name, hint, ", ".join(names)
            )
    return "".join(literal + ("" if name is None else names[name]) for literal, name, _, _ in parts)
