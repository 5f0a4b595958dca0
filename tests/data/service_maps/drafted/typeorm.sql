-- As another ORM of TypeScript has it: enumerations named by their columns, files that a newer one replaced, versions of rows.
CREATE TYPE "sales_tarifftype_enum" AS ENUM ('GROUP_A','GROUP_B','GROUP_C','GROUP_D');
CREATE TYPE "sales_paymentresponsible_enum" AS ENUM ('HOLDER','THIRD_PARTY');
CREATE TYPE "sales_state_enum" AS ENUM ('OPEN','DONE','CANCELED');
CREATE TYPE "sale_files_kind_enum" AS ENUM ('HOLDER_AUDIO','PAYER_AUDIO','HOLDER_DOCUMENT','PAYER_DOCUMENT','HOLDER_AND_PAYER_DOCUMENT','FACE_BIOMETRICS');
CREATE TABLE "typeorm_metadata" (type varchar NOT NULL, name varchar, value text);
CREATE TABLE "migrations" (id serial PRIMARY KEY, "timestamp" bigint NOT NULL, name varchar NOT NULL);
CREATE TABLE "contract_holders" ("id" uuid PRIMARY KEY DEFAULT gen_random_uuid(), "taxId" varchar NOT NULL, "fullName" varchar NOT NULL, "birthDate" date, "createdAt" TIMESTAMP NOT NULL DEFAULT now(), "updatedAt" TIMESTAMP NOT NULL DEFAULT now(), "deletedAt" TIMESTAMP);
CREATE TABLE "sales" ("id" uuid PRIMARY KEY DEFAULT gen_random_uuid(), "protocol" varchar NOT NULL, "holderId" uuid, "tariffType" "sales_tarifftype_enum" NOT NULL, "paymentResponsible" "sales_paymentresponsible_enum" NOT NULL, "state" "sales_state_enum" NOT NULL, "createdAt" TIMESTAMP NOT NULL DEFAULT now(), "doneAt" TIMESTAMP, "deletedAt" TIMESTAMP, "version" integer NOT NULL, CONSTRAINT "UQ_1" UNIQUE ("protocol"), CONSTRAINT "FK_1" FOREIGN KEY ("holderId") REFERENCES "contract_holders"("id"));
CREATE TABLE "sale_files" ("id" uuid PRIMARY KEY DEFAULT gen_random_uuid(), "saleId" uuid, "kind" "sale_files_kind_enum" NOT NULL, "bucketName" varchar NOT NULL, "storageKey" varchar NOT NULL, "mimetype" varchar NOT NULL, "sizeBytes" integer, "isCurrent" boolean NOT NULL DEFAULT true, "createdAt" TIMESTAMP NOT NULL DEFAULT now(), CONSTRAINT "FK_2" FOREIGN KEY ("saleId") REFERENCES "sales"("id"));
INSERT INTO "contract_holders" VALUES (md5('c')::uuid,'52998224725','Ana Souza','1979-03-04','2026-10-01 12:00','2026-10-01 12:00');
INSERT INTO "sales" SELECT md5('s'||n)::uuid,'S-'||n,md5('c')::uuid,('GROUP_'||g)::sales_tarifftype_enum,CASE WHEN p THEN 'HOLDER' ELSE 'THIRD_PARTY' END::sales_paymentresponsible_enum,CASE WHEN d THEN 'DONE' ELSE 'OPEN' END::sales_state_enum,'2026-10-02 02:30',CASE WHEN d THEN timestamp '2026-10-03 15:00' END,NULL,1 FROM st;
INSERT INTO "sale_files" SELECT md5('e'||i)::uuid,md5('s'||n)::uuid,(CASE t WHEN 'POV' THEN 'HOLDER_AUDIO' WHEN 'AUT' THEN 'PAYER_AUDIO' WHEN 'DOC_CONTRATANTE' THEN 'HOLDER_DOCUMENT' WHEN 'KYC' THEN 'FACE_BIOMETRICS' ELSE 'HOLDER_AND_PAYER_DOCUMENT' END)::sale_files_kind_enum,'prod','files/'||n||'/'||i||x,CASE x WHEN '.pdf' THEN 'application/pdf' ELSE 'audio/mpeg' END,10,NOT del,'2026-10-02 03:00' FROM ev;
-- KEYS: SELECT "storageKey" FROM sale_files
