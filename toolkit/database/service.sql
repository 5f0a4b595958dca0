-- The contract's own tables, as `toolkit db upgrade --service-tables` makes them.
--
-- For other tables copy this file, write your own statements, and name it in TOOLKIT_SERVICE_SQL
-- (`toolkit db map` prints a beginning). Reading: sales, records and clients are SELECTs that yield the
-- columns below under these names; NULL AS name stands for what your tables do not hold. Types:
--   id of a sale and all codes are texts; id of a record and of a client is a uuid (a whole number becomes one);
--   times carry a zone (write: created AT TIME ZONE 'America/Sao_Paulo'); the payer is a boolean; birthdate a date.
--   utility_group is A, B, C or D and evidence_type one of the contract's names; translate your codes by CASE.
-- Writing is optional: without a statement that work is refused. New rows stand in a relation that has the
-- columns of the SELECT: new_clients, new_records, new_sales; completed_sale has id and completed_at,
-- erased_sales and erased_clients have the id of each sale or client of whom nothing may be left.
-- Each row must be stored, under the id that it has there.

-- name: sales
SELECT id, client_id, utility_group, is_client_financial_responsible, partner, created_at, completed_at
FROM public.sales;

-- name: records
SELECT id, sale_id, file_name, file_format, type, evidence_type, object_key, requested_by, requested_at, expires_at
FROM public.evidences;

-- name: clients
SELECT client.id, external_id, cpf, rg, number_on_dealership, enrollment, first_name, last_name, email, birthdate,
       phone_number, created_at, address.id AS address_id, neighborhood, installation_number, address,
       address_number, city, zip_code
FROM public.clients AS client
LEFT JOIN public.addresses AS address ON address.client_id = client.id;

-- name: add_clients
WITH stored_addresses AS (
    INSERT INTO public.addresses
        (id, client_id, neighborhood, installation_number, address, address_number, city, zip_code)
    SELECT address_id, id, neighborhood, installation_number, address, address_number, city, zip_code
    FROM new_clients
)
INSERT INTO public.clients
    (id, external_id, cpf, rg, number_on_dealership, enrollment, first_name, last_name, email, birthdate,
     phone_number, created_at)
SELECT id, external_id, cpf, rg, number_on_dealership, enrollment, first_name, last_name, email, birthdate,
       phone_number, created_at
FROM new_clients;

-- name: add_records
INSERT INTO public.evidences
    (id, sale_id, file_name, file_format, type, evidence_type, object_key, requested_by, requested_at, expires_at)
SELECT id, sale_id, file_name, file_format, type, evidence_type, object_key, requested_by, requested_at, expires_at
FROM new_records;

-- Those in new_sales that the service has already are to be changed.
-- name: add_sales
INSERT INTO public.sales AS sale
    (id, client_id, utility_group, is_client_financial_responsible, partner, created_at, completed_at)
SELECT id, client_id, utility_group, is_client_financial_responsible, partner, created_at, completed_at
FROM new_sales
ON CONFLICT (id) DO UPDATE SET
    client_id = excluded.client_id, utility_group = excluded.utility_group,
    is_client_financial_responsible = excluded.is_client_financial_responsible, partner = excluded.partner,
    created_at = excluded.created_at, completed_at = excluded.completed_at;

-- One that was completed meanwhile is left alone: the number of changed rows decides.
-- name: complete_sale
UPDATE public.sales AS sale SET completed_at = completed_sale.completed_at
FROM completed_sale
WHERE sale.id = completed_sale.id AND sale.completed_at IS NULL;

-- name: erase_sales
WITH erased_records AS (
    DELETE FROM public.evidences AS evidence USING erased_sales WHERE evidence.sale_id = erased_sales.id
)
DELETE FROM public.sales AS sale USING erased_sales WHERE sale.id = erased_sales.id;

-- name: erase_clients
WITH erased_addresses AS (
    DELETE FROM public.addresses AS address USING erased_clients WHERE address.client_id = erased_clients.id
)
DELETE FROM public.clients AS client USING erased_clients WHERE client.id = erased_clients.id;
