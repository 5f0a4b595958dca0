"""Write the times of reports: for programs in one zone, always with their offset, and for people in words."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.language import Language

_LATE: Final = re.compile(r"late by (?:(\d+) days?, )?(\d+):(\d\d):(\d\d)")
_REPLACED: Final = re.compile(r"replaced at (\d{4}-\d\d-\d\d \d\d:\d\d) UTC")


def iso(moment: datetime, timezone: ZoneInfo) -> str:
    """``2026-11-20T18:00:00-03:00``."""
    return moment.astimezone(timezone).isoformat(timespec="seconds")


def iso_exact(moment: datetime, timezone: ZoneInfo) -> str:
    """Return the same with the fraction of the second, where there is one: it names exactly this moment."""
    return moment.astimezone(timezone).isoformat()


def iso_column(moments: pd.Series[Any], timezone: ZoneInfo) -> list[str | None]:
    """``iso`` for a whole column, null where there is none."""
    seconds = pa.Array.from_pandas(moments, type=pa.timestamp("us", "UTC")).cast(
        pa.timestamp("s", "UTC"), safe=False
    )
    texts = pc.strftime(seconds.cast(pa.timestamp("s", timezone.key)), format="%Y-%m-%dT%H:%M:%S%z")
    found: list[str | None] = pc.replace_substring_regex(texts, r"(\d\d)$", r":\1").to_pylist()
    return found


def duration(time: timedelta, language: Language) -> str:
    """``20 days and 23 hours``: the two largest units."""
    hours, seconds = divmod(time.seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    counted = {
        language.count("%(number)s day", "%(number)s days", time.days): time.days,
        language.count("%(number)s hour", "%(number)s hours", hours): hours,
        language.count("%(number)s minute", "%(number)s minutes", minutes): minutes,
        language.count("%(number)s second", "%(number)s seconds", seconds): seconds,
    }
    return language.listed([told for told, number in counted.items() if number][:2])


def told_detail(detail: str, language: Language, timezone: ZoneInfo) -> str:
    """Return the detail of a finding about a file as people say it; programs get it as it was found."""
    if late := _LATE.fullmatch(detail):
        days, hours, minutes, seconds = (int(each or 0) for each in late.groups())
        time = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        return language.text("late by %(time)s", time=duration(time, language))
    if replaced := _REPLACED.fullmatch(detail):
        moment = datetime.fromisoformat(replaced[1]).replace(tzinfo=UTC)
        return language.text("replaced at %(moment)s", moment=language.moment(moment, timezone))
    return language.sentence(detail)
