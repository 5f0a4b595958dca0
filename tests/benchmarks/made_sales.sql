-- Made-up sales with their evidence: all groups and types, files of the right kind and some that are not.

-- name: emptied
TRUNCATE clients, sales, evidences, audit.sale_observations, audit.evidence_observations,
         audit.object_observations, audit.content_checks, audit.custody_events CASCADE

-- name: indexes
SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid)
FROM pg_index JOIN pg_class AS filled ON filled.oid = indrelid
WHERE relname IN ('evidences', 'sale_observations', 'evidence_observations', 'object_observations',
                  'content_checks', 'custody_events')
  AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)

-- name: no_recordings
UPDATE audit.object_observations SET gone_at = seen_at + interval '1 hour'
WHERE gone_at IS NULL AND key IN (SELECT object_key FROM evidences WHERE evidence_type = 'POV')

-- name: sales
SELECT setseed(0.5);
INSERT INTO clients (id, cpf, number_on_dealership, enrollment, first_name, last_name, birthdate, created_at)
SELECT md5(i::text)::uuid, lpad(i::text, 11, '0'), '1', '1', 'Ana', 'Souza', '1980-01-01', '2026-01-01'
FROM generate_series(1, :sales) AS i;
INSERT INTO sales (id, client_id, utility_group, is_client_financial_responsible, partner, created_at,
                   completed_at)
SELECT 'S-' || i, md5(i::text)::uuid, (ARRAY['A', 'B', 'C', 'D'])[1 + i % 4], i % 4 <> 0, 'partner ' || i % :partners,
       timestamptz '2026-11-20' - i % 200 * interval '1 day',
       CASE WHEN i % 5 = 0 THEN timestamptz '2026-11-20' END
FROM generate_series(1, :sales) AS i;
INSERT INTO evidences (id, sale_id, file_name, file_format, type, evidence_type, object_key, requested_by,
                       requested_at, expires_at)
SELECT gen_random_uuid(), 'S-' || i, 'file', 'x', 'x', evidence_type,
       'evidences/2026/11/20/' || gen_random_uuid() || '/file', 'bench',
       timestamptz '2026-11-20' - i % 50 * interval '1 day',
       timestamptz '2026-11-20' + i % 2 * interval '3 days'
FROM generate_series(1, :sales) AS i
CROSS JOIN LATERAL unnest(CASE
    WHEN i % 100 = 1 THEN ARRAY['KYC']
    WHEN i % 4 = 0 THEN ARRAY['POV', 'AUT', 'DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO']
    WHEN i % 4 = 1 THEN ARRAY['POV', 'DOC_CONTRATANTE', 'POV']
    ELSE ARRAY['POV', 'DOC_CONTRATANTE'] END) AS evidence_type
ORDER BY random();
INSERT INTO audit.sale_observations (sale_id, client_id, utility_group, is_client_financial_responsible,
                                     partner, created_at, completed_at, seen_at)
SELECT id, client_id, utility_group, is_client_financial_responsible, partner, created_at, completed_at,
       '2026-11-20' FROM sales;
INSERT INTO audit.evidence_observations (evidence_id, sale_id, evidence_type, type, object_key, requested_at,
                                         expires_at, seen_at)
SELECT id, sale_id, evidence_type, type, object_key, requested_at, expires_at, '2026-11-20' FROM evidences;
INSERT INTO audit.object_observations (key, size, etag, last_modified, seen_at, gone_at)
SELECT object_key, 1000, 'etag', requested_at, '2026-11-20',
       CASE WHEN random() < 0.005 THEN timestamptz '2026-11-20T06:00Z' END
FROM evidences WHERE random() < 0.97;
ANALYZE evidences, audit.object_observations;
INSERT INTO audit.content_checks (observation_id, kind, media_type, problem, sha256, checked_at)
SELECT seen.id,
       CASE WHEN random() < 0.005 THEN 'other'
            WHEN evidence_type IN ('POV', 'AUT') THEN 'audio' ELSE 'pdf' END,
       CASE WHEN evidence_type IN ('POV', 'AUT') THEN 'audio/mpeg' ELSE 'application/pdf' END,
       CASE WHEN random() < 0.005 THEN 'DAMAGED' END,
       CASE WHEN random() < 0.9 THEN encode(sha256(key::bytea), 'hex') END, '2026-11-20'
FROM audit.object_observations AS seen JOIN evidences ON object_key = key WHERE random() < 0.97;
INSERT INTO audit.custody_events (kind, happened_at, detail)
SELECT kind, requested_at, jsonb_build_object('evidence', id, 'record', audit.sha256_hex(sale_id || file_name))
FROM evidences, (VALUES ('ASKED'), ('ISSUED')) AS told (kind)
UNION ALL
SELECT CASE WHEN gone_at IS NULL THEN 'UPLOADED' ELSE 'GONE' END, seen_at, jsonb_build_object('observation', id)
FROM audit.object_observations
UNION ALL
SELECT 'COMPLETED', completed_at, jsonb_build_object('sale', audit.sha256_hex(sale_id), 'files', files)
FROM sales JOIN (
    SELECT sale_id, jsonb_agg(jsonb_build_object('evidence', id)) AS files FROM evidences GROUP BY sale_id
) AS evidence ON sale_id = sales.id
WHERE completed_at IS NOT NULL;
