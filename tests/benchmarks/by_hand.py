"""The judging of all sales as somebody would write it in SQL by hand, with the same columns."""

_THEN = "'2026-11-20T12:00Z'"

_HELD = f"seen_at <= {_THEN} AND (gone_at IS NULL OR gone_at > {_THEN})"

_OBSERVED = f"""
    looked_at AS (
        SELECT observation_id,
               max(id * 4 + CASE kind WHEN 'audio' THEN 1 WHEN 'pdf' THEN 2 ELSE 3 END) % 4 AS kind,
               bool_or(problem IS NOT NULL) AS damaged, bool_or(sha256 IS NOT NULL) AS verified
        FROM audit.content_checks
        WHERE checked_at <= {_THEN}
        GROUP BY 1
    ),
    found AS (
        SELECT record.sale_id, record.evidence_type, record.requested_at, record.expires_at, seen.id AS seen_id,
               seen.size, kind, coalesce(damaged, false) AS damaged, verified, failed.id AS failed_id,
               seen.id IS NULL AND vanished.key IS NOT NULL AS gone
        FROM audit.evidence_observations AS record
        LEFT JOIN (SELECT * FROM audit.object_observations WHERE {_HELD}) AS seen ON seen.key = record.object_key
        LEFT JOIN looked_at ON looked_at.observation_id = seen.id
        LEFT JOIN (SELECT * FROM audit.verification_failures WHERE failed_at <= {_THEN}) AS failed
            ON failed.observation_id = seen.id
        LEFT JOIN (SELECT DISTINCT key FROM audit.object_observations WHERE gone_at <= {_THEN}) AS vanished
            ON vanished.key = record.object_key
        WHERE {_HELD.replace("seen_at", "record.seen_at").replace("gone_at", "record.gone_at")}
          AND evidence_type IN ('POV', 'AUT', 'DOC_CONTRATANTE', 'DOC_RESPONSAVEL_FINANCEIRO',
                                'DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO', 'KYC')
          AND NOT EXISTS (SELECT 1 FROM audit.withdrawals
                          WHERE evidence_id = record.evidence_id AND withdrawn_at <= {_THEN})
    )
"""

ROWS = f"""
    WITH {_OBSERVED}
    SELECT id AS sale_id, utility_group, is_client_financial_responsible, completed_at, evidence_type,
           expires_at, size, (ARRAY['audio', 'pdf', 'other'])[kind] AS kind, damaged, gone
    FROM (SELECT * FROM sales ORDER BY id LIMIT :sales) AS sales LEFT JOIN found ON found.sale_id = sales.id
    ORDER BY 1
"""

_REASON = "(ARRAY['UNUSABLE', 'VANISHED', 'NOT_UPLOADED', 'EXPIRY_UNKNOWN', 'EXPIRED', 'NEVER_REQUESTED'])"

BY_HAND = f"""
    WITH {_OBSERVED},
    ranked AS (
        SELECT *,
               CASE WHEN good THEN 0 WHEN gone THEN 2 WHEN seen_id IS NOT NULL THEN 1
                    WHEN expires_at > {_THEN} THEN 3 WHEN expires_at IS NULL THEN 4 ELSE 5 END AS rank
        FROM found
        CROSS JOIN LATERAL (SELECT size > 0 AND NOT damaged AND (
            kind IS NULL OR kind = CASE WHEN evidence_type IN ('POV', 'AUT') THEN 1 ELSE 2 END) AS good) AS usable
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
               count(*) FILTER (WHERE good AND NOT verified AND failed_id IS NULL) AS first_bytes,
               count(*) FILTER (WHERE good AND verified IS NULL AND failed_id IS NULL) AS never,
               count(*) FILTER (WHERE good AND verified IS NOT TRUE AND failed_id IS NOT NULL) AS unreadable,
               bool_or(rank = 1) AS unusable,
               min(requested_at) AS oldest_request,
               min(expires_at) FILTER (WHERE rank = 3) AS stands_until
        FROM ranked
        GROUP BY sale_id
    ),
    lacking AS (
        SELECT sales.*, pov, aut, contract, payer, both_parties, kyc, unexamined, verified, first_bytes, never,
               unreadable, unusable, oldest_request, stands_until, least(contract, both_parties) AS any_contract,
               least(payer, both_parties) AS any_payer,
               utility_group NOT IN ('A', 'B', 'C', 'D') OR kyc > 1
                   OR (is_client_financial_responsible IS NULL AND coalesce(kyc, 0) = 0) OR (
                   kyc > 0 AND (pov = 0 OR aut = 0 OR contract = 0 OR payer = 0 OR both_parties = 0)) AS conflict
        FROM audit.sale_observations AS sales LEFT JOIN attempts USING (sale_id)
        WHERE {_HELD}
    )
    SELECT lacking.sale_id, client_id, utility_group, is_client_financial_responsible, partner, created_at,
           completed_at, oldest_request, coalesce(unexamined, 0) AS unexamined, coalesce(verified, 0) AS verified,
           coalesce(first_bytes, 0) AS first_bytes, coalesce(never, 0) AS never,
           coalesce(unreadable, 0) AS unreadable, status,
           CASE WHEN status = 'incomplete' THEN concat_ws('|',
               CASE WHEN lacks_pov THEN 'POV' END, CASE WHEN lacks_aut THEN 'AUT' END,
               CASE WHEN lacks_contract THEN 'DOC_CONTRATANTE' END,
               CASE WHEN lacks_payer THEN 'DOC_RESPONSAVEL_FINANCEIRO' END) ELSE '' END AS missing,
           CASE WHEN status = 'incomplete' THEN concat_ws('|',
               CASE WHEN lacks_pov THEN {_REASON}[coalesce(pov, 6)] END,
               CASE WHEN lacks_aut THEN {_REASON}[coalesce(aut, 6)] END,
               CASE WHEN lacks_contract THEN {_REASON}[coalesce(any_contract, 6)] END,
               CASE WHEN lacks_payer THEN {_REASON}[coalesce(any_payer, 6)] END) ELSE '' END AS reasons,
           concat_ws('|',
               CASE WHEN completed_at IS NOT NULL AND status <> 'compliant' THEN 'COMPLETED_WITHOUT_EVIDENCE' END,
               CASE WHEN utility_group NOT IN ('A', 'B', 'C', 'D') THEN 'GROUP_UNKNOWN' END,
               CASE WHEN is_client_financial_responsible IS NULL AND coalesce(kyc, 0) = 0 THEN 'PAYER_UNKNOWN' END,
               CASE WHEN kyc > 0 AND (pov = 0 OR aut = 0 OR contract = 0 OR payer = 0 OR both_parties = 0)
                    THEN 'KYC_NOT_ALONE' END,
               CASE WHEN kyc > 1 THEN 'KYC_REPEATED' END,
               CASE WHEN both_parties = 0 AND (contract = 0 OR payer = 0) THEN 'DOCUMENT_REDUNDANT' END
           ) AS problems,
           concat_ws('|',
               CASE WHEN pov = 0 THEN 'POV' END, CASE WHEN aut = 0 THEN 'AUT' END,
               CASE WHEN contract = 0 THEN 'DOC_CONTRATANTE' END,
               CASE WHEN payer = 0 THEN 'DOC_RESPONSAVEL_FINANCEIRO' END,
               CASE WHEN both_parties = 0 THEN 'DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO' END,
               CASE WHEN kyc > 0 THEN 'KYC' END) AS counted,
           coalesce(unusable, false) AS unusable,
           stands_until
    FROM lacking
    CROSS JOIN LATERAL (
        SELECT pov IS DISTINCT FROM 0 AS lacks_pov,
               NOT is_client_financial_responsible AND aut IS DISTINCT FROM 0 AS lacks_aut,
               any_contract IS DISTINCT FROM 0 AS lacks_contract,
               NOT is_client_financial_responsible AND any_payer IS DISTINCT FROM 0 AS lacks_payer) AS lacks
    CROSS JOIN LATERAL (
        SELECT CASE WHEN conflict THEN 'conflict'
                    WHEN coalesce(kyc, 0) = 0 AND (lacks_pov OR lacks_aut OR lacks_contract OR lacks_payer)
                    THEN 'incomplete' ELSE 'compliant' END AS status) AS judged
"""
