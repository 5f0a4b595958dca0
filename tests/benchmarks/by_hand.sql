-- The judging of all sales as somebody would write it in SQL by hand, for DuckDB and for PostgreSQL alike.
--
-- It gives the files, verdicts and missing pieces of an audit in the same columns, and the same rows where no
-- object was looked at twice, as in the made-up sales. First what an audit has to read, as PostgreSQL's COPY gives
-- it; then the query of each output, from that and from the outputs before it.

-- name: sales
SELECT sale_id, client_id, utility_group, is_client_financial_responsible, partner, created_at,
       completed_at
FROM audit.sale_observations
WHERE seen_at <= TIMESTAMPTZ '2026-11-20T12:00Z' AND (gone_at IS NULL OR gone_at > TIMESTAMPTZ '2026-11-20T12:00Z')

-- name: records
SELECT id, evidence_id, sale_id, evidence_type, type, requested_at, expires_at, object_key
FROM audit.evidence_observations
WHERE seen_at <= TIMESTAMPTZ '2026-11-20T12:00Z' AND (gone_at IS NULL OR gone_at > TIMESTAMPTZ '2026-11-20T12:00Z')

-- name: objects
SELECT id, key, size, etag, last_modified, seen_at
FROM audit.object_observations
WHERE seen_at <= TIMESTAMPTZ '2026-11-20T12:00Z' AND (gone_at IS NULL OR gone_at > TIMESTAMPTZ '2026-11-20T12:00Z')

-- name: ended
SELECT DISTINCT key
FROM audit.object_observations
WHERE gone_at <= TIMESTAMPTZ '2026-11-20T12:00Z'

-- name: looks
SELECT id, observation_id, kind, problem, checked_at, media_type, sha256, seconds, pages, speech_seconds,
       depth, array_to_string(readers, '|') AS readers, coalesce(look, 1) AS look
FROM audit.content_checks
WHERE checked_at <= TIMESTAMPTZ '2026-11-20T12:00Z'

-- name: failed
SELECT observation_id FROM audit.verification_failures WHERE failed_at <= TIMESTAMPTZ '2026-11-20T12:00Z'

-- name: withdrawn
SELECT evidence_id, withdrawn_at FROM audit.withdrawals WHERE withdrawn_at <= TIMESTAMPTZ '2026-11-20T12:00Z'

-- name: files
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
            WHEN expires_at > TIMESTAMPTZ '2026-11-20T12:00Z' THEN 'NOT_UPLOADED'
            WHEN expires_at IS NOT NULL THEN 'EXPIRED' ELSE 'EXPIRY_UNKNOWN' END AS state,
       requested_at, expires_at, withdrawn_at, size, seen_at, kind, coverage, media_type, sha256, seconds,
       pages, coalesce(problem, CASE WHEN kind <> demanded THEN 'WRONG_KIND' END) AS fault,
       CASE WHEN problem IS NOT NULL OR kind <> demanded THEN checked_at END AS fault_since,
       speech_seconds, depth, readers, look
FROM found

-- name: verdicts
WITH attempts AS (
    SELECT sale_id,
           min(rank) FILTER (WHERE evidence_type = 'POV') AS pov,
           min(rank) FILTER (WHERE evidence_type = 'AUT') AS aut,
           min(rank) FILTER (WHERE evidence_type = 'DOC_CONTRATANTE') AS contract,
           min(rank) FILTER (WHERE evidence_type = 'DOC_RESPONSAVEL_FINANCEIRO') AS payer,
           min(rank) FILTER (WHERE evidence_type = 'DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO') AS both_parties,
           min(rank) FILTER (WHERE evidence_type = 'KYC') AS kyc,
           count(*) FILTER (WHERE rank = 1 AND evidence_type = 'KYC') AS several,
           count(*) FILTER (WHERE state = 'TYPE_UNKNOWN') AS unknown,
           count(*) FILTER (WHERE state = 'TYPE_UNKNOWN' AND size IS NOT NULL) AS unknown_files,
           count(*) FILTER (WHERE rank = 1 AND kind IS NULL) AS unexamined,
           count(*) FILTER (WHERE rank = 1 AND coverage = 'verified') AS verified,
           count(*) FILTER (WHERE rank = 1 AND coverage = 'firstBytes') AS first_bytes,
           count(*) FILTER (WHERE rank = 1 AND coverage = 'never') AS never,
           count(*) FILTER (WHERE rank = 1 AND coverage = 'unreadable') AS unreadable,
           min(requested_at) FILTER (WHERE rank < 7) AS oldest_request
    FROM (
        SELECT *,
               CASE state WHEN 'COUNTED' THEN 1 WHEN 'UNUSABLE' THEN 2 WHEN 'VANISHED' THEN 3
                          WHEN 'NOT_UPLOADED' THEN 4 WHEN 'EXPIRY_UNKNOWN' THEN 5 WHEN 'EXPIRED' THEN 6
                          WHEN 'WITHDRAWN' THEN 7 END AS rank
        FROM files
    ) AS ranked
    GROUP BY sale_id
),
lacking AS (
    SELECT sales.sale_id, client_id, utility_group, is_client_financial_responsible, partner, created_at,
           completed_at, oldest_request,
           coalesce(pov, 8) AS pov, coalesce(aut, 8) AS aut, coalesce(contract, 8) AS contract,
           coalesce(payer, 8) AS payer, coalesce(both_parties, 8) AS both_parties, coalesce(kyc, 8) AS kyc,
           coalesce(least(contract, both_parties), 8) AS any_contract,
           coalesce(least(payer, both_parties), 8) AS any_payer,
           coalesce(several, 0) AS several, coalesce(unknown, 0) AS unknown,
           coalesce(unknown_files, 0) AS unknown_files, coalesce(unexamined, 0) AS unexamined,
           coalesce(verified, 0) AS verified, coalesce(first_bytes, 0) AS first_bytes,
           coalesce(never, 0) AS never, coalesce(unreadable, 0) AS unreadable
    FROM sales LEFT JOIN attempts ON attempts.sale_id = sales.sale_id
),
judged AS (
    SELECT *,
           CASE WHEN utility_group NOT IN ('A', 'B', 'C', 'D') OR several > 1
                     OR (is_client_financial_responsible IS NULL AND kyc > 1)
                     OR (kyc = 1 AND (least(pov, aut, contract, payer, both_parties) = 1 OR unknown_files > 0))
                THEN 'conflict'
                WHEN kyc > 1 AND (pov > 1 OR aut > 1 AND NOT is_client_financial_responsible
                                OR any_contract > 1 OR any_payer > 1 AND NOT is_client_financial_responsible)
                THEN 'incomplete'
                ELSE 'compliant' END AS status,
           ARRAY['COUNTED', 'UNUSABLE', 'VANISHED', 'NOT_UPLOADED', 'EXPIRY_UNKNOWN', 'EXPIRED', 'WITHDRAWN']
               AS states,
           CASE WHEN unknown > 0 THEN 'TYPE_UNKNOWN' ELSE 'NEVER_REQUESTED' END AS otherwise
    FROM lacking
)
SELECT sale_id, utility_group, status,
       CASE WHEN status = 'incomplete' THEN concat_ws('|',
           CASE WHEN pov > 1 THEN 'POV' END,
           CASE WHEN aut > 1 AND NOT is_client_financial_responsible THEN 'AUT' END,
           CASE WHEN any_contract > 1 THEN 'DOC_CONTRATANTE' END,
           CASE WHEN any_payer > 1 AND NOT is_client_financial_responsible THEN 'DOC_RESPONSAVEL_FINANCEIRO' END
       ) ELSE '' END AS missing,
       CASE WHEN status = 'incomplete' THEN concat_ws('|',
           CASE WHEN pov > 1 THEN coalesce(states[pov], otherwise) END,
           CASE WHEN aut > 1 AND NOT is_client_financial_responsible THEN coalesce(states[aut], otherwise) END,
           CASE WHEN any_contract > 1 THEN coalesce(states[any_contract], otherwise) END,
           CASE WHEN any_payer > 1 AND NOT is_client_financial_responsible
               THEN coalesce(states[any_payer], otherwise) END
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
       concat_ws('|',
           CASE WHEN pov = 1 THEN 'POV' END,
           CASE WHEN aut = 1 THEN 'AUT' END,
           CASE WHEN contract = 1 THEN 'DOC_CONTRATANTE' END,
           CASE WHEN payer = 1 THEN 'DOC_RESPONSAVEL_FINANCEIRO' END,
           CASE WHEN both_parties = 1 THEN 'DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO' END,
           CASE WHEN kyc = 1 THEN 'KYC' END
       ) AS counted,
       is_client_financial_responsible, partner, CAST(client_id AS VARCHAR) AS client_id, created_at,
       completed_at, oldest_request, unexamined, verified, first_bytes, never, unreadable
FROM judged

-- name: missing
SELECT sale_id, partner, utility_group, unnest(string_to_array(missing, '|')) AS evidence_type,
       unnest(string_to_array(reasons, '|')) AS reason, status, problems, created_at
FROM verdicts WHERE missing <> ''
