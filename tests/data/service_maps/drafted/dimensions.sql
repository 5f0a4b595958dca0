-- As a warehouse of dimensions has it: surrogate keys, a row for each state, an end that is missing or far away, and nothing that says which one is current.
CREATE SCHEMA dw;
CREATE TABLE dw.dim_customer (customer_sk bigserial PRIMARY KEY, customer_id int NOT NULL, cpf text NOT NULL, first_name text, last_name text, valid_from timestamptz NOT NULL, valid_to timestamptz);
CREATE TABLE dw.dim_contract (contract_sk bigserial PRIMARY KEY, contract_number text NOT NULL, customer_id int NOT NULL, tariff_group text NOT NULL, holder_is_payer boolean NOT NULL, sale_date timestamptz NOT NULL, completed_at timestamptz, valid_from timestamptz NOT NULL, valid_to timestamptz);
CREATE TABLE dw.fact_evidence (evidence_sk bigserial PRIMARY KEY, evidence_id int NOT NULL, contract_number text NOT NULL, evidence_type text NOT NULL, object_key text NOT NULL, uploaded_at timestamptz NOT NULL, valid_from timestamptz NOT NULL, valid_to timestamptz NOT NULL DEFAULT '9999-12-31');
INSERT INTO dw.dim_customer (customer_id,cpf,first_name,last_name,valid_from,valid_to) VALUES (1,'52998224725','Ana','Lima','2026-09-01Z','2026-10-01Z'),(1,'52998224725','Ana','Souza','2026-10-01Z',NULL);
INSERT INTO dw.dim_contract (contract_number,customer_id,tariff_group,holder_is_payer,sale_date,completed_at,valid_from,valid_to) SELECT 'S-'||n,1,'A',true,'2026-10-02 02:30Z',NULL,'2026-10-02 02:30Z','2026-10-02 02:50Z' FROM st;
INSERT INTO dw.dim_contract (contract_number,customer_id,tariff_group,holder_is_payer,sale_date,completed_at,valid_from,valid_to) SELECT 'S-'||n,1,g,p,'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END,'2026-10-02 02:50Z',NULL FROM st;
INSERT INTO dw.fact_evidence (evidence_id,contract_number,evidence_type,object_key,uploaded_at,valid_from,valid_to) SELECT i,'S-'||n,t,'e/'||n||'/'||i||x,'2026-10-02 03:00Z','2026-10-02 03:00Z',CASE WHEN del THEN timestamptz '2026-10-05 10:00Z' ELSE '9999-12-31' END FROM ev;
-- KEYS: SELECT object_key FROM dw.fact_evidence
-- FILL: evidences.where = "this.valid_to > now()"
