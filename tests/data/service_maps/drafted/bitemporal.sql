-- As a bitemporal system has it: a row for each state, valid and known from one time to another.
CREATE TABLE customer (id int PRIMARY KEY, cpf text NOT NULL, first_name text, last_name text);
CREATE TABLE sale (sale_code text NOT NULL, customer_id int NOT NULL REFERENCES customer, utility_group text NOT NULL, customer_is_payer boolean NOT NULL, created_at timestamptz NOT NULL, completed_at timestamptz, valid_from timestamptz NOT NULL, valid_to timestamptz NOT NULL DEFAULT 'infinity', system_from timestamptz NOT NULL, system_to timestamptz NOT NULL DEFAULT 'infinity', PRIMARY KEY (sale_code, valid_from, system_from));
CREATE TABLE evidence (evidence_id uuid NOT NULL, sale_code text NOT NULL, evidence_type text NOT NULL, object_key text NOT NULL, created_at timestamptz NOT NULL, valid_from timestamptz NOT NULL, valid_to timestamptz NOT NULL DEFAULT 'infinity', system_from timestamptz NOT NULL, system_to timestamptz NOT NULL DEFAULT 'infinity', PRIMARY KEY (evidence_id, valid_from, system_from));
INSERT INTO customer VALUES (1,'52998224725','Ana','Souza');
INSERT INTO sale SELECT 'S-'||n,1,g,p,'2026-10-02 02:30Z',NULL,'2026-10-02 02:30Z','2026-10-03 15:00Z','2026-10-02 02:30Z','infinity' FROM st WHERE d;
INSERT INTO sale SELECT 'S-'||n,1,'A',true,'2026-10-02 02:30Z',NULL,'2026-10-02 02:30Z','infinity','2026-10-02 02:30Z','2026-10-02 02:50Z' FROM st WHERE NOT d;
INSERT INTO sale SELECT 'S-'||n,1,g,p,'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END,CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' ELSE '2026-10-02 02:50Z' END,'infinity','2026-10-02 02:50Z','infinity' FROM st;
INSERT INTO evidence SELECT md5('e'||i)::uuid,'S-'||n,t,'e/'||n||'/'||i||x,'2026-10-02 03:00Z','2026-10-02 03:00Z',CASE WHEN del THEN timestamptz '2026-10-05 10:00Z' ELSE 'infinity' END,'2026-10-02 03:00Z','infinity' FROM ev;
-- KEYS: SELECT object_key FROM evidence
