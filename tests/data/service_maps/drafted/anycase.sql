-- As a service has it for which capitals do not tell ids apart.
CREATE EXTENSION IF NOT EXISTS citext;
CREATE TABLE cliente (id citext PRIMARY KEY, cpf text NOT NULL, nome text);
CREATE TABLE venda (codigo citext PRIMARY KEY, cliente_id citext REFERENCES cliente, grupo citext NOT NULL, cliente_paga boolean NOT NULL, criado_em timestamptz NOT NULL, concluido_em timestamptz);
CREATE TABLE evidencia (id citext PRIMARY KEY, venda citext NOT NULL REFERENCES venda, tipo citext NOT NULL, chave text NOT NULL, criado_em timestamptz NOT NULL);
INSERT INTO cliente VALUES ('C1','52998224725','Ana Souza');
INSERT INTO venda SELECT 'S-'||n,'c1',lower(g),p,'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END FROM st;
INSERT INTO evidencia SELECT 'e'||i,CASE WHEN i%2=0 THEN 's-' ELSE 'S-' END||n,lower(t),'ev/'||n||'/'||i||x,'2026-10-02 03:00Z' FROM live;
-- KEYS: SELECT chave FROM evidencia
