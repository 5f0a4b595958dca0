-- Four tables that look like sales; two of clients; evidence in documents, recordings and KYC.
-- SAYS: REVIEW: public.sales (7 rows) fits, and so do public.contracts (9 rows), public.orders (12 rows), public.proposals (30 rows), which are not read
-- SAYS: REVIEW: public.clients (1 rows) fits, and so do public.customers (20 rows), which are not read
CREATE TABLE customers (id int PRIMARY KEY, cpf text NOT NULL, first_name text, last_name text, created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE clients (id int PRIMARY KEY, cpf text NOT NULL, first_name text, last_name text, created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE proposals (id int PRIMARY KEY, code text NOT NULL UNIQUE, client_id int REFERENCES clients, utility_group text NOT NULL, client_is_payer boolean NOT NULL, created_at timestamptz NOT NULL, completed_at timestamptz);
CREATE TABLE orders (id int PRIMARY KEY, code text NOT NULL UNIQUE, customer_id int REFERENCES customers, utility_group text NOT NULL, customer_is_payer boolean NOT NULL, created_at timestamptz NOT NULL, completed_at timestamptz);
CREATE TABLE sales (id int PRIMARY KEY, code text NOT NULL UNIQUE, client_id int REFERENCES clients, utility_group text NOT NULL, client_is_payer boolean NOT NULL, created_at timestamptz NOT NULL, completed_at timestamptz);
CREATE TABLE contracts (id int PRIMARY KEY, code text NOT NULL UNIQUE, client_id int REFERENCES clients, utility_group text NOT NULL, client_is_payer boolean NOT NULL, created_at timestamptz NOT NULL, completed_at timestamptz);
CREATE TABLE documents (id int PRIMARY KEY, sale_id int REFERENCES sales, document_type text NOT NULL, object_key text NOT NULL, created_at timestamptz NOT NULL);
CREATE TABLE recordings (id int PRIMARY KEY, sale_id int REFERENCES sales, speaker text NOT NULL, object_key text NOT NULL, created_at timestamptz NOT NULL);
CREATE TABLE kyc_reports (id int PRIMARY KEY, sale_id int REFERENCES sales, object_key text NOT NULL, created_at timestamptz NOT NULL);
INSERT INTO clients VALUES (1,'52998224725','Ana','Souza'); INSERT INTO customers SELECT g,(52998224700+g)::text,'B','C' FROM generate_series(1,20) g;
INSERT INTO sales SELECT n,'S-'||n,1,g,p,'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END FROM st;
INSERT INTO contracts SELECT 100+n,'K-'||n,1,'A',true,'2026-10-02 02:30Z',NULL FROM generate_series(1,9) n;
INSERT INTO orders SELECT 200+n,'O-'||n,1,'A',true,'2026-10-02 02:30Z',NULL FROM generate_series(1,12) n;
INSERT INTO proposals SELECT 300+n,'P-'||n,1,'A',true,'2026-10-02 02:30Z',NULL FROM generate_series(1,30) n;
INSERT INTO documents SELECT i,n,CASE t WHEN 'DOC_CONTRATANTE' THEN 'holder' ELSE 'holder_and_payer' END,'d/'||n||'/'||i||x,'2026-10-02 03:00Z' FROM live WHERE x='.pdf' AND t<>'KYC';
INSERT INTO recordings SELECT i,n,CASE t WHEN 'POV' THEN 'holder' ELSE 'payer' END,'r/'||n||'/'||i||x,'2026-10-02 03:00Z' FROM live WHERE x='.mp3';
INSERT INTO kyc_reports SELECT i,n,'k/'||n||'/'||i||x,'2026-10-02 03:00Z' FROM live WHERE t='KYC';
-- KEYS: SELECT object_key FROM documents UNION ALL SELECT object_key FROM recordings UNION ALL SELECT object_key FROM kyc_reports
