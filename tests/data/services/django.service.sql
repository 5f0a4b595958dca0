-- name: sales
SELECT sale.code AS id, customer_id AS client_id, utility_group, payer_is_customer AS is_client_financial_responsible,
       channel AS partner, created AS created_at, finished_at AS completed_at
FROM crm.sales_sale AS sale;

-- name: records
SELECT record.uuid AS id, sale.code AS sale_id, original_name AS file_name, mime AS file_format, mime AS type,
       kind AS evidence_type, file AS object_key, NULL AS requested_by, record.created AS requested_at,
       NULL AS expires_at
FROM crm.sales_evidence AS record JOIN crm.sales_sale AS sale ON sale.id = record.sale_id
WHERE record.deleted_at IS NULL;

-- name: clients
SELECT id, external_id, regexp_replace(cpf, '[.-]', '', 'g') AS cpf, nullif(rg, '') AS rg,
       dealership_code AS number_on_dealership, enrollment, first_name, last_name, email, birthdate,
       phone AS phone_number, created AS created_at, id AS address_id, neighborhood, installation_number,
       street AS address, street_number AS address_number, city, zip_code
FROM crm.customers_customer;

-- name: add_records
INSERT INTO crm.sales_evidence (uuid, sale_id, kind, original_name, mime, file, created, modified)
SELECT new_records.id, sale.id, evidence_type, file_name, file_format, object_key, requested_at, requested_at
FROM new_records JOIN crm.sales_sale AS sale ON sale.code = new_records.sale_id;

-- name: complete_sale
UPDATE crm.sales_sale AS sale SET finished_at = completed_at, modified = completed_at
FROM completed_sale WHERE sale.code = completed_sale.id AND finished_at IS NULL;
