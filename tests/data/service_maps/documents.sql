-- As a young service has it: fields in jsonb, and the people of a sale, payer included, in rows of their own.
CREATE SCHEMA shop;
CREATE TABLE shop.person (id uuid PRIMARY KEY, cpf text NOT NULL UNIQUE, profile jsonb NOT NULL, created_at timestamptz NOT NULL);
CREATE TABLE shop.place (id uuid PRIMARY KEY, person_id uuid NOT NULL REFERENCES shop.person, data jsonb NOT NULL);
CREATE TABLE shop.sale (id uuid PRIMARY KEY, code text NOT NULL UNIQUE, attributes jsonb NOT NULL, created_at timestamptz NOT NULL, completed_at timestamptz);
CREATE TABLE shop.sale_person (
  sale_id uuid NOT NULL REFERENCES shop.sale, person_id uuid NOT NULL REFERENCES shop.person, role text NOT NULL, PRIMARY KEY (sale_id, role));
CREATE TABLE shop.evidence (id uuid PRIMARY KEY, sale_id uuid NOT NULL REFERENCES shop.sale, file jsonb NOT NULL, created_at timestamptz NOT NULL, deleted boolean NOT NULL DEFAULT false);
INSERT INTO shop.person
  SELECT md5('person' || n)::uuid, cpf, jsonb_build_object('name', jsonb_build_object('first', 'Ana', 'last', 'Souza'), 'birthdate', '1979-03-04', 'enrollment', '1',
    'numberOnDealership', '7700001'), '2026-10-01 12:00Z'
  FROM (VALUES (1, '52998224725'), (2, '11144477735')) AS p(n, cpf);
INSERT INTO shop.place VALUES (md5('place')::uuid, md5('person1')::uuid,
  '{"neighborhood": "Centro", "installationNumber": "5000001", "street": "Rua A", "number": "1", "city": "Recife", "zipCode": "50000-000"}');
INSERT INTO shop.sale SELECT md5('sale' || n)::uuid, 'S-' || n, jsonb_build_object('utilityGroup', g, 'partner', jsonb_build_object('name', 'Luz Certa')),
  '2026-10-02 02:30Z', CASE WHEN n = 5 THEN timestamptz '2026-10-03 15:00Z' END
  FROM (VALUES (1, 'A'), (2, 'B'), (3, 'C'), (4, 'D'), (5, 'A'), (6, 'B'), (7, 'C')) AS s(n, g);
INSERT INTO shop.sale_person SELECT id, md5('person1')::uuid, 'CONTRACTING_PARTY' FROM shop.sale;
INSERT INTO shop.sale_person SELECT id, md5(CASE WHEN code IN ('S-2', 'S-6') THEN 'person2' ELSE 'person1' END)::uuid, 'PAYER' FROM shop.sale;
INSERT INTO shop.evidence SELECT md5(n || t)::uuid, md5('sale' || n)::uuid,
  jsonb_build_object('kind', t, 'key', 'proofs/' || n || '/' || lower(t) || x, 'mime', CASE x WHEN '.pdf' THEN 'application/pdf' ELSE 'audio/mpeg' END), '2026-10-02 03:00Z', d
  FROM (VALUES (1, 'DOC_CONTRATANTE', '.pdf', false), (1, 'POV', '.mp3', false), (2, 'DOC_CONTRATANTE', '.pdf', false), (2, 'POV', '.mp3', false),
    (3, 'KYC', '.pdf', false), (4, 'KYC', '.pdf', false), (4, 'POV', '.mp3', false), (5, 'DOC_CONTRATANTE', '.pdf', false),
    (6, 'DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO', '.pdf', false), (6, 'POV', '.mp3', false), (6, 'AUT', '.mp3', false),
    (7, 'DOC_CONTRATANTE', '.pdf', false), (7, 'POV', '.mp3', true)) AS e(n, t, x, d);
