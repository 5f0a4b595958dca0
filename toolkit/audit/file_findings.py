"""Find evidence files that were used twice, came late, were replaced, or belong to another or to no record.

Everything is found in the working tables of an audit (``toolkit.audit.extract``), which hold the keys of objects.
Withdrawn records are left out: withdrawing is how a finding is mended. Files are compared by the SHA-256 of their
bytes, so reuse is found among those that were verified, and where a service gives one object to several records.
"""

from datetime import timedelta
from typing import Any, Final

from toolkit.audit.reviews import FAILED, OTHER
from toolkit.contract.contents import HASH, LAYOUT, SAME_TYPE, ActivePart, IntegrityProblem
from toolkit.contract.evidence import KIND_OF, FileKind
from toolkit.contract.findings import file_finding

EXAMPLES: Final = 5  # objects outside the layout that are named

LATE_BY: Final = timedelta(minutes=15)
"""The time after the end of its credentials in which a file may be written by an upload that began before."""

_RIGHT: Final = {str(each): {FileKind.AUDIO: "audio/"}.get(of, "application/pdf") for each, of in KIND_OF.items()}
_FITS: Final = f"starts_with(media_type, MAP {_RIGHT}[evidence_type])"
"""True of a file of the right kind; another is unusable, whatever else is odd about it."""

NEUTRAL_TYPES: Final = ("binary/octet-stream", "application/octet-stream")
"""Media types with which servers store what was posted without any: a browser shows none of them."""


def file_findings(session: Any) -> list[dict[str, Any]]:
    """Return every finding about the objects that were in the bucket, gravest first, see ``file_finding``."""
    for statement in (_DIFFER, _STANDING, _STORED, _LOOKED, _COMPARED, _WITHOUT_RECORD):
        session.execute(statement)
    found = []
    for about, query in _FINDERS.items():  # each alone, within the memory of one
        for keys, evidence_ids, sale_ids, detail in session.execute(f"{query} ORDER BY 1, 2").fetchall():
            found.append(file_finding(about, keys, evidence_ids or (), sale_ids or (), detail))
    return found


_MOMENT: Final = "%Y-%m-%dT%H:%M:%S+00:00"  # as Language.dated finds it

_PLAIN: Final = r"regexp_extract(lower({}), '^\s*([^;]*?)\s*(;|$)', 1)"
"""A media type without its parameters."""

_DIFFER: Final = f"""
    CREATE OR REPLACE TEMP MACRO differ(declared, actual) AS
    {_PLAIN.format("declared")} <> actual AND len([
        names for names in {[*map(sorted, SAME_TYPE)]}
        if list_contains(names, {_PLAIN.format("declared")}) AND list_contains(names, actual)
    ]) = 0
"""
"""Tells whether a declared media type names another type than this one."""

_STANDING: Final = "CREATE OR REPLACE TEMP VIEW standing AS FROM record WHERE withdrawn_at IS NULL"

_STORED: Final = """
    CREATE OR REPLACE TEMP VIEW stored AS
    SELECT object, object_key AS key, size, written_at, CAST(evidence_id AS VARCHAR) AS id, sale_id, evidence_type,
           type AS declared, expires_at
    FROM standing WHERE object IS NOT NULL
"""

_LOOKED: Final = """
    CREATE OR REPLACE TEMP VIEW looked AS
    SELECT stored.*, sha256, normal_form, media_type, active_parts, stored_type
    FROM stored JOIN seen USING (object) WHERE media_type IS NOT NULL
"""

_INACTIVE: Final = (ActivePart.LINK, ActivePart.BLANK)  # which have findings of their own

_OF_FILES: Final = """
    list(key ORDER BY key) AS keys, list(id ORDER BY id) AS evidence_ids,
    list_sort(list(DISTINCT sale_id)) AS sale_ids
"""

_OF_FILE: Final = "[key] AS keys, [id] AS evidence_ids, [sale_id] AS sale_ids"

_OF_RECORD: Final = "[object_key] AS keys, [CAST(evidence_id AS VARCHAR)] AS evidence_ids, [sale_id] AS sale_ids"


def _with(part: ActivePart, detail: str = "''", of: str = "true") -> str:
    """Return the query of the files in which a look found such a part."""
    return f"SELECT {_OF_FILE}, {detail} FROM looked WHERE {of} AND list_contains(active_parts, '{part}')"


_COMPARED: Final = """
    CREATE OR REPLACE TEMP TABLE compared AS
    WITH hashed AS (SELECT object, sha256 FROM seen WHERE sha256 IS NOT NULL AND media_type IS NOT NULL),
    repeated AS (
        SELECT object FROM hashed
        WHERE hash(sha256) IN (SELECT hash(sha256) FROM hashed GROUP BY ALL HAVING count(*) > 1)
        UNION
        SELECT object FROM stored GROUP BY object HAVING count(*) > 1
    )
    SELECT stored.*, sha256, coalesce(sha256, key) AS content
    FROM stored SEMI JOIN repeated USING (object)
    LEFT JOIN (FROM hashed SEMI JOIN repeated USING (object)) USING (object)
    WHERE size > 0
"""
"""Files whose content may be there twice, by hashes in little memory; those who ask compare the contents."""

_SIMPLE: Final = """
    ltrim(lower(nfc_normalize(replace(coalesce(TRY(url_decode({0})), {0}), '+', ' '))), '/')
"""
"""A key without what systems write in different ways: letters, accents, blanks, a slash in front."""

_WITHOUT_RECORD: Final = """
    CREATE OR REPLACE TEMP TABLE without_record AS SELECT key FROM seen ANTI JOIN record USING (object)
"""

_FINDERS: Final = {
    IntegrityProblem.REVIEW_FAILED: FAILED,
    IntegrityProblem.CONTENT_REUSED: f"""
        SELECT {_OF_FILES}, coalesce('{HASH} ' || min(sha256), 'one object of several records') AS detail
        FROM compared
        GROUP BY content
        HAVING count(DISTINCT sale_id) > 1
    """,
    IntegrityProblem.CONTENT_ALIKE: f"""
        SELECT {_OF_FILES}, '{HASH} of the content ' || normal_form
        FROM looked
        WHERE normal_form IS NOT NULL
        GROUP BY normal_form
        HAVING count(DISTINCT sale_id) > 1 AND count(DISTINCT sha256) > 1
    """,
    # A file that was ever another one than the first that was seen, whatever lies there now.
    IntegrityProblem.OVERWRITTEN: f"""
        WITH changed AS (SELECT evidence_id, max(gone_at) AS came FROM earlier GROUP BY ALL),
        under AS (
            SELECT evidence_id, key, seen_at AS came, gone_at AS went FROM earlier
            UNION ALL
            SELECT evidence_id, object_key, came, NULL FROM standing LEFT JOIN changed USING (evidence_id)
        ),
        lay AS (
            SELECT evidence_id, version, greatest(version.seen_at, came) AS since
            FROM under JOIN version ON version.key = under.key AND version.seen_at < coalesce(went, 'infinity')
            WHERE coalesce(version.gone_at > came, true)
        ),
        first AS (SELECT evidence_id, arg_min(version, (since, version.id)) AS was FROM lay GROUP BY ALL)
        SELECT {_OF_RECORD}, strftime(min(since), 'replaced at {_MOMENT}')
        FROM standing JOIN first USING (evidence_id) JOIN lay USING (evidence_id)
        WHERE {OTHER.format("version")}
        GROUP BY evidence_id, object_key, sale_id
    """,
    # A record without a file, too: with its credentials one may still come.
    IntegrityProblem.REQUESTED_BY_OTHER: f"""
        SELECT {_OF_RECORD}, 'requested for ' || request.partner
        FROM standing JOIN request USING (evidence_id) JOIN sale USING (sale_id)
        WHERE request.partner <> sale.partner
    """,
    IntegrityProblem.ACTIVE_CONTENT: f"""
        WITH acting AS (
            SELECT *, [part for part in active_parts if part NOT IN {(*map(str, _INACTIVE),)}] AS parts FROM looked
        )
        SELECT {_OF_FILE}, lower(array_to_string(parts, ', '))
        FROM acting
        WHERE NOT starts_with(media_type, 'audio/') AND len(parts) > 0
    """,
    IntegrityProblem.BLANK_DOCUMENT: _with(ActivePart.BLANK, of=_FITS),
    IntegrityProblem.STORED_TYPE_DIFFERS: f"""
        SELECT {_OF_FILE}, format('declared {{}}, stored as {{}}', declared, stored_type)
        FROM looked
        WHERE stored_type <> '' AND lower(stored_type) NOT IN {NEUTRAL_TYPES}
          AND differ(declared, {_PLAIN.format("stored_type")})
    """,
    # A file that lay there before, as one that a backup brought back, counts from then on.
    IntegrityProblem.WRITTEN_LATE: f"""
        WITH before AS (
            SELECT now.id AS object, min(was.written_at) AS written_before
            FROM version AS now JOIN version AS was USING (key)
            WHERE NOT {OTHER.format("now")}
            GROUP BY now.id
        ),
        dated AS (
            SELECT *, least(written_at, written_before) AS written FROM stored LEFT JOIN before USING (object)
        )
        SELECT {_OF_FILE},
               strftime(written, 'written at {_MOMENT}')
               || strftime(expires_at, ', credentials ran out at {_MOMENT}')
        FROM dated
        WHERE written > expires_at + INTERVAL {LATE_BY.seconds} SECONDS
    """,
    IntegrityProblem.CONTENT_REPEATED: f"""
        SELECT {_OF_FILES},
               array_to_string(list_sort(list(DISTINCT evidence_type)), ' and ')
               || coalesce(', {HASH} ' || min(sha256), '')
        FROM compared
        GROUP BY sale_id, content
        HAVING count(DISTINCT evidence_type) > 1
    """,
    IntegrityProblem.KEY_DIFFERS: f"""
        WITH lost AS (
            SELECT *, regexp_replace(object_key, '^[A-Za-z0-9]+://[^/]*/|[?].*$', '', 'g') AS path
            FROM standing WHERE object IS NULL
        ),
        named AS (  -- the path of an address may begin with the bucket
            SELECT *, unnest(
                if(contains(object_key, '://'), [path, path[position('/' IN path):]], [object_key])
            ) AS written
            FROM lost
        )
        SELECT DISTINCT [object_key, key], [CAST(evidence_id AS VARCHAR)], [sale_id], ''
        FROM named JOIN without_record ON {_SIMPLE.format("written")} = {_SIMPLE.format("key")}
    """,
    IntegrityProblem.TYPE_DIFFERS: f"""
        SELECT {_OF_FILE}, format('declared {{}}, is {{}}', declared, media_type)
        FROM looked
        WHERE position('/' IN declared) > 0 AND differ(declared, media_type)
          AND {_FITS}
    """,
    IntegrityProblem.EXTERNAL_LINK: _with(ActivePart.LINK),
    IntegrityProblem.NO_SPEECH: _with(ActivePart.NO_SPEECH, of=_FITS),
    IntegrityProblem.SILENCE_UNKNOWN: _with(ActivePart.UNCLEAR, "media_type", _FITS),
    IntegrityProblem.OBJECT_WITHOUT_RECORD: f"""
        SELECT [key], NULL, NULL, '' FROM without_record WHERE regexp_full_match(key, '{LAYOUT.pattern}')
    """,
    # One for all of them: a bucket that others use too may hold any number.
    IntegrityProblem.KEY_OUTSIDE_LAYOUT: f"""
        SELECT min(key, {EXAMPLES}), NULL, NULL,
               CASE WHEN count(*) > 1 THEN format('{{:,}} objects', count(*)) ELSE '' END
               || CASE WHEN count(*) > {EXAMPLES} THEN ', of which the first {EXAMPLES} are named' ELSE '' END
        FROM without_record
        WHERE NOT regexp_full_match(key, '{LAYOUT.pattern}')
        HAVING count(*) > 0
    """,
}
"""Each gives keys, ids of records and of sales, and a detail."""
