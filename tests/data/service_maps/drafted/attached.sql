-- As Rails attaches files to the sale itself: the name of the attachment is the type, the key of the file says nothing, the payer is named by kind and key.
CREATE TABLE schema_migrations (version varchar PRIMARY KEY);
CREATE TABLE ar_internal_metadata (key varchar PRIMARY KEY, value varchar, created_at timestamp(6) NOT NULL, updated_at timestamp(6) NOT NULL);
CREATE TABLE customers (id bigserial PRIMARY KEY, cpf varchar NOT NULL, first_name varchar, last_name varchar, created_at timestamp(6) NOT NULL, updated_at timestamp(6) NOT NULL, discarded_at timestamp(6));
CREATE TABLE contracts (id bigserial PRIMARY KEY, number varchar NOT NULL UNIQUE, customer_id bigint NOT NULL REFERENCES customers, utility_group integer NOT NULL DEFAULT 0, payer_type varchar, payer_id bigint, aasm_state varchar NOT NULL, finalized_at timestamp(6), created_at timestamp(6) NOT NULL, updated_at timestamp(6) NOT NULL);
COMMENT ON COLUMN contracts.utility_group IS '0: A, 1: B, 2: C, 3: D';
CREATE TABLE guarantors (id bigserial PRIMARY KEY, cpf varchar NOT NULL, name varchar);
CREATE TABLE active_storage_blobs (id bigserial PRIMARY KEY, key varchar NOT NULL UNIQUE, filename varchar NOT NULL, content_type varchar, metadata text, service_name varchar NOT NULL, byte_size bigint NOT NULL, checksum varchar, created_at timestamp(6) NOT NULL);
CREATE TABLE active_storage_attachments (id bigserial PRIMARY KEY, name varchar NOT NULL, record_type varchar NOT NULL, record_id bigint NOT NULL, blob_id bigint NOT NULL REFERENCES active_storage_blobs, created_at timestamp(6) NOT NULL);
INSERT INTO schema_migrations VALUES ('20260101');
INSERT INTO customers VALUES (1,'52998224725','Ana','Souza','2026-10-01 12:00','2026-10-01 12:00');
INSERT INTO guarantors VALUES (1,'11144477735','Bia');
INSERT INTO contracts SELECT 100+n,'S-'||n,1,ascii(g)-65,CASE WHEN p THEN 'Customer' ELSE 'Guarantor' END,1,CASE WHEN d THEN 'finalized' ELSE 'draft' END,CASE WHEN d THEN timestamp '2026-10-03 15:00' END,'2026-10-02 02:30','2026-10-03 15:00' FROM st;
INSERT INTO active_storage_blobs SELECT 900+i, 'x7k'||md5(i::text), lower(t)||x, CASE x WHEN '.pdf' THEN 'application/pdf' ELSE 'audio/mpeg' END,'{}','amazon',100,'abc','2026-10-02 03:00' FROM live;
INSERT INTO active_storage_attachments SELECT 700+i,lower(t),'Contract',100+n,900+i,'2026-10-02 03:00' FROM live;
INSERT INTO active_storage_blobs VALUES (1,'avatar1','avatar.pdf','application/pdf','{}','amazon',1,'a','2026-10-01 12:00');
INSERT INTO active_storage_attachments VALUES (1,'avatar','Customer',101,1,'2026-10-01 12:00');
-- KEYS: SELECT key FROM active_storage_blobs
