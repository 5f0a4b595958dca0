-- As an ORM of TypeScript migrates it: names in quotes, UUIDs, enumerations, times without a zone in UTC.
CREATE TYPE "TariffGroup" AS ENUM ('A', 'B', 'C', 'D');
CREATE TYPE "ProofKind" AS ENUM ('POV', 'AUT', 'DOC_CONTRATANTE', 'DOC_RESPONSAVEL_FINANCEIRO', 'DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO', 'KYC');
CREATE TABLE "Reseller" (id uuid PRIMARY KEY, "tradeName" text NOT NULL);
CREATE TABLE "Customer" (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(), "externalId" text, cpf varchar(11) NOT NULL, "dealershipNumber" text NOT NULL,
  enrollment text NOT NULL, "firstName" text NOT NULL, "lastName" text NOT NULL, email text, birthdate date NOT NULL,
  phone varchar(11), "createdAt" timestamp(3) NOT NULL DEFAULT (now() AT TIME ZONE 'UTC'), "updatedAt" timestamp(3) NOT NULL);
CREATE TABLE "InstallationAddress" (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(), "customerId" uuid NOT NULL REFERENCES "Customer", neighborhood text NOT NULL,
  "installationNumber" varchar(11) NOT NULL, street text NOT NULL, "streetNumber" text NOT NULL, city text NOT NULL, "zipCode" text NOT NULL);
CREATE TABLE "Order" (
  id uuid PRIMARY KEY, code text NOT NULL UNIQUE, "customerId" uuid REFERENCES "Customer", "resellerId" uuid REFERENCES "Reseller",
  "tariffGroup" "TariffGroup" NOT NULL, "isClientFinancialResponsible" boolean NOT NULL, "createdAt" timestamp(3) NOT NULL,
  "completedAt" timestamp(3), "canceledAt" timestamp(3), "updatedAt" timestamp(3) NOT NULL);
CREATE TABLE "Proof" (
  id uuid PRIMARY KEY, "orderId" uuid NOT NULL REFERENCES "Order", "fileName" text NOT NULL, "mimeType" text NOT NULL,
  kind "ProofKind" NOT NULL, "objectKey" text NOT NULL, "createdAt" timestamp(3) NOT NULL, "updatedAt" timestamp(3) NOT NULL);
INSERT INTO "Reseller" VALUES ('a0000000-0000-4000-8000-000000000001', 'Luz Certa');
INSERT INTO "Customer" VALUES ('c0000000-0000-4000-8000-000000000001', NULL, '52998224725', '7700001', '1', 'Ana', 'Souza', NULL,
  '1979-03-04', '11987654321', '2026-10-01 12:00', '2026-10-01 12:00');
INSERT INTO "InstallationAddress" (id, "customerId", neighborhood, "installationNumber", street, "streetNumber", city, "zipCode")
  VALUES ('d0000000-0000-4000-8000-000000000001', 'c0000000-0000-4000-8000-000000000001', 'Centro', '5000001', 'Rua A', '1', 'Recife', '50000-000');
INSERT INTO "Order" SELECT md5('sale' || n)::uuid, 'S-' || n, 'c0000000-0000-4000-8000-000000000001', 'a0000000-0000-4000-8000-000000000001',
  g::"TariffGroup", f, timestamp '2026-10-02 02:30', CASE WHEN n = 5 THEN timestamp '2026-10-03 15:00' END,
  CASE WHEN n = 8 THEN timestamp '2026-10-03 15:00' END, timestamp '2026-10-03 15:00'
  FROM (VALUES (1, 'A', true), (2, 'B', false), (3, 'C', true), (4, 'D', true), (5, 'A', true), (6, 'B', false), (7, 'C', true), (8, 'A', true)) AS s(n, g, f);
INSERT INTO "Proof" SELECT md5(n || t)::uuid, md5('sale' || n)::uuid, lower(t) || x, CASE x WHEN '.pdf' THEN 'application/pdf' ELSE 'audio/mpeg' END,
  t::"ProofKind", 'orders/' || n || '/' || lower(t) || x, timestamp '2026-10-02 03:00', timestamp '2026-10-02 03:00'
  FROM (VALUES (1, 'DOC_CONTRATANTE', '.pdf'), (1, 'POV', '.mp3'), (2, 'DOC_CONTRATANTE', '.pdf'), (2, 'POV', '.mp3'), (3, 'KYC', '.pdf'),
    (4, 'KYC', '.pdf'), (4, 'POV', '.mp3'), (5, 'DOC_CONTRATANTE', '.pdf'), (6, 'DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO', '.pdf'),
    (6, 'POV', '.mp3'), (6, 'AUT', '.mp3'), (7, 'DOC_CONTRATANTE', '.pdf')) AS e(n, t, x);
