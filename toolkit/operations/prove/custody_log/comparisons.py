"""The statements that find what the tables hold otherwise than the custody log.

Every event is followed to its row, and every row to its event. Rows that are older than the log have no event.
"""
# ruff: noqa: S608  # made of constants

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.domain.custody_events import CustodyEvent
from toolkit.operations.prove.custody_log.verification import Difference
from toolkit.storage.tables import evidence_observations, sale_observations

OF_SALES: Final = frozenset({CustodyEvent.SALES_OBSERVED, CustodyEvent.SALE_GONE})
OF_RECORDS: Final = frozenset({CustodyEvent.RECORDED, CustodyEvent.RECORD_CHANGED, CustodyEvent.RECORD_GONE})


@dataclass(frozen=True, slots=True)
class Sources:
    """The observations that are not in their tables, and the events that cannot be followed to theirs.

    ``moved`` holds a query for the rows of a table that were moved; ``differences`` tell why events are left out.
    """

    moved: Mapping[sa.Table, str] = field(default_factory=dict)
    left_out: frozenset[CustodyEvent] = frozenset()
    differences: tuple[Difference, ...] = ()

    def rows(self, table: sa.Table) -> str:
        """Return a query for all rows of a table."""
        columns = ", ".join(column.name for column in table.columns)
        moved = f" UNION ALL SELECT {columns} FROM ({self.moved[table]}) AS moved" if table in self.moved else ""
        return f"SELECT {columns} FROM {table.fullname}{moved}"


def differences(connection: Connection, sources: Sources) -> Iterator[Difference]:
    """Yield every difference of the tables, together with what was moved, from the log."""
    began = connection.execute(sa.text(_BEGAN)).one()._asdict()
    kinds = [*{*_HOW, CustodyEvent.RESTORED, CustodyEvent.RECORD_CHANGED} - sources.left_out]
    seen = f"""
        WITH sales AS NOT MATERIALIZED ({sources.rows(sale_observations)}),
             records AS NOT MATERIALIZED ({sources.rows(evidence_observations)})
    """
    for statement, kind in _STATEMENTS:
        if kind not in sources.left_out:
            found = connection.execute(sa.text(f"{seen} {statement} ORDER BY id"), {"kinds": kinds, **began})
            yield from (Difference(row.what, str(row.id), row.how) for row in found)


def _hash(*columns: str) -> str:
    return f"encode(sha256(convert_to(concat_ws(E'\\n', {', '.join(columns)}), 'UTF8')), 'hex')"


_BEGAN: Final = f"""
    SELECT min(happened_at) AS began,
           min(happened_at) FILTER (WHERE kind = '{CustodyEvent.SALES_OBSERVED}') AS sales_began
    FROM audit.custody_events
"""

_ISSUED_HASH: Final = _hash(
    *(f"record.{name}" for name in ("sale_id", "file_name", "file_format", "type", "object_key", "requested_by"))
)
_OBSERVED_HASH: Final = _hash(
    *(f"record.{name}" for name in ("sale_id", "evidence_type", "type", "object_key")),
    "extract(epoch FROM record.requested_at)",
    "extract(epoch FROM record.expires_at)",
)

_HOW: Final = {
    CustodyEvent.RECORDED: ("record", "was observed otherwise than the log holds"),
    CustodyEvent.RECORD_GONE: ("record", "was observed as gone otherwise than the log holds"),
    CustodyEvent.UPLOADED: ("file", "was observed otherwise than the log holds"),
    CustodyEvent.GONE: ("file", "was gone otherwise than the log holds"),
    CustodyEvent.VERIFIED: ("content", "was verified otherwise than the log holds"),
    CustodyEvent.AUDITED: ("audit", "ran otherwise than the log holds"),
    CustodyEvent.SALE_GONE: ("sales", "were gone otherwise than the log holds (the number of the observation)"),
    CustodyEvent.OBSERVATIONS_MOVED: ("month", "was moved otherwise than the log holds"),
}
"""The thing that an event tells of, and the meaning of a difference."""

_PAIRED: Final = f"""
    SELECT what, coalesce(seen.shown, event.shown) AS id, how
    FROM (
        SELECT '{CustodyEvent.RECORDED}' AS kind, id::text, evidence_id::text AS shown, seen_at AS at,
               {_OBSERVED_HASH} AS told
        FROM records AS record
        UNION ALL
        SELECT '{CustodyEvent.RECORD_GONE}', id::text, evidence_id::text, gone_at, '' FROM records
        WHERE gone_at IS NOT NULL
        UNION ALL
        SELECT '{CustodyEvent.UPLOADED}', id::text, id::text, seen_at, concat_ws('|', {_hash("key")}, etag, size)
        FROM audit.object_observations
        UNION ALL
        SELECT '{CustodyEvent.GONE}', id::text, id::text, gone_at, {_hash("key")} FROM audit.object_observations
        WHERE gone_at IS NOT NULL
        UNION ALL
        SELECT '{CustodyEvent.VERIFIED}', observation_id::text, observation_id::text, checked_at,
               concat_ws('|', sha256, kind, problem)
        FROM audit.content_checks WHERE sha256 IS NOT NULL
        UNION ALL
        SELECT '{CustodyEvent.AUDITED}', id::text, id::text, ran_at, concat_ws('|', sales, compliant)
        FROM audit.audit_runs
        UNION ALL
        SELECT '{CustodyEvent.SALE_GONE}', id::text, id::text, gone_at, '' FROM sales
        WHERE gone_at >= :sales_began
        UNION ALL
        SELECT '{CustodyEvent.OBSERVATIONS_MOVED}', id::text, id::text, moved_at,
               concat_ws('|', sha256, rows, manifests)
        FROM audit.moved_partitions
    ) AS seen
    FULL JOIN (
        SELECT CASE kind WHEN '{CustodyEvent.RESTORED}' THEN '{CustodyEvent.UPLOADED}'
                         WHEN '{CustodyEvent.RECORD_CHANGED}' THEN '{CustodyEvent.RECORDED}' ELSE kind END AS kind,
               coalesce(detail ->> 'observation', detail ->> 'run', detail ->> 'moved') AS id,
               coalesce(detail ->> 'evidence', detail ->> 'observation', detail ->> 'run', detail ->> 'moved')
                   AS shown,
               happened_at AS at,
               concat_ws('|', detail ->> 'record', detail ->> 'key', detail ->> 'etag', detail ->> 'size',
                         detail ->> 'sha256', detail ->> 'kind', detail ->> 'problem', detail ->> 'sales',
                         detail ->> 'compliant', detail ->> 'rows', detail ->> 'manifests') AS told
        FROM audit.custody_events
        WHERE kind = ANY(:kinds)
    ) AS event USING (kind, id, at, told)
    JOIN (VALUES {", ".join(f"('{kind}', '{what}', '{how}')" for kind, (what, how) in _HOW.items())})
        AS difference (kind, what, how) USING (kind)
    WHERE event.shown IS NULL AND at >= :began AND kind = ANY(:kinds) AND kind <> '{CustodyEvent.RECORDED}'
       OR seen.shown IS NULL
"""
"""Pair each row with its event, by what the event tells of it; a record that was issued here has none."""

_AS_ISSUED: Final = f"""
    SELECT 'record' AS what, record.id, 'is not as it was issued: its sale, file, type or key was changed' AS how
    FROM audit.custody_events AS event
    JOIN audit_service.evidences AS record ON record.id = (detail ->> 'evidence')::uuid
    WHERE kind = '{CustodyEvent.ISSUED}'
      AND (detail ->> 'record', detail ->> 'evidenceType')
       <> ({_ISSUED_HASH}, record.evidence_type)
"""

_LAST_OBSERVED: Final = f"""
    SELECT 'record' AS what, evidence AS id,
           CASE WHEN record.id IS NULL THEN 'is gone, and the log does not hold that'
                ELSE 'is not as it was last observed' END AS how
    FROM (
        SELECT DISTINCT ON (evidence) (detail ->> 'evidence')::uuid AS evidence, kind, detail ->> 'record' AS told
        FROM audit.custody_events
        WHERE kind IN ('{CustodyEvent.ISSUED}', '{"', '".join(sorted(OF_RECORDS))}')
        ORDER BY evidence, epoch DESC, transaction DESC, id DESC
    ) AS last
    LEFT JOIN audit_service.evidences AS record ON record.id = last.evidence
    WHERE kind <> '{CustodyEvent.RECORD_GONE}'
      AND (record.id IS NULL OR kind <> '{CustodyEvent.ISSUED}' AND told <> {_OBSERVED_HASH})
"""

_UNTOLD: Final = """
    SELECT 'record' AS what, evidence_id AS id,
           'was asked for here, or observed, and the log holds nothing of it' AS how
    FROM (
        (
            SELECT evidence_id FROM audit.evidence_requests
            UNION ALL
            SELECT evidence_id FROM records WHERE assumed_at IS NULL AND seen_at >= :began
        )
        EXCEPT
        SELECT (detail ->> 'evidence')::uuid FROM audit.custody_events WHERE detail ? 'evidence'
    ) AS record
"""

_WITHDRAWN: Final = f"""
    SELECT 'withdrawal' AS what, coalesce(seen.evidence_id, event.evidence_id) AS id,
           'is not as the log holds it' AS how
    FROM audit.withdrawals AS seen
    FULL JOIN (
        SELECT (detail ->> 'evidence')::uuid AS evidence_id, happened_at, detail
        FROM audit.custody_events WHERE kind = '{CustodyEvent.WITHDRAWN}'
    ) AS event
        ON seen.evidence_id = event.evidence_id AND {
    " AND ".join(
        f"coalesce(detail ->> '{told}', {_hash(column)}) = {_hash(column)}"
        for told, column in (("by", "withdrawn_by"), ("approvedBy", "approved_by"), ("reason", "reason"))
    )
}
    WHERE event.evidence_id IS NULL AND withdrawn_at >= :began OR seen.evidence_id IS NULL
"""
"""The log of an older toolkit has no hashes of who withdrew a record, and why."""

_SALES_OBSERVED: Final = f"""
    SELECT 'sales' AS what, concat_ws('-', coalesce(first, min(seen.id)), coalesce(last, max(seen.id))) AS id,
           'were observed otherwise than the log holds (the numbers of the observations)' AS how
    FROM sales AS seen
    FULL JOIN (
        SELECT told.*, first / 1000 AS part
        FROM audit.custody_events,
             jsonb_to_record(detail) AS told (first bigint, last bigint, count bigint, sales text)
        WHERE kind = '{CustodyEvent.SALES_OBSERVED}'
    ) AS told ON seen.id / 1000 = told.part AND seen.id BETWEEN told.first AND told.last
    GROUP BY first, last, count, sales
    HAVING first IS NULL
        OR (count(seen.id), encode(sha256(convert_to(string_agg(
                ROW(seen.id, seen.sale_id, seen.client_id, seen.utility_group,
                    seen.is_client_financial_responsible, seen.partner, extract(epoch FROM seen.created_at),
                    extract(epoch FROM seen.completed_at), extract(epoch FROM seen.seen_at))::text,
                '' ORDER BY seen.id), 'UTF8')), 'hex'))
           IS DISTINCT FROM (count, sales)
"""

_SALE_CHANGED: Final = """
    SELECT 'sale' AS what, sale.id,
           'is not as it was last observed: its client, group, payer or partner was changed since' AS how
    FROM audit_service.sales AS sale
    JOIN audit.sale_observations AS seen ON seen.sale_id = sale.id AND seen.gone_at IS NULL
    WHERE (sale.client_id, sale.utility_group, sale.is_client_financial_responsible,
           nullif(btrim(sale.partner), ''))
        IS DISTINCT FROM
          (seen.client_id, seen.utility_group, seen.is_client_financial_responsible, seen.partner)
"""

_COMPLETED: Final = f"""
    SELECT 'sale' AS what, told.sale AS id,
           'was completed at another time than the log holds, or its completion was undone' AS how
    FROM (
        SELECT DISTINCT ON (sale) detail ->> 'sale' AS sale, happened_at
        FROM audit.custody_events
        WHERE kind = '{CustodyEvent.COMPLETED}'
        ORDER BY sale, epoch DESC, transaction DESC, id DESC
    ) AS told
    LEFT JOIN audit_service.sales AS sale ON told.sale = {_hash("sale.id")}
    WHERE sale.completed_at IS DISTINCT FROM told.happened_at
"""

_STATEMENTS: Final = (
    (_PAIRED, None),
    (_AS_ISSUED, None),
    (_LAST_OBSERVED, None),
    (_UNTOLD, None),
    (_WITHDRAWN, None),
    (_SALES_OBSERVED, CustodyEvent.SALES_OBSERVED),
    (_SALE_CHANGED, None),
    (_COMPLETED, None),
)
"""The statements, and the event that one is about alone."""
