-- name: sales
SELECT id, NULL AS client_id, grp AS utility_group, true AS is_client_financial_responsible, NULL AS partner,
       sold AS created_at, done AS completed_at
FROM app.sale;
-- name: records
SELECT id, sale_id, name AS file_name, NULL AS file_format, NULL AS type, kind AS evidence_type, key AS object_key,
       NULL AS requested_by, at AS requested_at, NULL AS expires_at
FROM app.doc;
-- name: clients
SELECT * FROM public.clients AS client CROSS JOIN (SELECT NULL::uuid AS address_id, neighborhood,
    installation_number, address, address_number, city, zip_code FROM public.addresses) AS address;
-- name: complete_sale
UPDATE app.sale SET done = completed_at FROM completed_sale
WHERE sale.id = CAST(completed_sale.id AS {sale}) AND done IS NULL;

-- name: add_records
INSERT INTO app.doc (id, sale_id, name, kind, key, at)
SELECT id, CAST(sale_id AS uuid), file_name, evidence_type, object_key, requested_at FROM new_records;
