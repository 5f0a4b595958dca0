-- As Rails keeps files: apart from the records, joined by rows that name a record by its class and its key.
CREATE TABLE schema_migrations (version varchar PRIMARY KEY);
CREATE TABLE ar_internal_metadata (key varchar PRIMARY KEY, value varchar, created_at timestamp(6) NOT NULL, updated_at timestamp(6) NOT NULL);
CREATE TABLE customers (id bigserial PRIMARY KEY, cpf varchar NOT NULL, first_name varchar, last_name varchar, email varchar, birth_date date, created_at timestamp(6) NOT NULL, updated_at timestamp(6) NOT NULL);
CREATE TABLE sales (id bigserial PRIMARY KEY, reference varchar NOT NULL UNIQUE, customer_id bigint NOT NULL REFERENCES customers, utility_group varchar NOT NULL, customer_is_payer boolean NOT NULL DEFAULT true, finished_at timestamp(6), created_at timestamp(6) NOT NULL, updated_at timestamp(6) NOT NULL);
CREATE TABLE evidences (id bigserial PRIMARY KEY, sale_id bigint NOT NULL REFERENCES sales, kind varchar NOT NULL, discarded_at timestamp(6), created_at timestamp(6) NOT NULL, updated_at timestamp(6) NOT NULL);
CREATE TABLE active_storage_blobs (id bigserial PRIMARY KEY, key varchar NOT NULL UNIQUE, filename varchar NOT NULL, content_type varchar, metadata text, service_name varchar NOT NULL, byte_size bigint NOT NULL, checksum varchar, created_at timestamp(6) NOT NULL);
CREATE TABLE active_storage_attachments (id bigserial PRIMARY KEY, name varchar NOT NULL, record_type varchar NOT NULL, record_id bigint NOT NULL, blob_id bigint NOT NULL REFERENCES active_storage_blobs, created_at timestamp(6) NOT NULL);
CREATE TABLE active_storage_variant_records (id bigserial PRIMARY KEY, blob_id bigint NOT NULL REFERENCES active_storage_blobs, variation_digest varchar NOT NULL);
INSERT INTO schema_migrations VALUES ('20260101');
INSERT INTO customers VALUES (1,'52998224725','Ana','Souza','ana@example.com','1979-03-04','2026-10-01 12:00','2026-10-01 12:00');
INSERT INTO sales SELECT 100+n,'S-'||n,1,g,p,CASE WHEN d THEN timestamp '2026-10-03 15:00' END,'2026-10-02 02:30','2026-10-03 15:00' FROM st;
INSERT INTO evidences SELECT 500+i,100+n,lower(t),CASE WHEN del THEN timestamp '2026-10-05 10:00' END,'2026-10-02 03:00','2026-10-02 03:00' FROM ev;
INSERT INTO active_storage_blobs SELECT 900+i, 'x7k'||md5(i::text)||x, lower(t)||x, CASE x WHEN '.pdf' THEN 'application/pdf' ELSE 'audio/mpeg' END,'{"identified":true}','amazon',100,'abc','2026-10-02 03:00' FROM ev;
INSERT INTO active_storage_blobs VALUES (1,'avatar1.pdf','avatar.pdf','application/pdf','{}','amazon',1,'a','2026-10-01 12:00');
INSERT INTO active_storage_attachments SELECT 700+i,'file','Evidence',500+i,900+i,'2026-10-02 03:00' FROM ev;
INSERT INTO active_storage_attachments VALUES (1,'avatar','Customer',1,1,'2026-10-01 12:00');
