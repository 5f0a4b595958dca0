"""Parse timestamps as people write them: ``2026-11-20``, ``2026-11-20 18:00``, ``2026-11-20T18:00-03:00``."""

import re
from datetime import datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from toolkit.errors import InvalidInput

EXAMPLES: Final = "2026-11-20, 2026-11-20 18:00 or 2026-11-20T18:00:00-03:00"

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME: Final = re.compile(rf"{_DAY.pattern}[ T]\d{{2}}:\d{{2}}.*", re.ASCII)


def parse_timestamp(text: str, *, timezone: ZoneInfo, now: datetime) -> datetime:
    """Return a past moment; without an offset it is in ``timezone``.

    A bare date is the end of that day, so that all that was seen on it counts; today is now.

    Raises:
        InvalidInput: it is not a time, or lies in the future.
    """
    text = text.strip()
    try:
        if _DAY.fullmatch(text):
            moment = _end_of_day(datetime.fromisoformat(text), timezone, now)
        elif _TIME.fullmatch(text):
            moment = datetime.fromisoformat(text)
        else:
            raise ValueError(text)
    except (ValueError, OverflowError):
        raise InvalidInput(f"{text[:40]!r} is not a time; write it like {EXAMPLES}") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone)
    if moment > now:
        raise InvalidInput(f"{text!r} lies in the future; only what was seen can be asked for")
    return moment


def _end_of_day(day: datetime, timezone: ZoneInfo, now: datetime) -> datetime:
    if day.date() == now.astimezone(timezone).date():
        return now
    return datetime.combine(day.date() + timedelta(days=1), time(), timezone) - timedelta(microseconds=1)
