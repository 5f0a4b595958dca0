"""Read the histories of findings as of a moment."""

from datetime import datetime
from typing import Final

import pandas as pd
import pyarrow as pa
import sqlalchemy as sa
from psycopg import sql
from sqlalchemy import Connection

from toolkit.database.frames import read_arrow
from toolkit.database.tables import audit_runs

_FEW: Final = pa.dictionary(pa.int32(), pa.string())
"""A column with few distinct values, each of which is stored once."""

_LIVES: Final = pa.schema(
    {
        "id": pa.string(),
        "code": pa.string(),
        "sale_id": pa.string(),
        "partner": _FEW,
        "utility_group": _FEW,
        "noted": _FEW,
        "first_seen": pa.timestamp("us", "UTC"),
        "opened_at": pa.timestamp("us", "UTC"),
        "closed_at": pa.timestamp("us", "UTC"),
        "stretches": pa.int64(),
    }
)


def lives_at(connection: Connection, moment: datetime, *, sale_id: str | None = None) -> pd.DataFrame:
    """Return one row a finding that was seen by then: its first and latest opening, its end, and its stretches.

    ``partner`` and ``utility_group`` are those of the sale at that moment, ``noted`` the partner at its opening.
    """
    about = "" if sale_id is None else f"AND sale_id = {sql.Literal(sale_id).as_string()}"
    query = _LIVES_AT.format(moment=f"timestamptz '{moment.isoformat()}'", about=about)
    found: pd.DataFrame = read_arrow(connection, query, _LIVES).to_pandas()
    return found


def without_sale(connection: Connection, since: datetime | None, moment: datetime) -> pa.Array:
    """Return the ids of the findings that ended after ``since`` and by ``moment`` because their sale was gone.

    Nothing was mended: the service held the sale no more when an audit looked. ``None`` takes all that ended.
    """
    began = "-infinity" if since is None else since.isoformat()
    query = _WITHOUT_SALE.format(since=f"timestamptz '{began}'", moment=f"timestamptz '{moment.isoformat()}'")
    return read_arrow(connection, query, pa.schema({"id": pa.large_string()}))["id"].combine_chunks()


def audits_until(connection: Connection, moment: datetime) -> list[datetime]:
    """Return the moments of the audits that noted findings, oldest first."""
    query = sa.select(audit_runs.c.as_of).where(audit_runs.c.as_of <= moment, audit_runs.c.with_files.is_not(None))
    return list(connection.scalars(query.order_by(audit_runs.c.as_of)))


_LIVES_AT: Final = """
    SELECT CAST(finding_id AS text) AS id, code, sale_id,
           CASE WHEN sale.sale_id IS NULL THEN noted ELSE sale.partner END AS partner,
           CASE WHEN sale.sale_id IS NULL THEN life.utility_group ELSE sale.utility_group END AS utility_group,
           noted, first_seen, opened_at, closed_at, stretches
    FROM (
        SELECT DISTINCT ON (finding_id)
               finding_id, code, sale_id, partner AS noted, utility_group,
               min(seen_at) OVER life AS first_seen,
               seen_at AS opened_at,
               CASE WHEN gone_at <= {moment} THEN gone_at END AS closed_at,
               count(*) OVER life AS stretches
        FROM audit.finding_observations
        WHERE seen_at <= {moment} {about}
        WINDOW life AS (PARTITION BY finding_id)
        ORDER BY finding_id, seen_at DESC
    ) AS life
    LEFT JOIN (
        SELECT sale_id, partner, utility_group
        FROM audit.sale_observations
        WHERE seen_at <= {moment} AND (gone_at IS NULL OR gone_at > {moment}) {about}
    ) AS sale USING (sale_id)
    ORDER BY finding_id
"""

_WITHOUT_SALE: Final = """
    WITH ended AS (
        SELECT DISTINCT ON (finding_id) finding_id, sale_id, seen_at, gone_at
        FROM audit.finding_observations
        WHERE gone_at > {since} AND gone_at <= {moment} AND sale_id IS NOT NULL
        ORDER BY finding_id, gone_at DESC
    ),
    gone AS (
        SELECT sale_id, gone_at FROM audit.sale_observations
        WHERE gone_at > (SELECT coalesce(max(as_of), '-infinity') FROM audit.audit_runs WHERE as_of <= {since})
          AND gone_at <= {moment} AND sale_id IN (SELECT sale_id FROM ended)
    ),
    came AS (
        SELECT sale_id, seen_at FROM audit.sale_observations
        WHERE seen_at >= (SELECT min(gone_at) FROM gone) AND seen_at <= {moment}
    )
    SELECT DISTINCT CAST(finding_id AS text) AS id
    FROM ended JOIN gone ON gone.sale_id = ended.sale_id
                        AND gone.gone_at > ended.seen_at AND gone.gone_at <= ended.gone_at
    WHERE NOT EXISTS (
        SELECT 1 FROM came
        WHERE came.sale_id = ended.sale_id AND came.seen_at >= gone.gone_at AND came.seen_at <= ended.gone_at
    )
    ORDER BY id
"""
"""A sale of which a new observation began when the last one ended was changed, and is there."""
