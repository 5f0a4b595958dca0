"""The difference between the findings of two moments, and their number from day to day.

Both are read from the episodes that the audits noted: a moment between two audits is answered by the earlier one.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

import pandas as pd
import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.audit.duckdb_session import duckdb_session
from toolkit.audit.findings import find_history, trend_query
from toolkit.contract.codes import SALE_GONE
from toolkit.database.connection import Database
from toolkit.database.tables import audit_runs
from toolkit.errors import InvalidInput, NothingEvaluated

CHANGED: Final = ("new", "resolved", "reopened")  # the changes that a finding can undergo between two moments

KINDS: Final = (*CHANGED, "open")

BETWEEN: Final = "between"  # came and went between two moments: the finding of neither


@dataclass(frozen=True, eq=False)
class FindingChanges:
    """The findings of two moments by what happened between them.

    The findings of the first moment without the ``resolved`` ones, and with the ``new`` and the ``reopened`` ones,
    are those of the second. ``open`` ones are in both. Waived findings are findings, too.
    """

    start: datetime
    end: datetime
    findings: pd.DataFrame
    """One row a finding, by id: ``change`` (one of ``KINDS``, or ``BETWEEN``), ``code``, ``sale_id``, ``partner``,
    ``reason``, ``opened_at``, ``closed_at``."""
    by_day: pd.DataFrame
    """One row a day: ``day``, the findings ``present`` at its end, and those that ``came`` and ``went`` on it."""
    first: bool
    """Tells that no audit had been made by the first moment."""

    def ids(self, kind: str) -> list[str]:
        """Return the ids of the findings of a kind, in their order."""
        return list(self.findings.index[self.findings["change"] == kind])

    @property
    def without_sale(self) -> list[str]:
        """The ids of the resolved ones that nobody mended: their sale was gone when an audit looked."""
        gone = (self.findings["change"] == "resolved") & (self.findings["reason"] == SALE_GONE)
        return list(self.findings.index[gone])


def changes_between(place: Database, start: datetime, end: datetime, zone: ZoneInfo) -> FindingChanges:
    """Compare the findings that the audits had noted by two moments; ``zone`` is that of the days.

    Raises:
        InvalidInput: the first moment lies after the second.
        NothingEvaluated: no audit had been made by the second.
    """
    if start > end:
        raise InvalidInput("The first moment lies after the second: a change goes from the earlier to the later.")
    from toolkit.audit.extract import extract_history  # Ibis with it, which reports of a folder do without

    with place.snapshot() as connection, duckdb_session() as session:
        audits = audits_until(connection, end)
        if not audits:
            raise NothingEvaluated(
                "Nothing was evaluated: no audit had been made by {}. Run: toolkit audit",
                end.isoformat(timespec="seconds"),
            )
        extract_history(connection, end, session)
        session.execute(_PRESENT)
        find_history(session, end, start, audits, zone.key)
        findings = session.sql(_CHANGES, params={"start": start}).to_arrow_table().to_pandas().set_index("id")
        trend = trend_query(end, start.astimezone(zone).date(), zone)
        by_day = session.sql(BY_DAY.format(trend=trend)).to_arrow_table().to_pandas()
    return FindingChanges(start, end, findings, by_day, first=min(audits) > start)


def audits_until(connection: Connection, moment: datetime) -> list[datetime]:
    """Return the moments of the audits that noted findings, oldest first."""
    query = sa.select(audit_runs.c.as_of).where(audit_runs.c.as_of <= moment, audit_runs.c.with_files.is_not(None))
    return list(connection.scalars(query.order_by(audit_runs.c.as_of)))


_PRESENT: Final = """
    CREATE OR REPLACE TABLE present AS
    SELECT finding_id AS id, episode.code, sale_id,
           CASE WHEN sale.sale_id IS NULL THEN episode.partner ELSE sale.partner END AS partner,
           CASE WHEN sale.sale_id IS NULL THEN episode.utility_group ELSE sale.utility_group END AS utility_group,
           CAST(NULL AS VARCHAR) AS reason
    FROM episode LEFT JOIN sale USING (sale_id)
    WHERE gone_at IS NULL
"""

_CHANGES: Final = f"""
    SELECT CAST(id AS VARCHAR) AS id, coalesce(change, '{BETWEEN}') AS change,
           code, sale_id, partner, reason, opened_at, closed_at
    FROM history WHERE change IS NOT NULL OR (resolved AND opened_at > $start) ORDER BY id
"""

BY_DAY: Final = """
    SELECT day, CAST(sum(present) AS BIGINT) AS present, CAST(sum(came) AS BIGINT) AS came,
           CAST(sum(went) AS BIGINT) AS went
    FROM ({trend}) GROUP BY day ORDER BY day
"""
