"""Find evidence files that were used twice, came late, were replaced, or belong to another or to no record.

Records without an object are the audit's. Withdrawn records are left out: withdrawing is how a finding is mended.
Files are compared by the SHA-256 of their bytes, so reuse is found among those that were verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection, Row

from toolkit.domain.integrity import LAYOUT, IntegrityFinding, IntegrityProblem, same_type
from toolkit.operations import Clock
from toolkit.storage.database import Database, writes_nothing
from toolkit.storage.observation_clock import final_moment

EXAMPLES: Final = 5
"""Objects outside the layout that are named."""

LATE_BY: Final = timedelta(minutes=15)
"""The time after the end of its credentials in which a file may be written by an upload that began before."""


def integrity_findings(database: Database, clock: Clock) -> list[IntegrityFinding]:
    """Return every finding about the objects that are in the bucket now, gravest first.

    Only what ``toolkit bucket sync`` and ``toolkit evidence verify`` saw is looked at.
    """
    moment = final_moment(database, clock)
    with database.snapshot() as connection:
        return integrity_findings_at(connection, moment)


def records_of_unknown_partners(database: Database) -> int:
    """Count the records, not withdrawn, for which no partner was noted when they were requested.

    Another system stored them, or this one before it took note: somebody else may have requested them.
    """
    with database.transaction() as connection:
        count: int = connection.execute(sa.text(_UNKNOWN_PARTNERS)).scalar_one()
    return count


def integrity_findings_at(connection: Connection, moment: datetime) -> list[IntegrityFinding]:
    """Return the same as of a moment, as this connection sees the database, once in its transaction.

    Where the session may write, the files are put together once for all who look; else by each that does.
    """
    look = partial(_rows, connection, moment, put_together=writes_nothing(connection))
    if not writes_nothing(connection):
        for name, query in _PUT_TOGETHER.items():
            bound = {"moment": moment}
            connection.execute(sa.text(f"CREATE TEMPORARY TABLE {name} ON COMMIT DROP AS {query}"), bound)
    return [finding for find in _FINDERS for finding in find(look)]


Look = Callable[..., Iterable[Row[Any]]]
"""Returns the rows of a query with named bound values."""


def _rows(
    connection: Connection, moment: datetime, query: str, *, put_together: bool, **bound: object
) -> Iterable[Row[Any]]:
    if put_together:
        tables = ", ".join(f"{name} AS MATERIALIZED ({each})" for name, each in _PUT_TOGETHER.items())
        query = f"WITH {tables} SELECT * FROM ({query}) AS found"  # noqa: S608  # made of constants
    return connection.execute(sa.text(query), {"moment": moment, **bound})


def _reused(look: Look) -> Iterator[IntegrityFinding]:
    for row in look(_REUSED):
        yield _finding(IntegrityProblem.CONTENT_REUSED, row, f"SHA-256 {row.sha256}")


def _alike(look: Look) -> Iterator[IntegrityFinding]:
    for row in look(_ALIKE):
        yield _finding(IntegrityProblem.CONTENT_ALIKE, row, f"SHA-256 of the content {row.normal_form}")


def _overwritten(look: Look) -> Iterator[IntegrityFinding]:
    for row in look(_OVERWRITTEN):
        yield _finding(IntegrityProblem.OVERWRITTEN, row, f"replaced at {row.replaced_at:%Y-%m-%d %H:%M} UTC")


def _requested_by_other(look: Look) -> Iterator[IntegrityFinding]:
    for row in look(_REQUESTED_BY_OTHER):
        yield _finding(IntegrityProblem.REQUESTED_BY_OTHER, row, f"requested for {row.partner}")


def _written_late(look: Look) -> Iterator[IntegrityFinding]:
    for row in look(_WRITTEN_LATE, late_by=LATE_BY):
        yield _finding(IntegrityProblem.WRITTEN_LATE, row, f"late by {str(row.late).partition('.')[0]}")


def _repeated(look: Look) -> Iterator[IntegrityFinding]:
    for row in look(_REPEATED):
        yield _finding(IntegrityProblem.CONTENT_REPEATED, row, " and ".join(row.evidence_types))


def _type_differs(look: Look) -> Iterator[IntegrityFinding]:
    for row in look(_DECLARED_OTHERWISE):
        if not same_type(row.declared, row.media_type):
            yield _finding(IntegrityProblem.TYPE_DIFFERS, row, f"declared {row.declared}, is {row.media_type}")


def _without_record(look: Look) -> Iterator[IntegrityFinding]:
    for row in look(_WITHOUT_RECORD, layout=_LAYOUT):
        yield IntegrityFinding(IntegrityProblem.OBJECT_WITHOUT_RECORD, (row.key,))


def _outside_layout(look: Look) -> Iterator[IntegrityFinding]:
    """Yield one finding for all of them: a bucket that others use too may hold any number."""
    for row in look(_OUTSIDE_LAYOUT, layout=_LAYOUT, examples=EXAMPLES):
        if not row.objects:
            return
        detail = f"{row.objects:,} objects" if row.objects > 1 else ""
        detail += f", of which the first {EXAMPLES} are named" if row.objects > EXAMPLES else ""
        yield IntegrityFinding(IntegrityProblem.KEY_OUTSIDE_LAYOUT, tuple(row.keys), detail=detail)


def _finding(problem: IntegrityProblem, row: Row[Any], detail: str) -> IntegrityFinding:
    return IntegrityFinding(problem, tuple(row.keys), tuple(row.evidence_ids), tuple(row.sale_ids), detail)


_FINDERS: Final[tuple[Callable[[Look], Iterator[IntegrityFinding]], ...]] = (
    _reused,
    _alike,
    _overwritten,
    _requested_by_other,
    _written_late,
    _repeated,
    _type_differs,
    _without_record,
    _outside_layout,
)

_LAYOUT: Final = f"^{LAYOUT.pattern}$"

_HELD: Final = "{0}.seen_at <= :moment AND ({0}.gone_at IS NULL OR {0}.gone_at > :moment)"

_SEEN: Final = _HELD.format("seen")

_STANDING: Final = f"""
    {_HELD.format("record")}
      AND NOT EXISTS (
          SELECT FROM audit.withdrawals
          WHERE withdrawals.evidence_id = record.evidence_id AND withdrawn_at <= :moment
      )
"""
"""The condition that a record is there and not withdrawn."""

_PUT_TOGETHER: Final = {
    "checked": """
        SELECT DISTINCT ON (observation_id) observation_id, sha256, normal_form, media_type
        FROM audit.content_checks
        WHERE media_type IS NOT NULL AND checked_at <= :moment
        ORDER BY observation_id, id DESC
    """,
    "stored": f"""
        SELECT seen.key, seen.size, least(seen.last_modified, seen.seen_at) AS written_at,
               record.evidence_id AS id, record.sale_id, record.evidence_type, record.type AS declared,
               record.expires_at, checked.sha256, checked.normal_form, checked.media_type
        FROM audit.object_observations AS seen
        JOIN audit.evidence_observations AS record ON record.object_key = seen.key
        LEFT JOIN checked ON checked.observation_id = seen.id
        WHERE {_SEEN} AND {_STANDING}
    """,  # noqa: S608  # made of constants, as are those below
}
"""The contents as they were looked at last, and the files that count. What was seen had been written by then."""

_REUSED: Final = """
    SELECT sha256,
           array_agg(key ORDER BY key) AS keys,
           array_agg(id ORDER BY id) AS evidence_ids,
           array_agg(DISTINCT sale_id ORDER BY sale_id) AS sale_ids
    FROM stored
    WHERE sha256 IS NOT NULL AND size > 0
    GROUP BY sha256
    HAVING count(DISTINCT sale_id) > 1
    ORDER BY sha256
"""

_ALIKE: Final = """
    SELECT normal_form,
           array_agg(key ORDER BY key) AS keys,
           array_agg(id ORDER BY id) AS evidence_ids,
           array_agg(DISTINCT sale_id ORDER BY sale_id) AS sale_ids
    FROM stored
    WHERE normal_form IS NOT NULL
    GROUP BY normal_form
    HAVING count(DISTINCT sale_id) > 1 AND count(DISTINCT sha256) > 1
    ORDER BY normal_form
"""

_REPEATED: Final = """
    SELECT array_agg(key ORDER BY key) AS keys,
           array_agg(id ORDER BY id) AS evidence_ids,
           ARRAY[sale_id] AS sale_ids,
           array_agg(DISTINCT evidence_type ORDER BY evidence_type) AS evidence_types
    FROM stored
    WHERE sha256 IS NOT NULL AND size > 0
    GROUP BY sale_id, sha256
    HAVING count(DISTINCT evidence_type) > 1
    ORDER BY sale_id, sha256
"""

_OVERWRITTEN: Final = f"""
    WITH replaced AS (
        SELECT DISTINCT key FROM audit.object_observations WHERE gone_at <= :moment
    ),
    seen AS (
        SELECT observed.id, observed.key, observed.size, observed.etag, observed.seen_at, checked.sha256
        FROM replaced
        JOIN audit.object_observations AS observed USING (key)
        LEFT JOIN checked ON checked.observation_id = observed.id
        WHERE observed.seen_at <= :moment
    ),
    first AS (SELECT DISTINCT ON (key) * FROM seen ORDER BY key, id)
    SELECT ARRAY[record.object_key] AS keys, ARRAY[record.evidence_id] AS evidence_ids,
           ARRAY[record.sale_id] AS sale_ids, min(later.seen_at) AT TIME ZONE 'UTC' AS replaced_at
    FROM audit.evidence_observations AS record
    JOIN first ON first.key = record.object_key
    JOIN seen AS later ON later.key = first.key AND later.id > first.id
    WHERE coalesce(later.sha256 <> first.sha256, (later.size, later.etag) <> (first.size, first.etag))
      AND {_STANDING}
    GROUP BY record.evidence_id, record.object_key, record.sale_id
    ORDER BY record.object_key
"""  # noqa: S608
"""Selects files that were replaced after they were first seen, whatever lies there now."""

_REQUESTED_BY_OTHER: Final = f"""
    SELECT ARRAY[record.object_key] AS keys, ARRAY[record.evidence_id] AS evidence_ids,
           ARRAY[record.sale_id] AS sale_ids, asked.partner
    FROM audit.evidence_requests AS asked
    JOIN audit.evidence_observations AS record ON record.evidence_id = asked.evidence_id
    JOIN audit.sale_observations AS sale ON sale.sale_id = record.sale_id
    WHERE asked.partner <> sale.partner AND {_STANDING} AND {_HELD.format("sale")}
    ORDER BY record.object_key
"""  # noqa: S608
"""Selects records without a file as well: with their credentials one may still be uploaded."""

_UNKNOWN_PARTNERS: Final = """
    SELECT count(*)
    FROM audit_service.evidences AS record
    WHERE NOT EXISTS (SELECT FROM audit.evidence_requests WHERE evidence_id = record.id)
      AND NOT EXISTS (SELECT FROM audit.withdrawals WHERE evidence_id = record.id)
"""

_WRITTEN_LATE: Final = """
    SELECT ARRAY[key] AS keys, ARRAY[id] AS evidence_ids, ARRAY[sale_id] AS sale_ids,
           written_at - expires_at AS late
    FROM stored
    WHERE written_at > expires_at + :late_by
    ORDER BY key
"""

_DECLARED_OTHERWISE: Final = """
    SELECT ARRAY[key] AS keys, ARRAY[id] AS evidence_ids, ARRAY[sale_id] AS sale_ids, declared, media_type
    FROM stored
    WHERE split_part(lower(declared), '/', 1) = split_part(media_type, '/', 1)
      AND lower(declared) <> media_type
    ORDER BY key
"""

_UNRECORDED: Final = f"""
    FROM audit.object_observations AS seen
    WHERE {_SEEN}
      AND NOT EXISTS (
          SELECT FROM audit.evidence_observations AS record
          WHERE record.object_key = seen.key AND {_HELD.format("record")}
      )
"""

_WITHOUT_RECORD: Final = f"SELECT key {_UNRECORDED} AND key ~ :layout ORDER BY key"

_OUTSIDE_LAYOUT: Final = f"""
    WITH outside AS (SELECT key {_UNRECORDED} AND key !~ :layout)
    SELECT (SELECT count(*) FROM outside) AS objects,
           ARRAY(SELECT key FROM outside ORDER BY key LIMIT :examples) AS keys
"""  # noqa: S608
