-- As a service that only adds rows: completion, cancellation and deletion stand in tables of events.
CREATE TABLE customers (id uuid PRIMARY KEY, cpf text NOT NULL, first_name text NOT NULL, last_name text NOT NULL, created_at timestamptz NOT NULL);
CREATE TABLE orders (id uuid PRIMARY KEY, order_number text NOT NULL UNIQUE, customer_id uuid NOT NULL REFERENCES customers, utility_group text NOT NULL, customer_is_payer boolean NOT NULL, created_at timestamptz NOT NULL);
CREATE TABLE order_status_history (id bigserial PRIMARY KEY, order_id uuid NOT NULL REFERENCES orders, status text NOT NULL, changed_at timestamptz NOT NULL);
CREATE TABLE order_files (id uuid PRIMARY KEY, order_id uuid NOT NULL REFERENCES orders, evidence_type text NOT NULL, file_name text NOT NULL, object_key text NOT NULL, created_at timestamptz NOT NULL);
CREATE TABLE order_file_events (id bigserial PRIMARY KEY, order_file_id uuid NOT NULL REFERENCES order_files, event text NOT NULL, at timestamptz NOT NULL);
INSERT INTO customers VALUES (md5('c')::uuid,'52998224725','Ana','Souza','2026-10-01 12:00Z');
INSERT INTO orders SELECT md5('s'||n)::uuid,'S-'||n,md5('c')::uuid,g,p,'2026-10-02 02:30Z' FROM st;
INSERT INTO orders VALUES (md5('s9')::uuid,'S-9',md5('c')::uuid,'A',true,'2026-10-02 02:30Z');
INSERT INTO order_status_history (order_id,status,changed_at) SELECT md5('s'||n)::uuid,'created','2026-10-02 02:30Z'::timestamptz FROM st UNION ALL SELECT md5('s5')::uuid,'completed','2026-10-03 15:00Z' UNION ALL SELECT md5('s9')::uuid,'cancelled','2026-10-03 15:00Z';
INSERT INTO order_files SELECT md5('e'||i)::uuid,md5('s'||n)::uuid,t,lower(t)||x,'o/'||n||'/'||i||x,'2026-10-02 03:00Z' FROM ev;
INSERT INTO order_file_events (order_file_id,event,at) SELECT md5('e'||i)::uuid,'created','2026-10-02 03:00Z'::timestamptz FROM ev UNION ALL SELECT md5('e13')::uuid,'deleted','2026-10-05 10:00Z';
-- KEYS: SELECT object_key FROM order_files
