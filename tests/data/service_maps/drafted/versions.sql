-- As a document archive has it: a row for each version of a file beside the record, and the last version may be removed.
-- FILL: evidences.where = "NOT EXISTS (SELECT FROM evidence_version AS later WHERE later.evidence_id = this.id AND (later.version_no > this.version_no OR later.removed))"
CREATE TABLE customer (id int PRIMARY KEY, cpf text NOT NULL, first_name text NOT NULL, last_name text);
CREATE TABLE sale (id int PRIMARY KEY, code text NOT NULL UNIQUE, customer_id int NOT NULL REFERENCES customer, utility_group text NOT NULL, customer_is_payer boolean NOT NULL, created_at timestamptz NOT NULL, completed_at timestamptz);
CREATE TABLE evidence (id int PRIMARY KEY, sale_id int NOT NULL REFERENCES sale, evidence_type text NOT NULL, created_at timestamptz NOT NULL);
CREATE TABLE evidence_version (id int PRIMARY KEY, evidence_id int NOT NULL REFERENCES evidence, version_no int NOT NULL, object_key text NOT NULL, removed boolean NOT NULL DEFAULT false, created_at timestamptz NOT NULL);
INSERT INTO customer VALUES (1,'52998224725','Ana','Souza');
INSERT INTO sale SELECT n,'S-'||n,1,g,p,'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END FROM st;
INSERT INTO evidence SELECT i,n,t,'2026-10-02 03:00Z' FROM ev;
INSERT INTO evidence_version SELECT i*10,i,1,'e/'||n||'/'||i||'-1'||x,false,'2026-10-02 03:00Z'::timestamptz FROM ev UNION ALL SELECT i*10+1,i,2,'e/'||n||'/'||i||'-2'||x,true,'2026-10-05 03:00Z' FROM ev WHERE del;
-- KEYS: SELECT object_key FROM evidence_version
