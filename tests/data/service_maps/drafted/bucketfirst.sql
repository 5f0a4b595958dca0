-- As an older gateway had it: the name of the bucket stands in front of each key.
CREATE TABLE cliente (id serial PRIMARY KEY, cpf text NOT NULL, nome text NOT NULL, sobrenome text NOT NULL, criado_em timestamptz NOT NULL);
CREATE TABLE venda (id serial PRIMARY KEY, protocolo text NOT NULL UNIQUE, cliente_id int NOT NULL REFERENCES cliente, grupo text NOT NULL, titular_responsavel_financeiro boolean NOT NULL, criado_em timestamptz NOT NULL, concluido_em timestamptz);
CREATE TABLE anexo (id serial PRIMARY KEY, venda_id int NOT NULL REFERENCES venda, tipo text NOT NULL, bucket text NOT NULL, caminho text NOT NULL, criado_em timestamptz NOT NULL);
INSERT INTO cliente VALUES (1,'52998224725','Ana','Souza','2026-10-01 12:00Z');
INSERT INTO venda SELECT n,'S-'||n,1,g,p,'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END FROM st;
INSERT INTO anexo SELECT i,n,t,'evidencias-prod','/evidencias-prod/vendas/'||n||'/'||i||x,'2026-10-02 03:00Z' FROM live;
-- KEYS: SELECT 'vendas/'||n||'/'||i||x FROM live
