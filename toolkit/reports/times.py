"""Write the times of reports: in one zone, always with their offset."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc


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
