-- As Prisma would migrate it: camelCase in quotes, uuid, enums, timestamp(3) in UTC.
DO $$ BEGIN CREATE ROLE svc NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
CREATE TYPE "UtilityGroup" AS ENUM ('A', 'B', 'C', 'D');
CREATE TYPE "EvidenceType" AS ENUM ('POV', 'AUT', 'DOC_CONTRATANTE', 'DOC_RESPONSAVEL_FINANCEIRO', 'DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO', 'KYC');
CREATE TABLE "Partner" (id uuid PRIMARY KEY, name text NOT NULL);
CREATE TABLE "Client" (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(), "externalId" text, cpf varchar(11) NOT NULL, rg text,
  "numberOnDealership" text NOT NULL, enrollment text NOT NULL, "firstName" text NOT NULL, "lastName" text NOT NULL, email text,
  birthdate date NOT NULL, "phoneNumber" varchar(11), "createdAt" timestamp(3) NOT NULL DEFAULT (now() AT TIME ZONE 'UTC'),
  "updatedAt" timestamp(3) NOT NULL);
CREATE TABLE "Address" (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(), "clientId" uuid NOT NULL REFERENCES "Client", neighborhood text NOT NULL,
  "installationNumber" varchar(11) NOT NULL, address text NOT NULL, "addressNumber" text NOT NULL, city text NOT NULL, "zipCode" text NOT NULL);
CREATE TABLE "Sale" (
  id uuid PRIMARY KEY, code text NOT NULL UNIQUE, "clientId" uuid NOT NULL REFERENCES "Client", "partnerId" uuid REFERENCES "Partner",
  "utilityGroup" "UtilityGroup" NOT NULL, "isClientFinancialResponsible" boolean NOT NULL,
  "createdAt" timestamp(3) NOT NULL, "completedAt" timestamp(3), "updatedAt" timestamp(3) NOT NULL);
CREATE TABLE "Evidence" (
  id uuid PRIMARY KEY, "saleId" uuid NOT NULL REFERENCES "Sale", "fileName" text NOT NULL, "fileFormat" text NOT NULL, type text NOT NULL,
  "evidenceType" "EvidenceType" NOT NULL, "s3Key" text NOT NULL, "createdAt" timestamp(3) NOT NULL, "updatedAt" timestamp(3) NOT NULL);
INSERT INTO "Partner" VALUES ('a0000000-0000-4000-8000-000000000001', 'Energia Certa');
INSERT INTO "Client" VALUES ('c0000000-0000-4000-8000-000000000001', NULL, '52998224725', NULL, '7700001', '1', 'Antônia', 'Gonçalves', NULL,
  '1979-03-04', '11987654321', '2026-10-01 12:00', '2026-10-01 12:00');
INSERT INTO "Address" VALUES ('d0000000-0000-4000-8000-000000000001', 'c0000000-0000-4000-8000-000000000001', 'Centro', '5000001', 'Rua A', '1', 'São Paulo', '01310-100');
INSERT INTO "Sale" SELECT ('50000000-0000-4000-8000-00000000000' || n)::uuid, 'V-' || n, 'c0000000-0000-4000-8000-000000000001',
  CASE WHEN n % 2 = 1 THEN 'a0000000-0000-4000-8000-000000000001'::uuid END, g::"UtilityGroup", f,
  timestamp '2026-10-02 02:30', CASE WHEN n = 5 THEN timestamp '2026-10-03 15:00' END, timestamp '2026-10-03 15:00'
  FROM (VALUES (1, 'A', true), (2, 'B', false), (3, 'C', true), (4, 'D', true), (5, 'A', true), (6, 'B', false), (7, 'C', true)) AS s(n, g, f);
INSERT INTO "Evidence" SELECT gen_random_uuid(), ('50000000-0000-4000-8000-00000000000' || n)::uuid, lower(t) || x,
  CASE x WHEN '.pdf' THEN 'application/pdf' ELSE 'audio/mpeg' END, CASE x WHEN '.pdf' THEN 'application/pdf' ELSE 'audio/mpeg' END,
  t::"EvidenceType", 'sales/50000000-0000-4000-8000-00000000000' || n || '/' || lower(t) || x, timestamp '2026-10-02 03:00', timestamp '2026-10-02 03:00'
  FROM (VALUES (1, 'DOC_CONTRATANTE', '.pdf'), (1, 'POV', '.mp3'), (2, 'DOC_CONTRATANTE', '.pdf'), (2, 'POV', '.mp3'), (3, 'KYC', '.pdf'),
    (4, 'KYC', '.pdf'), (4, 'POV', '.mp3'), (5, 'DOC_CONTRATANTE', '.pdf'), (6, 'DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO', '.pdf'),
    (6, 'POV', '.mp3'), (6, 'AUT', '.mp3'), (7, 'DOC_CONTRATANTE', '.pdf')) AS e(n, t, x);
DO $$ DECLARE t text; BEGIN FOREACH t IN ARRAY ARRAY['Partner', 'Client', 'Address', 'Sale', 'Evidence'] LOOP
  EXECUTE format('ALTER TABLE %I OWNER TO svc', t); END LOOP; END $$;
