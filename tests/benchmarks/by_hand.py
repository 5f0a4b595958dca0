"""The judging of all sales as somebody would write it in SQL by hand: once for PostgreSQL, once for DuckDB."""

# a benchmark

_THEN = "'2026-11-20T12:00Z'"

_HELD = f"seen_at <= {_THEN} AND (gone_at IS NULL OR gone_at > {_THEN})"

TABLES = {
    "sales": f"""
        SELECT sale_id, client_id, utility_group, is_client_financial_responsible, partner, created_at,
               completed_at
        FROM audit.sale_observations WHERE {_HELD}
    """,
    "records": f"""
        SELECT evidence_id, sale_id, evidence_type, type, requested_at, expires_at, object_key
        FROM audit.evidence_observations WHERE {_HELD}
    """,
    "objects": f"""
        SELECT id, key, size, etag, last_modified, seen_at FROM audit.object_observations WHERE {_HELD}
    """,
    "ended": f"SELECT DISTINCT key FROM audit.object_observations WHERE gone_at <= {_THEN}",
    "looks": f"""
        SELECT id, observation_id, kind, problem, checked_at, sha256 FROM audit.content_checks
        WHERE checked_at <= {_THEN}
    """,
    "withdrawn": f"SELECT evidence_id, withdrawn_at FROM audit.withdrawals WHERE withdrawn_at <= {_THEN}",
}
"""What an audit has to read, as PostgreSQL's COPY gives it."""

_JUDGED = """
    WITH looked_at AS (
        SELECT observation_id, arg_max(kind, id) AS kind, bool_or(problem IS NOT NULL) AS damaged,
               bool_or(sha256 IS NOT NULL) AS verified
        FROM looks GROUP BY 1
    ),
    found AS (
        SELECT record.sale_id, record.evidence_type, record.requested_at, record.expires_at, seen.id AS seen_id,
               seen.size, kind, coalesce(damaged, false) AS damaged, verified,
               seen.id IS NULL AND vanished.key IS NOT NULL AS gone
        FROM records AS record
        LEFT JOIN objects AS seen ON seen.key = record.object_key
        LEFT JOIN looked_at ON looked_at.observation_id = seen.id
        LEFT JOIN ended AS vanished ON vanished.key = record.object_key
        WHERE evidence_id NOT IN (SELECT evidence_id FROM withdrawn)
    ),
    ranked AS (
        SELECT *,
               CASE WHEN good THEN 1 WHEN seen_id IS NOT NULL THEN 2 WHEN gone THEN 3
                    WHEN expires_at > TIMESTAMPTZ {then} THEN 4 WHEN expires_at IS NULL THEN 5 ELSE 6 END AS rank
        FROM (SELECT *, coalesce(size > 0 AND NOT damaged AND (kind IS NULL OR kind = CASE
                  WHEN evidence_type IN ('POV', 'AUT') THEN 'audio' ELSE 'pdf' END), false) AS good
              FROM found) AS found
    ),
    attempts AS (
        SELECT sale_id,
               min(rank) FILTER (WHERE evidence_type = 'POV') AS pov,
               min(rank) FILTER (WHERE evidence_type = 'AUT') AS aut,
               min(rank) FILTER (WHERE evidence_type = 'DOC_CONTRATANTE') AS contract,
               min(rank) FILTER (WHERE evidence_type = 'DOC_RESPONSAVEL_FINANCEIRO') AS payer,
               min(rank) FILTER (WHERE evidence_type = 'DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO') AS both_parties,
               count(*) FILTER (WHERE good AND evidence_type = 'KYC') AS kyc,
               count(*) FILTER (WHERE good AND kind IS NULL) AS unexamined,
               count(*) FILTER (WHERE good AND verified) AS verified,
               min(requested_at) AS oldest_request
        FROM ranked GROUP BY sale_id
    ),
    lacking AS (
        SELECT sales.*, attempts.* EXCLUDE (sale_id),
               coalesce(least(contract, both_parties), 7) AS any_contract,
               coalesce(least(payer, both_parties), 7) AS any_payer,
               utility_group NOT IN ('A', 'B', 'C', 'D') OR kyc > 1 OR (kyc > 0
                   AND (pov = 1 OR aut = 1 OR contract = 1 OR payer = 1 OR both_parties = 1)) AS conflict
        FROM sales LEFT JOIN attempts USING (sale_id)
    ),
    judged AS (
        SELECT *,
               CASE WHEN conflict THEN 'conflict' WHEN kyc > 0 THEN 'compliant'
                    WHEN coalesce(pov, 7) > 1 OR any_contract > 1 OR (NOT is_client_financial_responsible
                        AND (coalesce(aut, 7) > 1 OR any_payer > 1)) THEN 'incomplete'
                    ELSE 'compliant' END AS status
        FROM lacking
    )
    SELECT sale_id, utility_group, status,
           CASE WHEN status = 'incomplete' THEN concat_ws('|',
               CASE WHEN coalesce(pov, 7) > 1 THEN 'POV' END,
               CASE WHEN NOT is_client_financial_responsible AND coalesce(aut, 7) > 1 THEN 'AUT' END,
               CASE WHEN any_contract > 1 THEN 'DOC_CONTRATANTE' END,
               CASE WHEN NOT is_client_financial_responsible AND any_payer > 1
                    THEN 'DOC_RESPONSAVEL_FINANCEIRO' END) ELSE '' END AS missing,
           concat_ws('|', CASE WHEN completed_at IS NOT NULL AND status <> 'compliant'
               THEN 'COMPLETED_WITHOUT_EVIDENCE' END) AS problems,
           is_client_financial_responsible, partner, client_id, created_at, completed_at, oldest_request,
           unexamined, verified
    FROM judged
""".replace("{then}", _THEN)

IN_DUCKDB = _JUDGED
"""Reads the tables of these names."""

IN_POSTGRESQL = (
    "WITH "
    + ", ".join(f"{name} AS ({query})" for name, query in TABLES.items())
    + ", "
    + _JUDGED.strip()
    .removeprefix("WITH ")
    .replace("arg_max(kind, id) AS kind", "(array_agg(kind ORDER BY id DESC))[1] AS kind")
    .replace(" EXCLUDE (sale_id)", "")
    .replace(
        "sales.*, attempts.*,",
        "sales.*, "
        + ", ".join(
            f"attempts.{name}"
            for name in (
                "pov",
                "aut",
                "contract",
                "payer",
                "both_parties",
                "kyc",
                "unexamined",
                "verified",
                "oldest_request",
            )
        )
        + ",",
    )
)
