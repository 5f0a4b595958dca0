"""Dates counted from a slot, as parameters name them: ``as_of = "{yesterday}"``.

They follow from the scheduled time and the zone of the office, never from the moment at which a late run starts.
"""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from difflib import get_close_matches
from string import Formatter
from typing import Any, Final
from zoneinfo import ZoneInfo

from toolkit.errors import SettingsError

_DAY: Final = timedelta(days=1)


def _last_month(day: date) -> date:
    """Return any day of the month before."""
    return day.replace(day=1) - _DAY


RELATIVE_DATES: Final[dict[str, Callable[[date], date]]] = {
    "today": lambda day: day,
    "yesterday": lambda day: day - _DAY,
    "tomorrow": lambda day: day + _DAY,
    "week-start": lambda day: day - _DAY * day.weekday(),
    "month-start": lambda day: day.replace(day=1),
    "month-end": lambda day: (day.replace(day=28) + 4 * _DAY).replace(day=1) - _DAY,
    "last-month-start": lambda day: _last_month(day).replace(day=1),
    "last-month-end": _last_month,
    "year-start": lambda day: day.replace(month=1, day=1),
}
"""Each name, and the date that it stands for on the day of a slot; weeks begin on Monday."""


def named_values(slot: datetime, zone: ZoneInfo) -> dict[str, str]:
    """Return the names allowed between braces for a run of ``slot``: the dates above, and ``slot`` itself."""
    local = slot.astimezone(zone)
    dates = {name: counted(local.date()).isoformat() for name, counted in RELATIVE_DATES.items()}
    return {**dates, "slot": local.isoformat()}


def filled(value: Any, names: dict[str, str], where: str) -> Any:
    """Return the value with each ``{name}`` in its texts replaced; ``{{`` and ``}}`` stand for braces themselves.

    Raises:
        SettingsError: a name that does not exist, or a brace without its pair; ``where`` tells the place.
    """
    if isinstance(value, str):
        return _filled(value, names, where)
    if isinstance(value, list):
        return [filled(item, names, where) for item in value]
    if isinstance(value, dict):
        return {key: filled(item, names, where) for key, item in value.items()}
    return value


def _filled(text: str, names: dict[str, str], where: str) -> str:
    found = []
    try:
        for literal, name, form, conversion in Formatter().parse(text):
            found.append(literal)
            if name is not None:
                if form or conversion or name not in names:
                    raise _unknown(name, names, where)
                found.append(names[name])
    except ValueError:
        raise SettingsError(
            f"{where}: a brace in {text!r} has no pair; a doubled one stands for itself."
        ) from None
    return "".join(found)


def _unknown(name: str, names: dict[str, str], where: str) -> SettingsError:
    near = get_close_matches(name, names, n=1)
    hint = f" Did you mean {{{near[0]}}}?" if near else ""
    return SettingsError(f"{where}: {{{name}}} stands for nothing.{hint} There are: {', '.join(names)}")
