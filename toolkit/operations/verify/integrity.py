"""Find evidence files that were used twice, came late, were replaced, or belong to another or to no record.

Records without an object are the audit's. Withdrawn records are left out: withdrawing is how a finding is mended.
Files are compared by the SHA-256 of their bytes, so reuse is found among those that were verified, and where a
service gives one object to several records.
"""
# ruff: noqa: S608  # statements are made of constants

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import sqlalchemy as sa

from toolkit.domain.integrity import HASH, LAYOUT, IntegrityFinding, IntegrityProblem, same_type
from toolkit.storage.reader import Reader

EXAMPLES: Final = 5
"""Objects outside the layout that are named."""

LATE_BY: Final = timedelta(minutes=15)
"""The time after the end of its credentials in which a file may be written by an upload that began before."""

NEUTRAL_TYPES: Final = ("binary/octet-stream", "application/octet-stream")
"""Media types with which servers store what was posted without any: a browser shows none of them."""


def records_of_unknown_partners(connection: Reader, moment: datetime) -> int:
    """Return the number of records, not withdrawn, of which nobody noted for which partner they were requested.

    Another system stored them, or this one before it took note: somebody else may have requested them.
    """
    count: int = connection.execute(sa.text(_UNKNOWN_PARTNERS), {"moment": moment}).scalar_one()
    return count


def integrity_findings_at(
    connection: Reader, moment: datetime, *, layout: str = LAYOUT.pattern, examples: int = EXAMPLES
) -> list[IntegrityFinding]:
    """Return every finding about the objects that were in the bucket at a moment, gravest first.

    Only what ``toolkit bucket sync`` and ``toolkit evidence verify`` saw is looked at, and nothing is written.
    ``layout`` matches the keys of the objects of records, where other names stand for them; ``examples`` objects
    outside of it are named.
    """
    bound = {
        "moment": moment,
        "layout": f"^{layout}$",
        "examples": examples,
        "late_by": LATE_BY,
        "neutral": list(NEUTRAL_TYPES),
    }
    found = []
    for row in connection.execute(sa.text(_FINDINGS), bound):
        problem = IntegrityProblem(row.problem)
        detail = _DETAILS[problem](row.detail) if problem in _DETAILS else row.detail
        if detail is not None:
            ids, sale_ids = tuple(row.evidence_ids or ()), tuple(row.sale_ids or ())
            found.append(IntegrityFinding(problem, tuple(row.keys), ids, sale_ids, detail))
    return found


def _replaced(seconds: str) -> str:
    return f"replaced at {datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%d %H:%M} UTC"


def _late(seconds: str) -> str:
    return f"late by {timedelta(seconds=int(seconds))}"


def _other_type(types: str) -> str | None:
    declared, _, actual = types.rpartition("\n")
    return None if same_type(declared, actual) else f"declared {declared}, is {actual}"


def _stored_otherwise(types: str) -> str | None:
    declared, _, stored = types.rpartition("\n")
    named = stored.partition(";")[0].strip().lower()
    return None if same_type(declared, named) else f"declared {declared}, stored as {stored}"


def _objects(count: str) -> str:
    few = "" if int(count) <= EXAMPLES else f", of which the first {EXAMPLES} are named"
    return f"{int(count):,} objects{few}" if int(count) > 1 else ""


_DETAILS: Final[Mapping[IntegrityProblem, Callable[[str], str | None]]] = {
    IntegrityProblem.STORED_TYPE_DIFFERS: _stored_otherwise,
    IntegrityProblem.OVERWRITTEN: _replaced,
    IntegrityProblem.WRITTEN_LATE: _late,
    IntegrityProblem.TYPE_DIFFERS: _other_type,
    IntegrityProblem.KEY_OUTSIDE_LAYOUT: _objects,
}
"""Details that are not told as the statement gives them; ``None`` where there is no finding after all."""

_HELD: Final = "{0}.seen_at <= :moment AND ({0}.gone_at IS NULL OR {0}.gone_at > :moment)"

_STANDING: Final = f"""
    {_HELD.format("record")}
    AND NOT EXISTS (
        SELECT 1 FROM audit.withdrawals
        WHERE withdrawals.evidence_id = record.evidence_id AND withdrawn_at <= :moment
    )
"""
"""The condition that a record is there and not withdrawn."""

_OF_FILES: Final = """
    array_agg(key ORDER BY key) AS keys,
    array_agg(id ORDER BY id) AS evidence_ids,
    array_agg(DISTINCT sale_id ORDER BY sale_id) AS sale_ids
"""

_OF_FILE: Final = "ARRAY[key] AS keys, ARRAY[id] AS evidence_ids, ARRAY[sale_id] AS sale_ids"

_OF_RECORD: Final = """
    ARRAY[record.object_key] AS keys, ARRAY[record.evidence_id] AS evidence_ids, ARRAY[record.sale_id] AS sale_ids
"""

_ACTIVE: Final = "array_remove(array_remove(active_parts, 'LINK'), 'BLANK')"

_FINDERS: Final = {
    IntegrityProblem.CONTENT_REUSED: f"""
        SELECT {_OF_FILES}, coalesce('{HASH} ' || min(sha256), 'one object of several records') AS detail
        FROM compared
        GROUP BY content
        HAVING count(DISTINCT sale_id) > 1
    """,
    IntegrityProblem.CONTENT_ALIKE: f"""
        SELECT {_OF_FILES}, '{HASH} of the content ' || normal_form
        FROM stored
        WHERE normal_form IS NOT NULL
        GROUP BY normal_form
        HAVING count(DISTINCT sale_id) > 1 AND count(DISTINCT sha256) > 1
    """,
    # A file that was ever another one than the first that was seen, whatever lies there now.
    IntegrityProblem.OVERWRITTEN: f"""
        SELECT {_OF_RECORD},
               trunc(extract(epoch FROM min(later.seen_at)))::bigint::text
        FROM audit.evidence_observations AS record
        JOIN first ON first.key = record.object_key
        JOIN versions AS later ON later.key = first.key AND later.id > first.id
        WHERE coalesce(later.sha256 <> first.sha256, (later.size, later.etag) <> (first.size, first.etag))
          AND {_STANDING}
        GROUP BY record.evidence_id, record.object_key, record.sale_id
    """,
    # A record without a file, too: with its credentials one may still come.
    IntegrityProblem.REQUESTED_BY_OTHER: f"""
        SELECT {_OF_RECORD}, 'requested for ' || asked.partner
        FROM audit.evidence_requests AS asked
        JOIN audit.evidence_observations AS record ON record.evidence_id = asked.evidence_id
        JOIN audit.sale_observations AS sale ON sale.sale_id = record.sale_id
        WHERE asked.partner <> sale.partner AND {_STANDING} AND {_HELD.format("sale")}
    """,
    IntegrityProblem.ACTIVE_CONTENT: f"""
        SELECT {_OF_FILE}, lower(array_to_string({_ACTIVE}, ', '))
        FROM stored
        WHERE split_part(media_type, '/', 1) <> 'audio' AND cardinality({_ACTIVE}) > 0
    """,
    IntegrityProblem.BLANK_DOCUMENT: f"""
        SELECT {_OF_FILE}, '' FROM stored WHERE 'BLANK' = ANY(active_parts)
    """,
    IntegrityProblem.STORED_TYPE_DIFFERS: f"""
        SELECT {_OF_FILE}, declared || E'\\n' || stored_type
        FROM stored
        WHERE stored_type <> '' AND NOT lower(stored_type) = ANY(:neutral)
    """,
    IntegrityProblem.WRITTEN_LATE: f"""
        SELECT {_OF_FILE}, trunc(extract(epoch FROM written_at - expires_at))::bigint::text
        FROM stored
        WHERE written_at > expires_at + :late_by
    """,
    IntegrityProblem.CONTENT_REPEATED: f"""
        SELECT {_OF_FILES},
               string_agg(DISTINCT evidence_type, ' and ' ORDER BY evidence_type)
               || coalesce(', {HASH} ' || min(sha256), '')
        FROM compared
        GROUP BY sale_id, content
        HAVING count(DISTINCT evidence_type) > 1
    """,
    IntegrityProblem.TYPE_DIFFERS: f"""
        SELECT {_OF_FILE}, declared || E'\n' || media_type
        FROM stored
        WHERE split_part(lower(declared), '/', 1) = split_part(media_type, '/', 1)
          AND lower(declared) <> media_type
    """,
    IntegrityProblem.EXTERNAL_LINK: f"""
        SELECT {_OF_FILE}, '' FROM stored WHERE 'LINK' = ANY(active_parts)
    """,
    IntegrityProblem.SILENCE_UNKNOWN: f"""
        SELECT {_OF_FILE}, media_type
        FROM stored
        WHERE split_part(media_type, '/', 1) = 'audio' AND 'UNCLEAR' = ANY(active_parts)
    """,
    IntegrityProblem.OBJECT_WITHOUT_RECORD: """
        SELECT ARRAY[key], NULL::uuid[], NULL::text[], '' FROM without_record WHERE key ~ :layout
    """,
    # One for all of them: a bucket that others use too may hold any number.
    IntegrityProblem.KEY_OUTSIDE_LAYOUT: """
        SELECT (array_agg(key ORDER BY key))[1:CAST(:examples AS integer)], NULL::uuid[], NULL::text[],
               count(*)::text
        FROM without_record
        WHERE key !~ :layout
        HAVING count(*) > 0
    """,
}
"""Each gives keys, ids of records and of sales, and a detail."""

_FINDINGS: Final = f"""
    WITH checked AS MATERIALIZED (
        SELECT DISTINCT ON (observation_id)
               observation_id, sha256, normal_form, media_type, active_parts, stored_type
        FROM audit.content_checks
        WHERE media_type IS NOT NULL AND checked_at <= :moment
        ORDER BY observation_id, id DESC
    ),
    stored AS MATERIALIZED (
        SELECT seen.key, seen.size, least(seen.last_modified, seen.seen_at) AS written_at,
               record.evidence_id AS id, record.sale_id, record.evidence_type, record.type AS declared,
               record.expires_at, checked.sha256, checked.normal_form, checked.media_type,
               checked.active_parts, checked.stored_type
        FROM audit.object_observations AS seen
        JOIN audit.evidence_observations AS record ON record.object_key = seen.key
        LEFT JOIN checked ON checked.observation_id = seen.id
        WHERE {_HELD.format("seen")} AND {_STANDING}
    ),
    compared AS (
        SELECT *, coalesce(sha256, key) AS content
        FROM stored
        WHERE size > 0 AND (
            sha256 IS NOT NULL
            OR key IN (SELECT key FROM stored WHERE sha256 IS NULL GROUP BY key HAVING count(*) > 1)
        )
    ),
    versions AS MATERIALIZED (
        SELECT observed.id, observed.key, observed.size, observed.etag, observed.seen_at, checked.sha256
        FROM (SELECT DISTINCT key FROM audit.object_observations WHERE gone_at <= :moment) AS replaced
        JOIN audit.object_observations AS observed USING (key)
        LEFT JOIN checked ON checked.observation_id = observed.id
        WHERE observed.seen_at <= :moment
    ),
    first AS (SELECT DISTINCT ON (key) * FROM versions ORDER BY key, id),
    without_record AS MATERIALIZED (
        SELECT key
        FROM audit.object_observations AS seen
        WHERE {_HELD.format("seen")}
          AND NOT EXISTS (
              SELECT 1 FROM audit.evidence_observations AS record
              WHERE record.object_key = seen.key AND {_HELD.format("record")}
          )
    )
    SELECT *
    FROM (
        {
    " UNION ALL ".join(
        f"SELECT {place} AS place, '{problem}' AS problem, found.* FROM ({query}) AS found"
        for place, (problem, query) in enumerate(_FINDERS.items())
    )
}
    ) AS findings (place, problem, keys, evidence_ids, sale_ids, detail)
    ORDER BY place, keys
"""  # made of constants
"""One statement, which makes no table: sessions that may only read have none."""

_UNKNOWN_PARTNERS: Final = f"""
    SELECT count(*)
    FROM audit.evidence_observations AS record
    WHERE {_STANDING}
      AND NOT EXISTS (SELECT 1 FROM audit.evidence_requests AS asked WHERE asked.evidence_id = record.evidence_id)
"""
