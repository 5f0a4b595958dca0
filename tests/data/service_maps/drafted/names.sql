-- As a small office has it: the group is the first letter of the number, the type a part of the key.
-- FILL: sales.utility_group = { sql = "left(this.contract_no, 1)" }
CREATE TABLE customer (id int PRIMARY KEY, cpf text NOT NULL, name text);
CREATE TABLE contract (id int PRIMARY KEY, contract_no text NOT NULL UNIQUE, customer_id int NOT NULL REFERENCES customer, payer_id int REFERENCES customer, signed_at timestamptz NOT NULL, created_at timestamptz NOT NULL, completed_at timestamptz);
CREATE TABLE contract_file (id int PRIMARY KEY, contract_id int NOT NULL REFERENCES contract, object_key text NOT NULL, size int, created_at timestamptz NOT NULL, deleted boolean NOT NULL DEFAULT false);
INSERT INTO customer VALUES (1,'52998224725','Ana Souza'),(2,'11144477735','Bia Lima');
INSERT INTO contract SELECT n,g||'-000'||n,1,CASE WHEN p THEN NULL ELSE 2 END,'2026-10-02 02:30Z','2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END FROM st;
INSERT INTO contract_file SELECT i,n,'c/'||n||'/'||lower(t)||'/'||i||x,1,'2026-10-02 03:00Z',del FROM ev;
-- NAMES: SELECT g||'-000'||n,'S-'||n FROM (VALUES (1,'A'),(2,'B'),(3,'C'),(4,'D'),(5,'A'),(6,'B'),(7,'C')) AS x(n,g)
-- KEYS: SELECT object_key FROM contract_file
