"""The difference between the findings of two moments, and their trend from day to day.

Both are read from the stretches that the audits noted: a moment between two audits is answered by the earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa
import sqlalchemy as sa
from pyarrow import compute as pc

from toolkit.errors import InvalidInput, NothingEvaluated
from toolkit.storage.frames import read_arrow
from toolkit.storage.reader import Place, Reader

KINDS: Final = ("new", "resolved", "reopened", "open")
"""The changes that a finding can undergo between two moments."""

TREND: Final = ("partner", "day", "present", "came", "went")


@dataclass(frozen=True, slots=True)
class Changes:
    """The ids of findings by what happened between two moments, as texts in their order.

    The findings of the first moment without the ``resolved`` ones, and with the ``new`` and the ``reopened`` ones,
    are those of the second. ``open`` ones are in both. Waived findings are findings, too.
    """

    start: datetime
    end: datetime
    new: pa.Array
    resolved: pa.Array
    reopened: pa.Array
    open: pa.Array

    def only(self, ids: pd.Series[str]) -> Changes:
        """Return the changes of these findings."""
        kept = pa.array(ids, pa.large_string())
        found = {kind: getattr(self, kind) for kind in KINDS}
        return Changes(self.start, self.end, **{kind: of.filter(pc.is_in(of, kept)) for kind, of in found.items()})


def changes_between(place: Place, start: datetime, end: datetime) -> Changes:
    """Compare the findings that the audits had noted by two moments.

    Raises:
        InvalidInput: the first moment lies after the second.
        NothingEvaluated: no audit had been made by the second.
    """
    with place.snapshot() as connection:
        return changes_seen(connection, start, end)


def changes_seen(connection: Reader, start: datetime, end: datetime) -> Changes:
    """Return the same, as this connection sees the database; raises as ``changes_between`` does."""
    if start > end:
        raise InvalidInput("The first moment lies after the second: a change goes from the earlier to the later.")
    if not connection.scalar(sa.text(_NOTED), {"end": end}):
        raise NothingEvaluated(
            f"Nothing was evaluated: no audit had been made by {end.isoformat(timespec='seconds')}. "
            "Run: toolkit audit"
        )
    moments = {"start": f"timestamptz '{start.isoformat()}'", "end": f"timestamptz '{end.isoformat()}'"}
    rows = read_arrow(connection, _CHANGES.format(**moments), _CHANGED)
    return Changes(
        start, end, **{kind: rows["id"].filter(pc.equal(rows["kind"], kind)).combine_chunks() for kind in KINDS}
    )


def trends(
    connection: Reader, first: date, until: datetime, timezone: ZoneInfo, moved: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Return one row a partner and day: the findings present at its end, and those that came and went on it.

    Columns as in ``TREND``; ``partner`` is empty for findings of none. A finding that came and went within the day
    is in both. It counts for the partner that was noted when it came, or for the one that ``moved`` gives its id.
    """
    moved = moved or {}
    bound: dict[str, Any] = {"before": first - timedelta(days=1), "until": until, "zone": timezone.key}
    bound |= {"moved": list(moved), "partners": list(moved.values())}
    return pd.DataFrame(connection.execute(sa.text(_TRENDS), bound).all(), columns=list(TREND))


def all_partners(trends_of: pd.DataFrame) -> pd.DataFrame:
    """Return the sum of these trends: ``day``, ``present``, ``came``, ``went``."""
    return trends_of.groupby("day", as_index=False)[["present", "came", "went"]].sum()


_NOTED: Final = "SELECT EXISTS (SELECT 1 FROM audit.audit_runs WHERE as_of <= :end)"

_CHANGED: Final = pa.schema({"kind": pa.string(), "id": pa.large_string()})

_CHANGES: Final = """
    WITH lives AS (
        SELECT finding_id,
               bool_or(seen_at <= {start}) AS known,
               bool_or(seen_at <= {start} AND (gone_at IS NULL OR gone_at > {start})) AS at_start,
               bool_or(gone_at IS NULL OR gone_at > {end}) AS at_end
        FROM audit.finding_observations
        WHERE seen_at <= {end}
        GROUP BY finding_id
    )
    SELECT CASE WHEN at_start AND at_end THEN 'open' WHEN at_start THEN 'resolved'
                WHEN known THEN 'reopened' ELSE 'new' END AS kind,
           CAST(finding_id AS text) AS id
    FROM lives
    WHERE at_start OR at_end
    ORDER BY finding_id
"""

_TRENDS: Final = """
    WITH moved AS (
        SELECT unnest(CAST(:moved AS uuid[])) AS finding_id, unnest(CAST(:partners AS text[])) AS partner
    ),
    stretches AS (
        SELECT coalesce(moved.partner, noted.partner, '') AS partner, seen_at, gone_at
        FROM audit.finding_observations AS noted LEFT JOIN moved USING (finding_id)
        WHERE seen_at <= :until
    ),
    moves AS (
        SELECT partner, cast(seen_at AT TIME ZONE :zone AS date) AS day, 1 AS came, 0 AS went FROM stretches
        UNION ALL
        SELECT partner, cast(gone_at AT TIME ZONE :zone AS date), 0, 1 FROM stretches WHERE gone_at <= :until
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
        CROSS JOIN (SELECT DISTINCT partner FROM stretches) AS partners
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
