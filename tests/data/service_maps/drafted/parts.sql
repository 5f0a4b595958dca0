-- As several teams have it: three tables of files with keys of their own, one naming the sale by its code; a flag marks the current state; a row of billing says who pays; a seller is a person too.
CREATE TABLE people (id bigserial PRIMARY KEY, cpf text NOT NULL, first_name text, last_name text);
CREATE TABLE states (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE sales (id bigserial PRIMARY KEY, code text NOT NULL UNIQUE, agent_id bigint NOT NULL REFERENCES people, holder_id bigint NOT NULL REFERENCES people, utility_group text NOT NULL, created_at timestamptz NOT NULL, expected_completion_at timestamptz, completed_at timestamptz);
CREATE TABLE billings (id bigserial PRIMARY KEY, sale_id bigint NOT NULL REFERENCES sales, payer_kind text NOT NULL, due_day int NOT NULL);
CREATE TABLE sale_states (id bigserial PRIMARY KEY, sale_id bigint NOT NULL REFERENCES sales, state_id int NOT NULL REFERENCES states, current boolean NOT NULL);
CREATE TABLE sale_documents (id bigserial PRIMARY KEY, sale_id bigint NOT NULL REFERENCES sales, document_type text NOT NULL, s3_key text NOT NULL, created_at timestamptz NOT NULL);
CREATE TABLE sale_recordings (id uuid PRIMARY KEY, sale_code text NOT NULL REFERENCES sales (code), speaker text NOT NULL, s3_key text NOT NULL, created_at timestamptz NOT NULL);
CREATE TABLE kyc_checks (id text PRIMARY KEY, sale_id bigint NOT NULL REFERENCES sales, provider text, result text NOT NULL, report_key text NOT NULL, created_at timestamptz NOT NULL);
INSERT INTO people VALUES (1,'52998224725','Ana','Souza'),(3,'39053344705','Leo','Vendedor');
INSERT INTO states VALUES (1,'open'),(2,'cancelled'),(3,'completed');
INSERT INTO sales SELECT n,'S-'||n,3,1,g,'2026-10-02 02:30Z','2026-10-20 15:00Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END FROM st;
INSERT INTO sales VALUES (9,'S-9',3,1,'A','2026-10-02 02:30Z');
INSERT INTO billings SELECT n,n,CASE WHEN p THEN 'holder' ELSE 'third_party' END,10 FROM st;
INSERT INTO sale_states (sale_id,state_id,current) SELECT n,1,true FROM st UNION ALL VALUES (9,1,false),(9,2,true),(1,2,false);
INSERT INTO sale_documents SELECT i,n,CASE t WHEN 'DOC_CONTRATANTE' THEN 'holder' ELSE 'holder_and_payer' END,'d/'||n||'/'||i||x,'2026-10-02 03:00Z' FROM live WHERE x='.pdf' AND t<>'KYC';
INSERT INTO sale_recordings SELECT md5('r'||i)::uuid,'S-'||n,CASE t WHEN 'POV' THEN 'holder' ELSE 'payer' END,'r/'||n||'/'||i||x,'2026-10-02 03:00Z' FROM live WHERE x='.mp3';
INSERT INTO kyc_checks SELECT 'k'||i,n,'acme','approved','k/'||n||'/'||i||x,timestamptz '2026-10-02 03:00Z' FROM live WHERE t='KYC' UNION ALL SELECT 'k1',1,'acme','rejected','k/1.pdf','2026-10-02 03:00Z';
-- KEYS: SELECT s3_key FROM sale_documents UNION ALL SELECT s3_key FROM sale_recordings UNION ALL SELECT report_key FROM kyc_checks
