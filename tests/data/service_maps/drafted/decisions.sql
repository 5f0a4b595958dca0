-- As a back office has it: reviews reject files, and a table of deletions names rows of any table; both tables only grow.
-- FILL: sales.where = "NOT EXISTS (SELECT FROM deletions AS d WHERE d.table_name = 'sales' AND d.record_id = this.id)"
-- FILL: evidences.where = "(SELECT r.decision FROM evidence_reviews AS r WHERE r.evidence_id = this.id ORDER BY r.reviewed_at DESC LIMIT 1) <> 'rejected'"
CREATE TABLE customers (id int PRIMARY KEY, cpf char(11) NOT NULL, first_name text NOT NULL, last_name text NOT NULL);
CREATE TABLE payer_kinds (id int PRIMARY KEY, description text NOT NULL);
CREATE TABLE sales (id int PRIMARY KEY, code text NOT NULL UNIQUE, customer_id int NOT NULL REFERENCES customers, utility_group char(1) NOT NULL, payer_kind_id int NOT NULL REFERENCES payer_kinds, created_at timestamptz NOT NULL, completed_at timestamptz);
CREATE TABLE evidences (id int PRIMARY KEY, sale_id int NOT NULL REFERENCES sales, evidence_type text NOT NULL, object_key text NOT NULL, created_at timestamptz NOT NULL);
CREATE TABLE evidence_reviews (id serial PRIMARY KEY, evidence_id int NOT NULL REFERENCES evidences, decision text NOT NULL, reviewed_at timestamptz NOT NULL);
CREATE TABLE deletions (id serial PRIMARY KEY, table_name text NOT NULL, record_id int NOT NULL, at timestamptz NOT NULL);
INSERT INTO customers VALUES (1,'52998224725','Ana','Souza');
INSERT INTO payer_kinds VALUES (1,'The account holder'),(2,'Third party');
INSERT INTO sales SELECT n,'S-'||n,1,g,CASE WHEN p THEN 1 ELSE 2 END,'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END FROM st;
INSERT INTO sales VALUES (9,'S-9',1,'A',1,'2026-10-02 02:30Z',NULL);
INSERT INTO deletions (table_name,record_id,at) VALUES ('sales',9,'2026-10-05 10:00Z');
INSERT INTO evidences SELECT i,n,t,'e/'||n||'/'||i||x,'2026-10-02 03:00Z' FROM ev;
INSERT INTO evidence_reviews (evidence_id,decision,reviewed_at) SELECT i,CASE WHEN del THEN 'rejected' ELSE 'approved' END,timestamptz '2026-10-03 10:00Z' FROM ev;
-- KEYS: SELECT object_key FROM evidences
