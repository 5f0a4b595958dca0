-- name: sales
SELECT submission.slug AS id, submitter.id AS client_id, metadata::json ->> 'grupo' AS utility_group,
       CASE metadata::json ->> 'pagador' WHEN 'cliente' THEN true WHEN 'terceiro' THEN false END
           AS is_client_financial_responsible,
       account.name AS partner, submission.created_at AT TIME ZONE 'UTC' AS created_at,
       submitter.completed_at AT TIME ZONE 'UTC' AS completed_at
FROM public.submissions AS submission
JOIN public.submitters AS submitter ON submitter.submission_id = submission.id
JOIN public.accounts AS account ON account.id = submission.account_id
WHERE submission.archived_at IS NULL;

-- name: records
SELECT file.uuid AS id, submission.slug AS sale_id, blob.filename AS file_name, blob.content_type AS file_format,
       blob.content_type AS type,
       CASE file.name
           WHEN 'voz' THEN 'POV' WHEN 'voz_pagador' THEN 'AUT' WHEN 'contrato' THEN 'DOC_CONTRATANTE'
           WHEN 'pagador' THEN 'DOC_RESPONSAVEL_FINANCEIRO' WHEN 'kyc' THEN 'KYC'
           WHEN 'ambos' THEN 'DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO' ELSE file.name
       END AS evidence_type,
       blob.key AS object_key, NULL AS requested_by, file.created_at AT TIME ZONE 'UTC' AS requested_at,
       NULL AS expires_at
FROM public.active_storage_attachments AS file
JOIN public.active_storage_blobs AS blob ON blob.id = file.blob_id
JOIN public.submitters AS submitter ON submitter.id = file.record_id
JOIN public.submissions AS submission ON submission.id = submitter.submission_id
WHERE file.record_type = 'Submitter';

-- name: clients
SELECT id, external_id, regexp_replace(metadata::json ->> 'cpf', '[.-]', '', 'g') AS cpf, NULL AS rg,
       NULL AS number_on_dealership, NULL AS enrollment, name AS first_name, NULL AS last_name, email,
       NULL AS birthdate, right(phone, 11) AS phone_number, created_at AT TIME ZONE 'UTC' AS created_at,
       NULL AS address_id, NULL AS neighborhood, NULL AS installation_number, NULL AS address,
       NULL AS address_number, NULL AS city, NULL AS zip_code
FROM public.submitters;
