-- name: sales
SELECT id, NULL AS client_id, grp AS utility_group, payer AS is_client_financial_responsible, NULL AS partner,
       sold AS created_at, done AS completed_at
FROM svc.sale;

-- name: records
SELECT id, sale_id, NULL AS file_name, NULL AS file_format, NULL AS type, kind AS evidence_type, key AS object_key,
       NULL AS requested_by, at AS requested_at, NULL AS expires_at
FROM svc.doc;

-- name: clients
SELECT NULL AS id, NULL AS external_id, NULL AS cpf, NULL AS rg, NULL AS number_on_dealership, NULL AS enrollment,
       NULL AS first_name, NULL AS last_name, NULL AS email, NULL AS birthdate, NULL AS phone_number,
       NULL AS created_at, NULL AS address_id, NULL AS neighborhood, NULL AS installation_number, NULL AS address,
       NULL AS address_number, NULL AS city, NULL AS zip_code
WHERE false;
