-- As a Rails application has it: another schema, numbers as keys, words as codes, the group in a table of distributors, soft deletion.
CREATE SCHEMA backoffice;
CREATE TABLE backoffice.ar_internal_metadata (key varchar PRIMARY KEY, value varchar);
CREATE TABLE backoffice.addresses (
  id bigserial PRIMARY KEY, district varchar(80) NOT NULL, consumer_unit varchar(11) NOT NULL, street varchar(120) NOT NULL,
  number varchar(10) NOT NULL, city varchar(80) NOT NULL, postal_code varchar(9) NOT NULL,
  created_at timestamp(6) NOT NULL, updated_at timestamp(6) NOT NULL);
CREATE TABLE backoffice.customers (
  id bigserial PRIMARY KEY, address_id bigint REFERENCES backoffice.addresses, tax_id varchar(14) NOT NULL, identity_number varchar(20),
  utility_client_number varchar(20) NOT NULL, enrollment varchar(20) NOT NULL, full_name varchar(120) NOT NULL, email varchar(254),
  birth_date date NOT NULL, mobile varchar(11), created_at timestamp(6) NOT NULL, updated_at timestamp(6) NOT NULL);
CREATE TABLE backoffice.agents (id bigserial PRIMARY KEY, name varchar(60) NOT NULL);
CREATE TABLE backoffice.utility_groups (id bigserial PRIMARY KEY, label varchar(20) NOT NULL);
CREATE TABLE backoffice.orders (
  id bigserial PRIMARY KEY, number varchar(20) NOT NULL, customer_id bigint REFERENCES backoffice.customers, agent_id bigint REFERENCES backoffice.agents,
  utility_group_id bigint NOT NULL REFERENCES backoffice.utility_groups, third_party_payer smallint NOT NULL, status varchar(20) NOT NULL,
  created_at timestamp(6) NOT NULL, closed_at timestamp(6), updated_at timestamp(6) NOT NULL);
CREATE UNIQUE INDEX orders_number ON backoffice.orders (number);
CREATE TABLE backoffice.attachments (
  id bigserial PRIMARY KEY, order_id bigint NOT NULL REFERENCES backoffice.orders, category varchar(60) NOT NULL, filename varchar(255) NOT NULL,
  content_type varchar(100) NOT NULL, storage_key varchar(400) NOT NULL UNIQUE, uploaded_by varchar(60) NOT NULL,
  deleted_at timestamp(6), created_at timestamp(6) NOT NULL, updated_at timestamp(6) NOT NULL);
INSERT INTO backoffice.addresses VALUES (1, 'Centro', '5000001', 'Rua A', '1', 'Recife', '50000-000', '2026-10-01 12:00', '2026-10-01 12:00');
INSERT INTO backoffice.customers VALUES (1, 1, '52998224725', NULL, '7700001', '1', 'Ana Souza', NULL, '1979-03-04', NULL, '2026-10-01 12:00', '2026-10-01 12:00');
INSERT INTO backoffice.agents VALUES (1, 'Luz Certa');
INSERT INTO backoffice.utility_groups VALUES (1, 'Group A'), (2, 'Group B'), (3, 'Group C'), (4, 'Group D');
INSERT INTO backoffice.orders SELECT n, 'S-' || n, 1, 1, g, f, CASE WHEN n = 5 THEN 'completed' WHEN n = 8 THEN 'cancelled' ELSE 'open' END,
  '2026-10-02 02:30', CASE WHEN n = 5 THEN timestamp '2026-10-03 15:00' END, '2026-10-03 15:00'
  FROM (VALUES (1, 1, 0), (2, 2, 1), (3, 3, 0), (4, 4, 0), (5, 1, 0), (6, 2, 1), (7, 3, 0), (8, 1, 0)) AS s(n, g, f);
INSERT INTO backoffice.attachments SELECT row_number() OVER (), n, t, t || x, CASE x WHEN '.pdf' THEN 'application/pdf' ELSE 'audio/mpeg' END,
  'attachments/' || n || '/' || t || x, 'clerk', CASE WHEN d THEN timestamp '2026-10-05 10:00' END, '2026-10-02 03:00', '2026-10-02 03:00'
  FROM (VALUES (1, 'doc_contratante', '.pdf', false), (1, 'pov', '.mp3', false), (2, 'doc_contratante', '.pdf', false), (2, 'pov', '.mp3', false),
    (3, 'kyc', '.pdf', false), (4, 'kyc', '.pdf', false), (4, 'pov', '.mp3', false), (5, 'doc_contratante', '.pdf', false),
    (6, 'doc_contratante_e_responsavel_financeiro', '.pdf', false), (6, 'pov', '.mp3', false), (6, 'aut', '.mp3', false),
    (7, 'doc_contratante', '.pdf', false), (7, 'pov', '.mp3', true)) AS e(n, t, x, d);
SELECT setval('backoffice.attachments_id_seq', 4000);
