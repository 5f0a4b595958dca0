-- As a service with tables of values has it: what a type means stands in a comment, and a link between sale and file has a kind.
CREATE TABLE evidence_kind (value text PRIMARY KEY, comment text NOT NULL);
INSERT INTO evidence_kind VALUES ('voice_holder','Audio of the contracting party'),('voice_payer','Audio of the financially responsible person'),('id_holder','Document of the contracting party'),('id_payer','Document of the financially responsible person'),('id_both','Document of the contracting party and the financially responsible person'),('kyc','Facial biometrics');
CREATE TABLE tariff (value text PRIMARY KEY, comment text);
INSERT INTO tariff VALUES ('A','high'),('B','low'),('C','rural'),('D','other');
CREATE TABLE account (id uuid PRIMARY KEY, cpf text NOT NULL, given_name text NOT NULL, family_name text NOT NULL);
CREATE TABLE sale (id uuid PRIMARY KEY, public_id text NOT NULL UNIQUE, holder_id uuid NOT NULL REFERENCES account, payer_id uuid NOT NULL REFERENCES account, tariff text NOT NULL REFERENCES tariff, inserted_at timestamptz NOT NULL, done_at timestamptz, voided_at timestamptz);
CREATE TABLE file (id uuid PRIMARY KEY, storage_key text NOT NULL UNIQUE, mime text NOT NULL, inserted_at timestamptz NOT NULL);
CREATE TABLE sale_file (sale_id uuid NOT NULL REFERENCES sale, file_id uuid NOT NULL REFERENCES file, kind text NOT NULL REFERENCES evidence_kind, removed_at timestamptz, PRIMARY KEY (sale_id, file_id));
INSERT INTO account VALUES (md5('c')::uuid,'52998224725','Ana','Souza'),(md5('p')::uuid,'11144477735','Bia','Souza');
INSERT INTO sale SELECT md5('s'||n)::uuid,'S-'||n,md5('c')::uuid,CASE WHEN p THEN md5('c') ELSE md5('p') END::uuid,g,'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END FROM st;
INSERT INTO file SELECT md5('e'||i)::uuid,'f/'||n||'/'||i||x,CASE x WHEN '.pdf' THEN 'application/pdf' ELSE 'audio/mpeg' END,'2026-10-02 03:00Z' FROM ev;
INSERT INTO sale_file SELECT md5('s'||n)::uuid,md5('e'||i)::uuid,CASE t WHEN 'POV' THEN 'voice_holder' WHEN 'AUT' THEN 'voice_payer' WHEN 'DOC_CONTRATANTE' THEN 'id_holder' WHEN 'KYC' THEN 'kyc' ELSE 'id_both' END,CASE WHEN del THEN timestamptz '2026-10-05 10:00Z' END FROM ev;
-- KEYS: SELECT storage_key FROM file
