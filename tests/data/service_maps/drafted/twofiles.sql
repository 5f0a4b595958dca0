-- As a call centre has it: documents in one table, recordings in another, named and deleted each in its own way.
CREATE TABLE customer (id uuid PRIMARY KEY, cpf text NOT NULL, first_name text NOT NULL, last_name text NOT NULL, created_at timestamptz NOT NULL);
CREATE TABLE contract (id uuid PRIMARY KEY, code text NOT NULL UNIQUE, customer_id uuid NOT NULL REFERENCES customer, utility_group text NOT NULL, customer_is_payer boolean NOT NULL, created_at timestamptz NOT NULL, completed_at timestamptz);
CREATE TABLE contract_document (id uuid PRIMARY KEY, contract_id uuid NOT NULL REFERENCES contract, document_type text NOT NULL, file_name text NOT NULL, s3_key text NOT NULL, created_at timestamptz NOT NULL, deleted_at timestamptz);
CREATE TABLE call_recording (id bigserial PRIMARY KEY, contract_id uuid NOT NULL REFERENCES contract, recording_type text NOT NULL, storage_path text NOT NULL, duration_seconds integer, recorded_at timestamptz NOT NULL, is_deleted boolean NOT NULL DEFAULT false);
INSERT INTO customer VALUES (md5('c')::uuid,'52998224725','Ana','Souza','2026-10-01 12:00Z');
INSERT INTO contract SELECT md5('s'||n)::uuid,'S-'||n,md5('c')::uuid,g,p,'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END FROM st;
INSERT INTO contract_document SELECT md5('e'||i)::uuid,md5('s'||n)::uuid,t,lower(t)||x,'docs/'||n||'/'||i||x,'2026-10-02 03:00Z',NULL FROM ev WHERE x='.pdf';
INSERT INTO call_recording SELECT i,md5('s'||n)::uuid,t,'calls/'||n||'/'||i||x,30,'2026-10-02 03:00Z',del FROM ev WHERE x='.mp3';
-- KEYS: SELECT s3_key FROM contract_document UNION ALL SELECT storage_path FROM call_recording
