"""The difference between the findings of two moments, and their trend from day to day.

Both are read from the stretches that the audits noted: a moment between two audits is answered by the earlier one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cached_property, partial
from typing import Any, Final
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa
import sqlalchemy as sa
from pyarrow import compute as pc
from sqlalchemy import Connection

from toolkit.audit.history import without_sale
from toolkit.database.connection import Database
from toolkit.database.frames import read_arrow
from toolkit.errors import InvalidInput, NothingEvaluated

CHANGED: Final = ("new", "resolved", "reopened")
"""The changes that a finding can undergo between two moments."""

KINDS: Final = (*CHANGED, "open")

TREND: Final = ("partner", "day", "present", "came", "went")


@dataclass(frozen=True)
class FindingChanges:
    """The ids of findings by what happened between two moments, as texts in their order.

    The findings of the first moment without the ``resolved`` ones, and with the ``new`` and the ``reopened`` ones,
    are those of the second. ``open`` ones are in both. Waived findings are findings, too.
    """

    start: datetime
    end: datetime
    new: pa.Array
    resolved: pa.Array
    reopened: pa.Array
    without_sale: pa.Array
    """Those of ``resolved`` that nobody mended: their sale was gone when an audit looked."""
    still_open: int
    """The number of ``open``."""
    read_open: Callable[[], pa.Array]
    """Reads ``open``, which are many more than those that changed."""

    @cached_property
    def open(self) -> pa.Array:
        """The ids of the findings that are in both."""
        return self.read_open()

    @property
    def counts(self) -> dict[str, int]:
        """The number of findings of each kind."""
        return {kind: self.still_open if kind == "open" else len(getattr(self, kind)) for kind in KINDS}

    def only(self, ids: pd.Series[str]) -> FindingChanges:
        """Return the changes of these findings."""
        kept = pa.array(ids, pa.large_string())
        found = (getattr(self, kind) for kind in (*CHANGED, "without_sale", "open"))
        new, resolved, reopened, gone, still = (each.filter(pc.is_in(each, kept)) for each in found)
        return FindingChanges(self.start, self.end, new, resolved, reopened, gone, len(still), lambda: still)


def changes_between(place: Database, start: datetime, end: datetime) -> FindingChanges:
    """Compare the findings that the audits had noted by two moments.

    Raises:
        InvalidInput: the first moment lies after the second.
        NothingEvaluated: no audit had been made by the second.
    """
    if start > end:
        raise InvalidInput("The first moment lies after the second: a change goes from the earlier to the later.")
    bound = {"start": start, "end": end}
    with place.snapshot() as connection:
        if not connection.scalar(sa.text(_NOTED), {"end": end}):
            raise NothingEvaluated(
                "Nothing was evaluated: no audit had been made by {}. Run: toolkit audit",
                end.isoformat(timespec="seconds"),
            )
        rows = _read(connection, _CHANGES, bound, _CHANGED)
        before = connection.scalar(sa.text(_BEFORE), {"start": start})
        gone = without_sale(connection, start, end)
    changed = {kind: rows["id"].filter(pc.equal(rows["kind"], kind)).combine_chunks() for kind in CHANGED}
    still = before - len(changed["resolved"])
    gone = gone.filter(pc.is_in(gone, changed["resolved"]))
    return FindingChanges(
        start, end, **changed, without_sale=gone, still_open=still, read_open=partial(_still_open, place, bound)
    )


def _still_open(place: Database, bound: Mapping[str, datetime]) -> pa.Array:
    with place.snapshot() as connection:
        return _read(connection, _OPEN, bound, _IDS)["id"].combine_chunks()


def _read(connection: Connection, query: str, moments: Mapping[str, datetime], schema: pa.Schema) -> pa.Table:
    for name, moment in moments.items():
        query = query.replace(f":{name}", f"timestamptz '{moment.isoformat()}'")
    return read_arrow(connection, query, schema)


def trends(
    connection: Connection,
    first: date,
    until: datetime,
    timezone: ZoneInfo,
    moved: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Return one row a partner and day: the findings present at its end, and those that came and went on it.

    Columns as in ``TREND``; ``partner`` is empty for findings of none. A finding that came and went within the day
    is in both. It counts for the partner that was noted when it came, or for the one that ``moved`` gives its id.
    """
    moved = moved or {}
    bound: dict[str, Any] = {"before": first - timedelta(days=1), "until": until, "zone": timezone.key}
    bound |= {
        "opening": datetime.combine(first, time(), timezone),
        "moved": list(moved),
        "partners": list(moved.values()),
    }
    return pd.DataFrame(connection.execute(sa.text(_TRENDS), bound).all(), columns=list(TREND))


def all_partners(trends_of: pd.DataFrame) -> pd.DataFrame:
    """Return the sum of these trends: ``day``, ``present``, ``came``, ``went``."""
    return trends_of.groupby("day", as_index=False)[["present", "came", "went"]].sum()


_NOTED: Final = "SELECT EXISTS (SELECT 1 FROM audit.audit_runs WHERE as_of <= :end)"

_IDS: Final = pa.schema({"id": pa.large_string()})

_CHANGED: Final = _IDS.insert(0, pa.field("kind", pa.string()))

_CHANGES: Final = """
    WITH stretches AS (
        SELECT finding_id, seen_at, gone_at FROM audit.finding_observations
        WHERE seen_at > :start AND seen_at <= :end
        UNION ALL
        SELECT finding_id, seen_at, gone_at FROM audit.finding_observations
        WHERE gone_at > :start AND gone_at <= :end AND seen_at <= :start
    ),
    moved AS (
        SELECT finding_id,
               bool_or(seen_at <= :start) AS at_start,
               bool_or(gone_at IS NULL OR gone_at > :end) AS at_end
        FROM stretches
        GROUP BY finding_id
    )
    SELECT CASE WHEN at_start THEN 'resolved'
                WHEN EXISTS (
                    SELECT 1 FROM audit.finding_observations AS earlier
                    WHERE earlier.finding_id = moved.finding_id AND earlier.gone_at <= :start
                ) THEN 'reopened' ELSE 'new' END AS kind,
           CAST(finding_id AS text) AS id
    FROM moved
    WHERE at_start <> at_end
    ORDER BY finding_id
"""
"""Every finding that changed has a stretch that began or ended meanwhile; both are found by their stamps."""

_BEFORE: Final = """
    SELECT (SELECT count(*) FROM audit.finding_observations WHERE gone_at IS NULL)
         - (SELECT count(*) FROM audit.finding_observations WHERE gone_at IS NULL AND seen_at > :start)
         + (SELECT count(*) FROM audit.finding_observations WHERE gone_at > :start AND seen_at <= :start)
"""
"""The number of findings at the start: those of today, taken back by what happened since."""

_OPEN: Final = """
    SELECT CAST(finding_id AS text) AS id FROM (
        SELECT finding_id FROM audit.finding_observations
        WHERE seen_at <= :start AND (gone_at IS NULL OR gone_at > :start)
        INTERSECT
        SELECT finding_id FROM audit.finding_observations
        WHERE seen_at <= :end AND (gone_at IS NULL OR gone_at > :end)
    ) AS still
    ORDER BY finding_id
"""

_TRENDS: Final = """
    WITH moved AS (
        SELECT unnest(CAST(:moved AS uuid[])) AS finding_id, unnest(CAST(:partners AS text[])) AS partner
    ),
    stretches AS (
        SELECT coalesce(moved.partner, noted.partner, '') AS partner, seen_at, gone_at, count(*) AS alike
        FROM audit.finding_observations AS noted LEFT JOIN moved USING (finding_id)
        WHERE seen_at <= :until AND (gone_at IS NULL OR gone_at >= :opening)
        GROUP BY 1, 2, 3
    ),
    moves AS (
        SELECT partner, cast(seen_at AT TIME ZONE :zone AS date) AS day, alike AS came, 0 AS went FROM stretches
        UNION ALL
        SELECT partner, cast(gone_at AT TIME ZONE :zone AS date), 0, alike FROM stretches WHERE gone_at <= :until
    ),
    by_day AS (
        SELECT partner, greatest(day, :before) AS day, sum(came) AS came, sum(went) AS went
        FROM moves
        GROUP BY 1, 2
    ),
    days AS (
        SELECT partner, cast(day AS date) AS day
        FROM generate_series(
            cast(:before AS timestamp), cast(:until AS timestamptz) AT TIME ZONE :zone, interval '1 day'
        ) AS days(day)
        CROSS JOIN (
            SELECT partner FROM stretches
            UNION
            SELECT '' WHERE EXISTS (SELECT 1 FROM audit.finding_observations WHERE seen_at <= :until)
        ) AS partners
    ),
    summed AS (
        SELECT partner, day,
               cast(sum(coalesce(came, 0) - coalesce(went, 0)) OVER (PARTITION BY partner ORDER BY day) AS bigint)
                   AS present,
               cast(coalesce(came, 0) AS bigint) AS came,
               cast(coalesce(went, 0) AS bigint) AS went
        FROM days LEFT JOIN by_day USING (partner, day)
    )
    SELECT partner, day, present, came, went FROM summed WHERE day > :before ORDER BY partner, day
"""
