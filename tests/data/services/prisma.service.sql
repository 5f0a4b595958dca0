-- name: sales
SELECT sale.code AS id, "clientId" AS client_id, "utilityGroup" AS utility_group,
       "isClientFinancialResponsible" AS is_client_financial_responsible, partner.name AS partner,
       "createdAt" AT TIME ZONE 'UTC' AS created_at, "completedAt" AT TIME ZONE 'UTC' AS completed_at
FROM public."Sale" AS sale LEFT JOIN public."Partner" AS partner ON partner.id = sale."partnerId";

-- name: records
SELECT record.id, sale.code AS sale_id, "fileName" AS file_name, "fileFormat" AS file_format, type,
       "evidenceType" AS evidence_type, "s3Key" AS object_key, NULL AS requested_by,
       record."createdAt" AT TIME ZONE 'UTC' AS requested_at, NULL AS expires_at
FROM public."Evidence" AS record JOIN public."Sale" AS sale ON sale.id = record."saleId";

-- name: clients
SELECT client.id, "externalId" AS external_id, cpf, rg, "numberOnDealership" AS number_on_dealership, enrollment,
       "firstName" AS first_name, "lastName" AS last_name, email, birthdate, "phoneNumber" AS phone_number,
       "createdAt" AT TIME ZONE 'UTC' AS created_at, address.id AS address_id, neighborhood,
       "installationNumber" AS installation_number, address, "addressNumber" AS address_number, city,
       "zipCode" AS zip_code
FROM public."Client" AS client LEFT JOIN public."Address" AS address ON address."clientId" = client.id;

-- name: add_clients
WITH stored AS (
    INSERT INTO public."Address"
        (id, "clientId", neighborhood, "installationNumber", address, "addressNumber", city, "zipCode")
    SELECT address_id, id, neighborhood, installation_number, address, address_number, city, zip_code
    FROM new_clients
)
INSERT INTO public."Client" (id, "externalId", cpf, rg, "numberOnDealership", enrollment, "firstName", "lastName",
                             email, birthdate, "phoneNumber", "createdAt", "updatedAt")
SELECT id, external_id, cpf, rg, number_on_dealership, enrollment, first_name, last_name, email, birthdate,
       phone_number, created_at AT TIME ZONE 'UTC', created_at AT TIME ZONE 'UTC'
FROM new_clients;

-- name: add_records
INSERT INTO public."Evidence"
    (id, "saleId", "fileName", "fileFormat", type, "evidenceType", "s3Key", "createdAt", "updatedAt")
SELECT new_records.id, sale.id, file_name, file_format, type, evidence_type::public."EvidenceType", object_key,
       requested_at AT TIME ZONE 'UTC', requested_at AT TIME ZONE 'UTC'
FROM new_records JOIN public."Sale" AS sale ON sale.code = sale_id;

-- name: complete_sale
UPDATE public."Sale" AS sale
SET "completedAt" = completed_at AT TIME ZONE 'UTC', "updatedAt" = completed_at AT TIME ZONE 'UTC'
FROM completed_sale WHERE sale.code = completed_sale.id AND "completedAt" IS NULL;
