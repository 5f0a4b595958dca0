"""The judging of all sales as somebody would write it in SQL by hand, for DuckDB and for PostgreSQL alike.

It gives the files, verdicts and missing pieces of an audit in the same columns, and the same rows where no object
was looked at twice, as in the made-up sales.
"""

_THEN = "TIMESTAMPTZ '2026-11-20T12:00Z'"

_HELD = f"seen_at <= {_THEN} AND (gone_at IS NULL OR gone_at > {_THEN})"

TABLES = {
    "sales": f"""
        SELECT sale_id, client_id, utility_group, is_client_financial_responsible, partner, created_at,
               completed_at
        FROM audit.sale_observations WHERE {_HELD}
    """,
    "records": f"""
        SELECT id, evidence_id, sale_id, evidence_type, type, requested_at, expires_at, object_key
        FROM audit.evidence_observations WHERE {_HELD}
    """,
    "objects": f"""
        SELECT id, key, size, etag, last_modified, seen_at FROM audit.object_observations WHERE {_HELD}
    """,
    "ended": f"SELECT DISTINCT key FROM audit.object_observations WHERE gone_at <= {_THEN}",
    "looks": f"""
        SELECT id, observation_id, kind, problem, checked_at, media_type, sha256, seconds, pages, speech_seconds,
               depth, array_to_string(readers, '|') AS readers, coalesce(look, 1) AS look
        FROM audit.content_checks
        WHERE checked_at <= {_THEN}
    """,
    "failed": f"SELECT observation_id FROM audit.verification_failures WHERE failed_at <= {_THEN}",
    "withdrawn": f"SELECT evidence_id, withdrawn_at FROM audit.withdrawals WHERE withdrawn_at <= {_THEN}",
}
"""What an audit has to read, as PostgreSQL's COPY gives it."""

_FILES = f"""
    WITH latest AS (SELECT max(id) AS id FROM looks GROUP BY observation_id),
    looked AS (SELECT looks.* FROM looks JOIN latest ON latest.id = looks.id),
    found AS (
        SELECT records.*, sales.partner, withdrawn_at, size, seen_at, kind, media_type, sha256, seconds, pages,
               problem, checked_at, speech_seconds, depth, readers, look, ended.key AS vanished,
               CASE WHEN objects.id IS NULL THEN NULL WHEN sha256 IS NOT NULL THEN 'verified'
                    WHEN failed.observation_id IS NOT NULL THEN 'unreadable'
                    WHEN looked.id IS NOT NULL THEN 'firstBytes' ELSE 'never' END AS coverage,
               CASE WHEN evidence_type IN ('POV', 'AUT') THEN 'audio'
                    WHEN evidence_type IN ('DOC_CONTRATANTE', 'DOC_RESPONSAVEL_FINANCEIRO',
                        'DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO', 'KYC') THEN 'pdf' END AS demanded
        FROM records
        LEFT JOIN sales ON sales.sale_id = records.sale_id
        LEFT JOIN objects ON objects.key = object_key
        LEFT JOIN looked ON looked.observation_id = objects.id
        LEFT JOIN failed ON failed.observation_id = objects.id
        LEFT JOIN ended ON ended.key = object_key
        LEFT JOIN withdrawn ON withdrawn.evidence_id = records.evidence_id
    )
    SELECT id, CAST(evidence_id AS VARCHAR) AS evidence_id, sale_id, partner, evidence_type,
           CASE WHEN withdrawn_at IS NOT NULL THEN 'WITHDRAWN' WHEN demanded IS NULL THEN 'TYPE_UNKNOWN'
                WHEN size > 0 AND problem IS NULL AND coalesce(kind = demanded, true) THEN 'COUNTED'
                WHEN size IS NOT NULL THEN 'UNUSABLE' WHEN vanished IS NOT NULL THEN 'VANISHED'
                WHEN expires_at > {_THEN} THEN 'NOT_UPLOADED'
                WHEN expires_at IS NOT NULL THEN 'EXPIRED' ELSE 'EXPIRY_UNKNOWN' END AS state,
           requested_at, expires_at, withdrawn_at, size, seen_at, kind, coverage, media_type, sha256, seconds,
           pages, coalesce(problem, CASE WHEN kind <> demanded THEN 'WRONG_KIND' END) AS fault,
           CASE WHEN problem IS NOT NULL OR kind <> demanded THEN checked_at END AS fault_since,
           speech_seconds, depth, readers, look
    FROM found
"""

_RANKS = ("COUNTED", "UNUSABLE", "VANISHED", "NOT_UPLOADED", "EXPIRY_UNKNOWN", "EXPIRED", "WITHDRAWN")

_RANK = " ".join(f"WHEN '{state}' THEN {place}" for place, state in enumerate(_RANKS, 1))

_REASON = (
    "CASE {} " + " ".join(f"WHEN {place} THEN '{state}'" for place, state in enumerate(_RANKS, 1)) + " ELSE {} END"
)

_TYPES = {
    "pov": "POV",
    "aut": "AUT",
    "contract": "DOC_CONTRATANTE",
    "payer": "DOC_RESPONSAVEL_FINANCEIRO",
    "both_parties": "DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO",
    "kyc": "KYC",
}

_LACKS = {
    "POV": ("pov", "pov > 1"),
    "AUT": ("aut", "aut > 1 AND NOT is_client_financial_responsible"),
    "DOC_CONTRATANTE": ("any_contract", "any_contract > 1"),
    "DOC_RESPONSAVEL_FINANCEIRO": ("any_payer", "any_payer > 1 AND NOT is_client_financial_responsible"),
}

_OTHERWISE = "CASE WHEN unknown > 0 THEN 'TYPE_UNKNOWN' ELSE 'NEVER_REQUESTED' END"

_BEST = ", ".join(f"min(rank) FILTER (WHERE evidence_type = '{each}') AS {name}" for name, each in _TYPES.items())
_THERE = ", ".join(f"CASE WHEN {name} = 1 THEN '{each}' END" for name, each in _TYPES.items())
_MISSES = ", ".join(f"CASE WHEN {lacks} THEN '{each}' END" for each, (_, lacks) in _LACKS.items())
_WHY = ", ".join(
    f"CASE WHEN {lacks} THEN {_REASON.format(name, _OTHERWISE)} END" for name, lacks in _LACKS.values()
)
_COUNTS = ("several", "unknown", "unknown_files", "unexamined", "verified", "first_bytes", "never", "unreadable")

_VERDICTS = f"""
    WITH attempts AS (
        SELECT sale_id,
               {_BEST},
               count(*) FILTER (WHERE rank = 1 AND evidence_type = 'KYC') AS several,
               count(*) FILTER (WHERE state = 'TYPE_UNKNOWN') AS unknown,
               count(*) FILTER (WHERE state = 'TYPE_UNKNOWN' AND size IS NOT NULL) AS unknown_files,
               count(*) FILTER (WHERE rank = 1 AND kind IS NULL) AS unexamined,
               count(*) FILTER (WHERE rank = 1 AND coverage = 'verified') AS verified,
               count(*) FILTER (WHERE rank = 1 AND coverage = 'firstBytes') AS first_bytes,
               count(*) FILTER (WHERE rank = 1 AND coverage = 'never') AS never,
               count(*) FILTER (WHERE rank = 1 AND coverage = 'unreadable') AS unreadable,
               min(requested_at) FILTER (WHERE rank < 7) AS oldest_request
        FROM (SELECT *, CASE state {_RANK} END AS rank FROM files) AS ranked GROUP BY sale_id
    ),
    lacking AS (
        SELECT sales.sale_id, client_id, utility_group, is_client_financial_responsible, partner, created_at,
               completed_at, oldest_request, {", ".join(f"coalesce({name}, 8) AS {name}" for name in _TYPES)},
               coalesce(least(contract, both_parties), 8) AS any_contract,
               coalesce(least(payer, both_parties), 8) AS any_payer,
               {", ".join(f"coalesce({name}, 0) AS {name}" for name in _COUNTS)}
        FROM sales LEFT JOIN attempts ON attempts.sale_id = sales.sale_id
    ),
    judged AS (
        SELECT *,
               CASE WHEN utility_group NOT IN ('A', 'B', 'C', 'D') OR several > 1
                         OR (is_client_financial_responsible IS NULL AND kyc > 1)
                         OR (kyc = 1 AND (least(pov, aut, contract, payer, both_parties) = 1 OR unknown_files > 0))
                    THEN 'conflict'
                    WHEN kyc > 1 AND ({" OR ".join(lacks for _, lacks in _LACKS.values())}) THEN 'incomplete'
                    ELSE 'compliant' END AS status
        FROM lacking
    )
    SELECT sale_id, utility_group, status,
           CASE WHEN status = 'incomplete' THEN concat_ws('|',
               {_MISSES}
           ) ELSE '' END AS missing,
           CASE WHEN status = 'incomplete' THEN concat_ws('|',
               {_WHY}
           ) ELSE '' END AS reasons,
           concat_ws('|',
               CASE WHEN completed_at IS NOT NULL AND status <> 'compliant' THEN 'COMPLETED_WITHOUT_EVIDENCE' END,
               CASE WHEN utility_group NOT IN ('A', 'B', 'C', 'D') THEN 'GROUP_UNKNOWN' END,
               CASE WHEN is_client_financial_responsible IS NULL AND kyc > 1 THEN 'PAYER_UNKNOWN' END,
               CASE WHEN kyc = 1 AND least(pov, aut, contract, payer, both_parties) = 1 THEN 'KYC_NOT_ALONE' END,
               CASE WHEN several > 1 THEN 'KYC_REPEATED' END,
               CASE WHEN unknown > 0 THEN 'TYPE_UNKNOWN' END,
               CASE WHEN both_parties = 1 AND least(contract, payer) = 1 THEN 'DOCUMENT_REDUNDANT' END
           ) AS problems,
           concat_ws('|', {_THERE}) AS counted,
           is_client_financial_responsible, partner, CAST(client_id AS VARCHAR) AS client_id, created_at,
           completed_at, oldest_request, unexamined, verified, first_bytes, never, unreadable
    FROM judged
"""

_MISSING = """
    SELECT sale_id, partner, utility_group, unnest(string_to_array(missing, '|')) AS evidence_type,
           unnest(string_to_array(reasons, '|')) AS reason, status, problems, created_at
    FROM verdicts WHERE missing <> ''
"""

_GRAVEST_FIRST = (
    "status = 'compliant', NOT starts_with(problems, 'COMPLETED_WITHOUT_EVIDENCE'), created_at, sale_id"
)

STEPS = {"files": _FILES, "verdicts": _VERDICTS, "missing": _MISSING}
"""The queries that make each output of ``TABLES`` and of the outputs before it."""

ORDERED = {
    "files": f"SELECT * EXCLUDE (id) FROM ({_FILES}) ORDER BY id",
    "verdicts": f"FROM ({_VERDICTS}) ORDER BY {_GRAVEST_FIRST}",
    "missing": f"SELECT * EXCLUDE (status, problems, created_at) FROM ({_MISSING}) ORDER BY {_GRAVEST_FIRST}",
}
"""The same in DuckDB, in the order in which an audit keeps the rows."""
