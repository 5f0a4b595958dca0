"""Note the findings that an audit of now saw, and read the lives of findings as of a moment."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import pandas as pd
import pyarrow as pa
import sqlalchemy as sa
from psycopg import sql
from sqlalchemy import Connection

from toolkit.domain.codes import CODES, Subject
from toolkit.storage.database import raw
from toolkit.storage.frames import read_arrow
from toolkit.storage.tables import audit_runs, finding_observations

PRESENT: Final = ("id", "code", "sale_id", "partner", "utility_group")
"""The columns of a table of findings that an audit saw."""

_LIVES: Final = pa.schema(
    {
        "id": pa.string(),
        "code": pa.string(),
        "sale_id": pa.string(),
        "partner": pa.string(),
        "utility_group": pa.string(),
        "first_seen": pa.timestamp("us", "UTC"),
        "opened_at": pa.timestamp("us", "UTC"),
        "closed_at": pa.timestamp("us", "UTC"),
        "stretches": pa.int64(),
    }
)


def note_findings(connection: Connection, present: pd.DataFrame, moment: datetime, *, with_files: bool) -> None:
    """Close the stretches of findings that an audit of ``moment`` did not see, and open those that are new.

    Findings about files are closed only ``with_files``: otherwise nobody looked. Whoever calls it holds the lock
    of the history. Where an audit of a later moment was noted before, nothing is written.
    """
    latest = sa.func.greatest(
        sa.func.max(finding_observations.c.seen_at), sa.func.max(finding_observations.c.gone_at)
    )
    noted: datetime | None = connection.scalar(sa.select(latest))
    if noted is not None and noted > moment:
        return
    looked_at = [code.code for code in CODES.values() if code.subject is Subject.SALE or with_files]
    driver = raw(connection)
    driver.execute(
        "CREATE TEMPORARY TABLE present_findings (finding_id uuid, code text, sale_id text, partner text, "
        "utility_group text) ON COMMIT DROP"
    )
    with driver.cursor() as cursor, cursor.copy("COPY present_findings FROM STDIN") as copy:
        rows = present[list(PRESENT)].astype(object)
        for row in rows.where(rows.notna(), None).itertuples(index=False, name=None):
            copy.write_row(row)
    driver.execute("ANALYZE present_findings")
    connection.execute(sa.text(_CLOSE), {"moment": moment, "codes": looked_at})
    connection.execute(sa.text(_OPEN), {"moment": moment})


def lives_at(connection: Connection, moment: datetime, *, sale_id: str | None = None) -> pd.DataFrame:
    """Return one row a finding that was seen by then: its first and latest opening, its end, and its stretches."""
    about = "" if sale_id is None else f"AND sale_id = {sql.Literal(sale_id).as_string()}"
    query = _LIVES_AT.format(moment=f"timestamptz '{moment.isoformat()}'", about=about)
    found: pd.DataFrame = read_arrow(connection, query, _LIVES).to_pandas()
    return found


def audits_until(connection: Connection, moment: datetime) -> list[datetime]:
    """Return the moments of the audits that noted findings, oldest first."""
    query = sa.select(audit_runs.c.as_of).where(audit_runs.c.as_of <= moment, audit_runs.c.with_files.is_not(None))
    return list(connection.scalars(query.order_by(audit_runs.c.as_of)))


_LIVES_AT: Final = """
    SELECT DISTINCT ON (finding_id)
           finding_id AS id, code, sale_id, partner, utility_group,
           min(seen_at) OVER life AS first_seen,
           seen_at AS opened_at,
           CASE WHEN gone_at <= {moment} THEN gone_at END AS closed_at,
           count(*) OVER life AS stretches
    FROM audit.finding_observations
    WHERE seen_at <= {moment} {about}
    WINDOW life AS (PARTITION BY finding_id)
    ORDER BY finding_id, seen_at DESC
"""

_CLOSE: Final = """
    UPDATE audit.finding_observations AS known
    SET gone_at = :moment
    WHERE gone_at IS NULL
      AND code = ANY(:codes)
      AND NOT EXISTS (SELECT FROM present_findings WHERE finding_id = known.finding_id)
"""

_OPEN: Final = """
    INSERT INTO audit.finding_observations (finding_id, code, sale_id, partner, utility_group, seen_at)
    SELECT finding_id, code, sale_id, partner, utility_group, :moment
    FROM present_findings AS present
    WHERE NOT EXISTS (
        SELECT FROM audit.finding_observations WHERE finding_id = present.finding_id AND gone_at IS NULL
    )
    ORDER BY finding_id
"""
"""Sorted, so that the rows are found before the first is inserted: else each looks through those before it."""
