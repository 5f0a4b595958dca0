-- name: sales
SELECT loan.external_id AS id, client_id,
       CASE product.short_name
           WHEN 'GA' THEN 'A' WHEN 'GB' THEN 'B' WHEN 'GC' THEN 'C' WHEN 'GD' THEN 'D'
       END AS utility_group,
       guarantor_id IS NULL AS is_client_financial_responsible, office.name AS partner,
       loan.created_on_utc AS created_at,
       CASE WHEN loan_status_id = 600 THEN closedon_date::timestamp AT TIME ZONE 'America/Sao_Paulo' END AS completed_at
FROM public.m_loan AS loan
JOIN public.m_product_loan AS product ON product.id = loan.product_id
JOIN public.m_client AS client ON client.id = loan.client_id
LEFT JOIN public.m_office AS office ON office.id = client.office_id
WHERE loan_status_id <> 400; -- withdrawn by the client

-- name: records
SELECT document.id, loan.external_id AS sale_id, file_name, type AS file_format, type, description AS evidence_type,
       location AS object_key, NULL AS requested_by, document.created_on_utc AS requested_at, NULL AS expires_at
FROM public.m_document AS document JOIN public.m_loan AS loan ON loan.id = parent_entity_id
WHERE parent_entity_type = 'loans';

-- name: clients
SELECT id, account_no AS external_id, external_id AS cpf, NULL AS rg, NULL AS number_on_dealership, NULL AS enrollment,
       firstname AS first_name, lastname AS last_name, email_address AS email, date_of_birth AS birthdate,
       mobile_no AS phone_number, submittedon_date::timestamp AT TIME ZONE 'America/Sao_Paulo' AS created_at,
       NULL AS address_id, NULL AS neighborhood, NULL AS installation_number, NULL AS address, NULL AS address_number,
       NULL AS city, NULL AS zip_code
FROM public.m_client;

-- name: complete_sale
UPDATE public.m_loan AS loan
SET loan_status_id = 600, closedon_date = (completed_at AT TIME ZONE 'America/Sao_Paulo')::date
FROM completed_sale WHERE loan.external_id = completed_sale.id AND loan_status_id <> 600;
