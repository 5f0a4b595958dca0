-- Tables as Apache Fineract (fineract-provider, initial schema for PostgreSQL) names them, with the columns that the
-- story needs: a sale is a loan with an external id, its documents hang on it by the kind and the id of their parent.
DO $$ BEGIN CREATE ROLE svc NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
CREATE TABLE m_office (id bigserial PRIMARY KEY, name varchar(50) NOT NULL);
CREATE TABLE m_client (id bigserial PRIMARY KEY, account_no varchar(20) NOT NULL, external_id varchar(100), office_id bigint,
  firstname varchar(50), lastname varchar(50), mobile_no varchar(50), email_address varchar(150), date_of_birth date,
  submittedon_date date);
CREATE TABLE m_loan (id bigserial PRIMARY KEY, external_id varchar(100) UNIQUE, client_id bigint REFERENCES m_client,
  product_id bigint NOT NULL, guarantor_id bigint, loan_status_id smallint NOT NULL, created_on_utc timestamptz NOT NULL,
  closedon_date date);
CREATE TABLE m_product_loan (id bigserial PRIMARY KEY, short_name varchar(4) NOT NULL, name varchar(100) NOT NULL);
CREATE TABLE m_document (id bigserial PRIMARY KEY, parent_entity_type varchar(50) NOT NULL, parent_entity_id bigint NOT NULL,
  name varchar(250) NOT NULL, file_name varchar(250) NOT NULL, type varchar(500), description varchar(1000),
  location varchar(500) NOT NULL, created_on_utc timestamptz NOT NULL);
INSERT INTO m_office VALUES (1, 'Energia Certa');
INSERT INTO m_client VALUES (1, '000000001', '52998224725', 1, 'Antônia', 'Gonçalves', '11987654321', NULL, '1979-03-04',
  '2026-10-01');
INSERT INTO m_product_loan SELECT n, 'G' || chr(64 + n), 'Grupo ' || chr(64 + n) FROM generate_series(1, 4) AS n;
INSERT INTO m_loan SELECT 100 + n, 'V-' || n, 1, p, g, CASE n WHEN 5 THEN 600 WHEN 8 THEN 400 ELSE 300 END,
  '2026-10-02 02:30Z', CASE WHEN n = 5 THEN date '2026-10-03' END
  FROM (VALUES (1, 1, NULL), (2, 2, 7), (3, 3, NULL), (4, 4, NULL), (5, 1, NULL), (6, 2, 7), (7, 3, NULL), (8, 1, NULL))
  AS s(n, p, g);
INSERT INTO m_document (parent_entity_type, parent_entity_id, name, file_name, type, description, location, created_on_utc)
  SELECT 'loans', 100 + n, t, lower(t) || x, CASE x WHEN '.pdf' THEN 'application/pdf' ELSE 'audio/mpeg' END, t,
    format('documents/loans/%s/%s%s', 100 + n, lower(t), x), '2026-10-02 03:00Z'
  FROM (VALUES (1, 'DOC_CONTRATANTE', '.pdf'), (1, 'POV', '.mp3'), (2, 'DOC_CONTRATANTE', '.pdf'), (2, 'POV', '.mp3'),
    (3, 'KYC', '.pdf'), (4, 'KYC', '.pdf'), (4, 'POV', '.mp3'), (5, 'DOC_CONTRATANTE', '.pdf'),
    (6, 'DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO', '.pdf'), (6, 'POV', '.mp3'), (6, 'AUT', '.mp3'),
    (7, 'DOC_CONTRATANTE', '.pdf')) AS e(n, t, x);
INSERT INTO m_document (parent_entity_type, parent_entity_id, name, file_name, type, description, location, created_on_utc)
  VALUES ('clients', 107, 'POV', 'pov.mp3', 'audio/mpeg', 'POV', 'documents/clients/107/pov.mp3', '2026-10-02 03:00Z');
