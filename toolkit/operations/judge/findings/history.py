"""Note the findings that an audit of now saw, and read the lives of findings as of a moment."""

from datetime import datetime
from typing import Final

import pandas as pd
import pyarrow as pa
import sqlalchemy as sa
from psycopg import sql
from sqlalchemy import Connection

from toolkit.domain.codes import CODES, SaleWarning, Subject, missing_code
from toolkit.domain.finding_life import finding_id
from toolkit.storage.database import raw
from toolkit.storage.frames import read_arrow
from toolkit.storage.reader import Reader
from toolkit.storage.tables import audit_runs

PRESENT: Final = ("id", "code", "sale_id", "partner", "utility_group")
"""The columns of a table of findings that an audit saw."""

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


def note_findings(connection: Connection, judged: str, moment: datetime, *, touched: str | None = None) -> None:
    """Close the stretches of findings that an audit of ``moment`` did not see, and open those that are new.

    ``judged`` is the table of the sales that it judged, in the columns of ``missing_evidence``: all sales, or
    those of the table ``touched``, outside of which no finding came or went. Whoever calls it holds the lock of
    the history.
    """
    driver = raw(connection)
    driver.execute(_PRESENT.format(judged=judged).encode())
    driver.execute("ANALYZE present_findings")
    only = "" if touched is None else f"AND sale_id = ANY(ARRAY(SELECT sale_id FROM {touched}))"  # noqa: S608
    of_sales = [code.code for code in CODES.values() if code.subject is Subject.SALE]
    connection.execute(sa.text(_CLOSE.format(only=only)), {"moment": moment, "codes": of_sales})
    while fresh := connection.execute(sa.text(_NEW), {"rows": _AT_ONCE}).all():
        with driver.cursor() as cursor, cursor.copy(_OPEN) as copy:
            for code, sale_id, *about in fresh:
                copy.write_row((finding_id(code, sale_id), code, sale_id, *about, moment))


def note_file_findings(connection: Connection, present: pd.DataFrame, moment: datetime) -> None:
    """Do the same for findings about files, given in the columns of ``PRESENT``: all that there are."""
    looked_at = [code.code for code in CODES.values() if code.subject is Subject.FILE]
    bound = {"moment": moment, "codes": looked_at, "ids": present["id"].tolist()}
    connection.execute(sa.text(_CLOSE_OTHERS), bound)
    known = {str(each) for each in connection.scalars(sa.text(_KNOWN), {"codes": looked_at})}
    rows = present.loc[~present["id"].isin(known), list(PRESENT)].astype(object)
    with raw(connection).cursor() as cursor, cursor.copy(_OPEN) as copy:
        for row in rows.where(rows.notna(), None).itertuples(index=False, name=None):
            copy.write_row((*row, moment))


def lives_at(connection: Reader, moment: datetime, *, sale_id: str | None = None) -> pd.DataFrame:
    """Return one row a finding that was seen by then: its first and latest opening, its end, and its stretches.

    ``partner`` and ``utility_group`` are those of the sale at that moment, ``noted`` the partner at its opening.
    """
    about = "" if sale_id is None else f"AND sale_id = {sql.Literal(sale_id).as_string()}"
    query = _LIVES_AT.format(moment=f"timestamptz '{moment.isoformat()}'", about=about)
    found: pd.DataFrame = read_arrow(connection, query, _LIVES).to_pandas()
    return found


def without_sale(connection: Reader, since: datetime | None, moment: datetime) -> pa.Array:
    """Return the ids of the findings that ended after ``since`` and by ``moment`` because their sale was gone.

    Nothing was mended: the service held the sale no more when an audit looked. ``None`` takes all that ended.
    """
    began = "-infinity" if since is None else since.isoformat()
    query = _WITHOUT_SALE.format(since=f"timestamptz '{began}'", moment=f"timestamptz '{moment.isoformat()}'")
    return read_arrow(connection, query, pa.schema({"id": pa.large_string()}))["id"].combine_chunks()


def standing_findings(connection: Connection, *, with_files: bool) -> tuple[pd.DataFrame, int]:
    """Return the findings that an audit of now left, and the number of those that are gone.

    The first are counted (``findings``) by ``code``, ``openedAt``, whether they had been gone before (``again``),
    and ``partner`` and ``utilityGroup`` of the sale as it is judged; a finding alone has its ``id`` where it was
    noted under another partner, and its ``saleId`` where a waiver names the sale. ``with_files`` tells that the
    audit looked at files; otherwise the findings about them that were noted are counted.
    """
    bound = {
        kind: [code.code for code in CODES.values() if code.subject is subject] for kind, subject in _KINDS.items()
    }
    connection.execute(sa.text("SET LOCAL random_page_cost TO DEFAULT"))  # all that stand are read, by no index
    rows = connection.execute(sa.text(_STANDING), bound | {"with_files": with_files}).all()
    gone = connection.scalar(sa.text(_GONE))
    found = pd.DataFrame(rows, columns=list(STANDING))
    return found, gone - int(found.loc[found["again"], "findings"].sum())


def audits_until(connection: Reader, moment: datetime) -> list[datetime]:
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

STANDING: Final = ("id", "saleId", "partner", "utilityGroup", "code", "openedAt", "again", "findings")

_KINDS: Final = {"of_sales": Subject.SALE, "of_files": Subject.FILE}

_STANDING: Final = """
    WITH standing AS (
        SELECT finding_id, sale_id, code, seen_at, known.partner AS noted, sale.partner, sale.utility_group
        FROM audit.finding_observations AS known JOIN audit.judged_sales AS sale USING (sale_id)
        WHERE gone_at IS NULL AND code = ANY(:of_sales)
          AND (status <> 'compliant' OR problems <> '' OR client_id IS NULL)
        UNION ALL
        SELECT finding_id, sale_id, code, seen_at, known.partner,
               CASE WHEN :with_files OR known.sale_id = sale.sale_id THEN sale.partner ELSE known.partner END,
               CASE WHEN :with_files OR known.sale_id = sale.sale_id THEN sale.utility_group
                    ELSE known.utility_group END
        FROM audit.finding_observations AS known LEFT JOIN audit.judged_sales AS sale USING (sale_id)
        WHERE gone_at IS NULL AND code = ANY(:of_files)
    ),
    ended AS (SELECT DISTINCT finding_id FROM audit.finding_observations WHERE gone_at IS NOT NULL)
    SELECT CASE WHEN partner IS DISTINCT FROM noted THEN CAST(finding_id AS text) END,
           CASE WHEN sale_id IN (SELECT sale_id FROM audit.waivers) THEN sale_id END,
           partner, utility_group, code, seen_at, ended.finding_id IS NOT NULL, count(*)
    FROM standing LEFT JOIN ended USING (finding_id)
    GROUP BY 1, 2, 3, 4, 5, 6, 7
"""

_GONE: Final = "SELECT count(DISTINCT finding_id) FROM audit.finding_observations WHERE gone_at IS NOT NULL"

_MISSING: Final = missing_code("")

_PRESENT: Final = f"""
    CREATE TEMPORARY TABLE present_findings ON COMMIT DROP AS
    SELECT unnest(string_to_array(concat_ws(
               '|',
               nullif(problems, ''),
               '{_MISSING}' || replace(nullif(missing, ''), '|', '|{_MISSING}'),
               CASE WHEN client_id IS NULL THEN '{SaleWarning.WITHOUT_CLIENT}' END
           ), '|')) AS code,
           sale_id, partner, utility_group
    FROM {{judged}}
    WHERE problems <> '' OR missing <> '' OR client_id IS NULL
"""  # noqa: S608

_CLOSE: Final = """
    UPDATE audit.finding_observations AS known
    SET gone_at = :moment
    WHERE gone_at IS NULL AND code = ANY(:codes) {only}
      AND NOT EXISTS (SELECT FROM present_findings WHERE sale_id = known.sale_id AND code = known.code)
"""

_NEW: Final = """
    SELECT code, sale_id, partner, utility_group
    FROM present_findings AS present
    WHERE NOT EXISTS (
        SELECT FROM audit.finding_observations
        WHERE sale_id = present.sale_id AND code = present.code AND gone_at IS NULL
    )
    LIMIT :rows
"""

_OPEN: Final = """
    COPY audit.finding_observations (finding_id, code, sale_id, partner, utility_group, seen_at) FROM STDIN
"""

_AT_ONCE: Final = 50_000

_CLOSE_OTHERS: Final = """
    UPDATE audit.finding_observations
    SET gone_at = :moment
    WHERE gone_at IS NULL AND code = ANY(:codes) AND finding_id <> ALL(CAST(:ids AS uuid[]))
"""

_KNOWN: Final = "SELECT finding_id FROM audit.finding_observations WHERE gone_at IS NULL AND code = ANY(:codes)"
