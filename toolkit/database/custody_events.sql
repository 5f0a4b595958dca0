-- The events of the custody log that rows of the toolkit's own tables tell, each by the transaction that it is about:
-- the trigger, what has happened to which table, and the SELECT of kind, time and detail from the rows as written.
-- What erasing changes is no event.

-- tell_sales_observed: INSERT ON sale_observations
SELECT 'SALES_OBSERVED', max(seen_at),
       jsonb_build_object('first', min(id), 'last', max(id), 'count', count(*), 'sales', audit.sha256_hex(string_agg(ROW(
           id, sale_id, client_id, utility_group, is_client_financial_responsible, partner,
           extract(epoch FROM created_at), extract(epoch FROM completed_at), extract(epoch FROM seen_at)
       )::text, '' ORDER BY id)))
FROM written
GROUP BY id / 1000
ORDER BY min(id)

-- tell_sale_gone: UPDATE ON sale_observations
SELECT 'SALE_GONE', gone_at, jsonb_build_object('observation', id)
FROM written
ORDER BY id

-- tell_recorded: INSERT ON evidence_observations
SELECT CASE WHEN seen_before THEN 'RECORD_CHANGED' ELSE 'RECORDED' END, seen_at,
       jsonb_build_object('observation', id, 'evidence', evidence_id, 'evidenceType', evidence_type,
                          'record', audit.sha256_hex(concat_ws(E'\n',
                              sale_id, evidence_type, type, object_key,
                              extract(epoch FROM requested_at), extract(epoch FROM expires_at))))
FROM (
    SELECT written.*,
           EXISTS (
               SELECT FROM audit.custody_events AS event
               WHERE event.kind = 'RECORD_GONE' AND (event.detail ->> 'evidence')::uuid = evidence_id
           ) AS seen_before,
           EXISTS (
               SELECT FROM audit.custody_events AS event
               WHERE event.kind = 'ISSUED' AND (event.detail ->> 'evidence')::uuid = evidence_id
           ) AS issued_here
    FROM written
) AS observed
WHERE seen_before OR NOT issued_here
ORDER BY id

-- tell_record_gone: UPDATE ON evidence_observations
SELECT 'RECORD_GONE', gone_at, jsonb_build_object('observation', id, 'evidence', evidence_id)
FROM written
ORDER BY id

-- tell_uploaded: INSERT ON object_observations
SELECT CASE WHEN version_id IS NOT NULL AND EXISTS (
           SELECT FROM audit.object_observations AS earlier
           WHERE earlier.key COLLATE "C" = written.key
             AND earlier.version_id = written.version_id AND earlier.id < written.id
       ) THEN 'RESTORED' ELSE 'UPLOADED' END,
       seen_at,
       jsonb_strip_nulls(jsonb_build_object(
           'observation', id, 'key', audit.sha256_hex(key), 'size', size, 'etag', etag,
           'lastModified', audit.utc_text(last_modified), 'version', version_id))
FROM written
ORDER BY id

-- tell_gone: UPDATE ON object_observations
SELECT 'GONE', gone_at,
       jsonb_strip_nulls(jsonb_build_object('observation', id, 'key', audit.sha256_hex(key), 'how', gone_how))
FROM written
ORDER BY id

-- tell_verified: INSERT ON content_checks
SELECT 'VERIFIED', checked_at,
       jsonb_build_object('observation', observation_id, 'sha256', sha256, 'kind', kind,
                          'problem', problem)
FROM written
WHERE sha256 IS NOT NULL
ORDER BY id

-- tell_withdrawn: INSERT ON withdrawals
SELECT 'WITHDRAWN', withdrawn_at, jsonb_strip_nulls(jsonb_build_object(
           'evidence', evidence_id, 'by', audit.sha256_hex(withdrawn_by), 'approvedBy', audit.sha256_hex(approved_by),
           'account', audit.sha256_hex(account), 'reason', audit.sha256_hex(reason)))
FROM written

-- tell_opened: INSERT ON evidence_openings
SELECT 'OPENED', opened_at, jsonb_strip_nulls(jsonb_build_object(
           'evidence', evidence_id, 'opening', id, 'by', audit.sha256_hex(opened_by),
           'account', audit.sha256_hex(account), 'reason', audit.sha256_hex(reason)))
FROM written

-- tell_audited: INSERT ON audit_runs
SELECT 'AUDITED', ran_at,
       jsonb_build_object('run', id, 'asOf', audit.utc_text(as_of), 'sales', sales, 'compliant', compliant,
                          'incomplete', incomplete, 'conflict', conflict)
FROM written

-- tell_waivers: INSERT ON waivers
SELECT 'WAIVED', added_at,
       jsonb_build_object('waiver', id, 'code', code, 'start', start_day::text, 'end', end_day::text)
FROM written

-- tell_waiver_revocations: INSERT ON waiver_revocations
SELECT 'WAIVER_REVOKED', revoked_at, jsonb_build_object('waiver', waiver_id) FROM written

-- tell_bucket_adopted: INSERT ON adopted_buckets
SELECT 'BUCKET_ADOPTED', adopted_at, jsonb_build_object('bucket', bucket) FROM written

-- tell_service_adopted: INSERT ON adopted_services
SELECT 'SERVICE_ADOPTED', adopted_at, jsonb_build_object('cluster', cluster, 'database', database)
FROM written
WHERE EXISTS (SELECT FROM audit.adopted_services AS former WHERE former.id < written.id)
