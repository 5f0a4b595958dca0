-- As a configurable system has it: what a file is stands in rows of attributes; older sales were moved into tables built alike.
-- FILL: sales.from = "(SELECT * FROM sale UNION ALL SELECT * FROM sale_old)"
-- FILL: evidences.from = "(SELECT * FROM evidence UNION ALL SELECT * FROM evidence_old)"
-- FILL: evidences.sale_id = { column = "code", table = "(SELECT * FROM sale UNION ALL SELECT * FROM sale_old)", key = "id", by = "sale_id" }
-- FILL: evidences.evidence_type = { sql = "(SELECT a.value FROM evidence_attribute AS a WHERE a.evidence_id = this.id AND a.attribute = 'type')" }
-- FILL: evidences.object_key = { sql = "(SELECT a.value FROM evidence_attribute AS a WHERE a.evidence_id = this.id AND a.attribute = 's3_key')" }
CREATE TABLE customer (id serial PRIMARY KEY, cpf text NOT NULL, first_name text NOT NULL, last_name text NOT NULL);
CREATE TABLE sale (id serial PRIMARY KEY, code text NOT NULL UNIQUE, customer_id int NOT NULL REFERENCES customer, utility_group text NOT NULL, customer_is_payer boolean NOT NULL, created_at timestamptz NOT NULL, completed_at timestamptz);
CREATE TABLE sale_old (LIKE sale INCLUDING ALL);
CREATE TABLE evidence (id serial PRIMARY KEY, sale_id int NOT NULL, created_at timestamptz NOT NULL);
CREATE TABLE evidence_old (LIKE evidence INCLUDING ALL);
CREATE TABLE evidence_attribute (id serial PRIMARY KEY, evidence_id int NOT NULL, attribute text NOT NULL, value text);
CREATE SCHEMA backup; CREATE TABLE backup.sale (LIKE sale);
INSERT INTO customer VALUES (1,'52998224725','Ana','Souza');
INSERT INTO sale SELECT n,'S-'||n,1,g,p,'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END FROM st WHERE n > 2;
INSERT INTO backup.sale SELECT * FROM sale;
INSERT INTO sale_old SELECT n,'S-'||n,1,g,p,'2026-10-02 02:30Z',NULL FROM st WHERE n <= 2;
INSERT INTO evidence SELECT i,n,'2026-10-02 03:00Z' FROM live WHERE n > 2;
INSERT INTO evidence_old SELECT i,n,'2026-10-02 03:00Z' FROM live WHERE n <= 2;
INSERT INTO evidence_attribute (evidence_id,attribute,value) SELECT i,k,v FROM live, LATERAL (VALUES ('type',t),('s3_key','e/'||n||'/'||i||x),('file_name',lower(t)||x)) AS a(k,v);
-- KEYS: SELECT value FROM evidence_attribute WHERE attribute='s3_key'
