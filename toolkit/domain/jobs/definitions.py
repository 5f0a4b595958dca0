"""The contents of a ``jobs.toml``: jobs, their steps in order, their limits.

::

    [jobs.nightly]
    about = "..."                 one line for people
    schedule = "0 2 * * *"        five cron fields, in TOOLKIT_TIMEZONE
    late = "6h"                   a start may be this late; after that the slot is missed
    timeout = "3h"                limit of the whole run
    cell-timeout = "1h"           limit of each cell of a notebook
    retries = 2                   further tries of a step whose failure may pass
    backoff = "30s"               pause before the first of them; each further pause is twice as long
    keep-days = 90                files older than this are deleted; the history keeps their entry
    notify.findings = 0           notice when more sales than this are open; left out: never
    notify.new-critical = true    notice when critical findings are new

    [[jobs.nightly.steps]]        done in the order in which they are written
    name = "report"
    notebook = "03_missing_evidence_report"      or: command = "bucket sync"
    parameters = { as_of = "{yesterday}", out = "{out}" }
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, Final, TypeVar
from zoneinfo import ZoneInfo

from toolkit.domain.jobs.schedules import Schedule
from toolkit.domain.secret_texts import looks_secret
from toolkit.errors import SettingsError

T = TypeVar("T")

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a job: a notebook, or a command of the toolkit, with its parameters."""

    name: str
    notebook: str | None
    command: tuple[str, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """The notebook or the command, for people."""
        return self.notebook or f"toolkit {' '.join(self.command)}"


@dataclass(frozen=True, slots=True)
class Job:
    """One job of a ``jobs.toml``."""

    name: str
    about: str
    schedule: Schedule
    late: timedelta
    timeout: timedelta
    cell_timeout: timedelta | None
    retries: int
    backoff: timedelta
    keep: timedelta
    findings_above: int | None
    """A notice goes out when more sales than this are open; ``None``: never."""
    new_critical: bool
    """Send a notice when critical findings are new."""
    steps: tuple[Step, ...]

    def pause(self, failed_tries: int) -> timedelta:
        """Return the pause before the next try of a step."""
        pause: timedelta = self.backoff * 2 ** (failed_tries - 1)
        return min(pause, timedelta(minutes=15))


def read_jobs(document: Mapping[str, Any], zone: ZoneInfo) -> dict[str, Job]:
    """Return the jobs of a parsed ``jobs.toml``, by name.

    Raises:
        SettingsError: naming the place and what is wrong there.
    """
    top = _Table("jobs.toml", document)
    jobs = top.take("jobs", dict, {})
    top.end()
    if not jobs:
        raise SettingsError("jobs.toml names no job; write a table [jobs.NAME].")
    return {name: _job(name, table, zone) for name, table in jobs.items()}


def _job(name: str, written: Any, zone: ZoneInfo) -> Job:
    where = f"job {name}"
    _refuse_odd_name(name, where)
    table = _Table(where, written)
    notify = _Table(f"{where}, notify", table.take("notify", dict, {}))
    steps = table.take("steps", list, [])
    job = Job(
        name=name,
        about=table.take("about", str, ""),
        schedule=Schedule(table.take("schedule", str), zone),
        late=table.duration("late", "6h"),
        timeout=table.duration("timeout", "6h"),
        cell_timeout=table.duration("cell-timeout", "") or None,
        retries=table.count("retries", 2),
        backoff=table.duration("backoff", "30s"),
        keep=timedelta(days=table.count("keep-days", 90)),
        findings_above=notify.take("findings", int, None),
        new_critical=notify.take("new-critical", bool, False),
        steps=tuple(_steps(steps, where)),
    )
    table.end()
    notify.end()
    return job


def _steps(written: list[Any], where: str) -> Iterable[Step]:
    if not written:
        raise SettingsError(f"{where}: it has no steps; write [[jobs.NAME.steps]].")
    seen: set[str] = set()
    for number, each in enumerate(written, 1):
        table = _Table(f"{where}, step {number}", each)
        name = table.take("name", str)
        _refuse_odd_name(name, table.where)
        if name in seen:
            raise SettingsError(f"{table.where}: there is a step {name!r} already.")
        seen.add(name)
        notebook, command = table.take("notebook", str, ""), table.take("command", str, "")
        if bool(notebook) == bool(command):
            raise SettingsError(f"{table.where}: write either notebook or command.")
        parameters = table.take("parameters", dict, {})
        table.end()
        for parameter, value in parameters.items():
            _refuse_secret(table.where, parameter, value)
        yield Step(name, notebook or None, tuple(command.split()), parameters)


def _refuse_odd_name(name: str, where: str) -> None:
    if not _NAME.fullmatch(name):
        raise SettingsError(f"{where}: a name has up to 40 of a-z, 0-9, _ and -, and begins with a-z or 0-9.")


def _refuse_secret(where: str, name: str, value: Any) -> None:
    if looks_secret(name, value):
        raise SettingsError(
            f"{where}: the parameter {name!r} looks like a secret, and the history would keep it. "
            "Hand secrets over in the environment or in a file that it names."
        )


class _Table:
    """A table of the file, each key of which is taken once; what is left over is a mistake."""

    def __init__(self, where: str, written: Any) -> None:
        if not isinstance(written, Mapping):
            raise SettingsError(f"{where}: this must be a table.")
        self.where = where
        self._left = dict(written)
        self._known: list[str] = []

    def take(self, key: str, kind: type[T] | Callable[..., T], *default: Any) -> Any:
        """Return the value of ``key``; the default where it is left out, an error where there is none."""
        self._known.append(key)
        if key not in self._left:
            if not default:
                raise SettingsError(f"{self.where}: {key} is missing.")
            return default[0]
        value = self._left.pop(key)
        if type(value) is not kind:
            raise SettingsError(f"{self.where}: {key} must be {_KINDS.get(kind, 'something else')}.")
        return value

    def duration(self, key: str, default: str) -> timedelta:
        """Return the length of time in ``key``, such as ``6h``; none where nothing is written."""
        text = self.take(key, str, default)
        if text == default == "":
            return timedelta()
        found = re.fullmatch(r"([1-9][0-9]{0,5})([smhd])", text.strip())
        if found is None:
            raise SettingsError(f"{self.where}: {key} must be a length of time such as 90s, 15m, 6h or 2d.")
        return timedelta(seconds=int(found[1]) * _UNITS[found[2]])

    def count(self, key: str, default: int) -> int:
        number: int = self.take(key, int, default)
        if number < 0:
            raise SettingsError(f"{self.where}: {key} must not be below zero.")
        return number

    def end(self) -> None:
        """Refuse keys that nobody took."""
        for key in self._left:
            near = get_close_matches(key, self._known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise SettingsError(
                f"{self.where}: there is no key {key!r}.{hint} There are: {', '.join(self._known)}"
            )


_KINDS: Final[dict[Any, str]] = {
    str: 'a text, such as "6h"',
    int: "a whole number",
    bool: "true or false",
    dict: "a table",
    list: "a list of tables",
}
