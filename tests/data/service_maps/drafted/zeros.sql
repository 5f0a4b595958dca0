-- As two teams have it: numbers with zeros in front in one table and without in the other, a uuid here and its text in capitals there.
-- SAYS: which of the sales does it belong to? Perhaps venda_id, whose values are written in another way
-- FILL: evidences.sale_id = { sql = "lpad(this.venda_id::text, 6, '0')" }
CREATE TABLE cliente (id uuid PRIMARY KEY, cpf bigint NOT NULL, nome text);
CREATE TABLE venda (id text PRIMARY KEY, cliente_id text NOT NULL, grupo text NOT NULL, cliente_paga boolean NOT NULL, criado_em timestamptz NOT NULL, concluido_em timestamptz);
CREATE TABLE evidencia (id text PRIMARY KEY, venda_id integer NOT NULL, tipo text NOT NULL, chave text NOT NULL, criado_em timestamptz NOT NULL);
INSERT INTO cliente VALUES (md5('c')::uuid, 52998224725,'Ana Souza');
INSERT INTO venda SELECT lpad(n::text,6,'0'),upper(md5('c')::uuid::text),g,p,'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END FROM st;
INSERT INTO evidencia SELECT md5('e'||i),n,t,'ev/'||n||'/'||i||x,'2026-10-02 03:00Z' FROM live;
-- NAMES: SELECT id, 'S-'||id::int FROM venda
-- KEYS: SELECT chave FROM evidencia
