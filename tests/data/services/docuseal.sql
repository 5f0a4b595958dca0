-- Tables as DocuSeal (docusealco/docuseal, db/schema.rb of 2025) names them, with the columns that the story needs:
-- a sale is a submission, its facts stand in the metadata of its submitter, its files are attachments of Rails.
DO $$ BEGIN CREATE ROLE svc NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
CREATE TABLE accounts (id bigserial PRIMARY KEY, name varchar NOT NULL, archived_at timestamp(6));
CREATE TABLE submissions (id bigserial PRIMARY KEY, account_id bigint NOT NULL, slug varchar NOT NULL UNIQUE,
  archived_at timestamp(6), created_at timestamp(6) NOT NULL);
CREATE TABLE submitters (id bigserial PRIMARY KEY, submission_id bigint NOT NULL, uuid varchar NOT NULL, name varchar,
  email varchar, phone varchar, external_id varchar, metadata text NOT NULL, completed_at timestamp(6),
  created_at timestamp(6) NOT NULL);
CREATE TABLE active_storage_blobs (id bigserial PRIMARY KEY, key varchar NOT NULL UNIQUE, filename varchar NOT NULL,
  content_type varchar, byte_size bigint NOT NULL, uuid varchar UNIQUE, created_at timestamp(6) NOT NULL);
CREATE TABLE active_storage_attachments (id bigserial PRIMARY KEY, name varchar NOT NULL, uuid varchar NOT NULL,
  record_type varchar NOT NULL, record_id bigint NOT NULL, blob_id bigint NOT NULL, created_at timestamp(6) NOT NULL);
INSERT INTO accounts VALUES (1, 'Energia Certa', NULL);
INSERT INTO submissions SELECT 100 + n, 1, 'V-' || n, CASE WHEN n = 8 THEN timestamp '2026-10-04' END,
  '2026-10-02 02:30' FROM generate_series(1, 8) AS n;
INSERT INTO submitters SELECT 200 + n, 100 + n, gen_random_uuid()::text, 'Antônia Gonçalves', NULL, '+5511987654321',
  NULL, json_build_object('grupo', g, 'pagador', p, 'cpf', '529.982.247-25')::text,
  CASE WHEN n = 5 THEN timestamp '2026-10-03 15:00' END, '2026-10-02 02:30'
  FROM (VALUES (1, 'A', 'cliente'), (2, 'B', 'terceiro'), (3, 'C', 'cliente'), (4, 'D', 'cliente'), (5, 'A', 'cliente'),
    (6, 'B', 'terceiro'), (7, 'C', 'cliente'), (8, 'A', 'cliente')) AS s(n, g, p);
INSERT INTO active_storage_blobs SELECT place, 'blob-' || place || '-' || t || x, t || x,
  CASE x WHEN '.pdf' THEN 'application/pdf' ELSE 'audio/mpeg' END, 1, NULL, '2026-10-02 03:00'
  FROM (SELECT row_number() OVER () AS place, t, x FROM (VALUES (1, 'contrato', '.pdf'), (1, 'voz', '.mp3'),
    (2, 'contrato', '.pdf'), (2, 'voz', '.mp3'), (3, 'kyc', '.pdf'), (4, 'kyc', '.pdf'), (4, 'voz', '.mp3'),
    (5, 'contrato', '.pdf'), (6, 'ambos', '.pdf'), (6, 'voz', '.mp3'), (6, 'voz_pagador', '.mp3'),
    (7, 'contrato', '.pdf')) AS f(n, t, x)) AS file;
INSERT INTO active_storage_attachments SELECT place, t, gen_random_uuid()::text, 'Submitter', 200 + n, place,
  '2026-10-02 03:00'
  FROM (SELECT row_number() OVER () AS place, n, t FROM (VALUES (1, 'contrato'), (1, 'voz'), (2, 'contrato'),
    (2, 'voz'), (3, 'kyc'), (4, 'kyc'), (4, 'voz'), (5, 'contrato'), (6, 'ambos'), (6, 'voz'), (6, 'voz_pagador'),
    (7, 'contrato')) AS f(n, t)) AS file;
INSERT INTO active_storage_attachments VALUES (99, 'logo', gen_random_uuid()::text, 'Account', 1, 1, '2026-10-02');
