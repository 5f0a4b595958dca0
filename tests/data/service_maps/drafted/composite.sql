-- As a service of several partners has it: numbers start anew with each of them, and keys have two or three columns.
CREATE TABLE partner (partner_id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE customer (partner_id int NOT NULL REFERENCES partner, customer_no int NOT NULL, cpf char(11) NOT NULL, first_name text NOT NULL, last_name text NOT NULL, PRIMARY KEY (partner_id, customer_no));
CREATE TABLE sale (partner_id int NOT NULL REFERENCES partner, sale_no int NOT NULL, customer_no int NOT NULL, utility_group char(1) NOT NULL, payer_is_customer smallint NOT NULL, created_at timestamptz NOT NULL, completed_at timestamptz, PRIMARY KEY (partner_id, sale_no), FOREIGN KEY (partner_id, customer_no) REFERENCES customer);
CREATE TABLE evidence (partner_id int NOT NULL, sale_no int NOT NULL, seq smallint NOT NULL, evidence_type text NOT NULL, object_key text NOT NULL, created_at timestamptz NOT NULL, PRIMARY KEY (partner_id, sale_no, seq), FOREIGN KEY (partner_id, sale_no) REFERENCES sale);
INSERT INTO partner VALUES (1,'Luz Certa'),(2,'Sol Bom');
INSERT INTO customer VALUES (1,1,'52998224725','Ana','Souza'),(2,1,'11144477735','Bia','Lima');
INSERT INTO sale SELECT 1+n%2,(n+1)/2,1,g,p::int,'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END FROM st;
INSERT INTO evidence SELECT 1+n%2,(n+1)/2,i,t,'p'||(1+n%2)||'/'||(n+1)/2||'/'||i||x,'2026-10-02 03:00Z' FROM live;
-- KEYS: SELECT object_key FROM evidence
-- NAMES: SELECT (1+n%2)||'/'||(n+1)/2, 'S-'||n FROM st
