-- As a replication writes it: a row for each time that it read one, of which the last holds, deleted or not; no keys at all.
CREATE SCHEMA airbyte;
CREATE TABLE airbyte.customers (_airbyte_raw_id varchar NOT NULL, _airbyte_extracted_at timestamptz NOT NULL, _airbyte_meta jsonb, id bigint, cpf varchar, first_name varchar, last_name varchar, created_at timestamptz, _ab_cdc_deleted_at varchar);
CREATE TABLE airbyte.sales (_airbyte_raw_id varchar NOT NULL, _airbyte_extracted_at timestamptz NOT NULL, _airbyte_meta jsonb, id bigint, code varchar, customer_id bigint, utility_group varchar, client_pays boolean, created_at timestamptz, completed_at timestamptz, _ab_cdc_deleted_at varchar);
CREATE TABLE airbyte.evidences (_airbyte_raw_id varchar NOT NULL, _airbyte_extracted_at timestamptz NOT NULL, _airbyte_meta jsonb, id bigint, sale_id bigint, evidence_type varchar, file_key varchar, created_at timestamptz, _ab_cdc_deleted_at varchar);
INSERT INTO airbyte.customers VALUES (gen_random_uuid(),'2026-10-02 04:00Z','{}',1,'52998224725','Ana','Souza','2026-10-01 12:00Z',NULL);
INSERT INTO airbyte.sales SELECT gen_random_uuid(),'2026-10-02 04:00Z','{"changes": []}',n,'S-'||n,1,CASE n WHEN 2 THEN 'A' ELSE g END,CASE n WHEN 2 THEN true ELSE p END,'2026-10-02 02:30Z',NULL,NULL FROM st;
INSERT INTO airbyte.sales SELECT gen_random_uuid(),'2026-10-04 04:00Z','{"changes": []}',n,'S-'||n,1,g,p,'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END,NULL FROM st WHERE n IN (2,5);
INSERT INTO airbyte.evidences SELECT gen_random_uuid(),'2026-10-02 04:00Z','{"changes": []}',i,n,t,'e/'||n||'/'||i||x,'2026-10-02 03:00Z',NULL FROM ev;
INSERT INTO airbyte.evidences SELECT gen_random_uuid(),'2026-10-06 04:00Z','{"changes": []}',i,n,t,'e/'||n||'/'||i||x,'2026-10-02 03:00Z','2026-10-05T10:00:00Z' FROM ev WHERE del;
-- KEYS: SELECT file_key FROM airbyte.evidences
