-- As a growing company has it: proposals become sales, documents belong to the client, codes and flags that nobody explains tell rows that do not count, an employee is responsible.
-- FILL: sales.from = "(SELECT s.*, p.cliente_id, p.grupo FROM venda AS s JOIN proposta AS p ON p.id = s.proposta_id)"
-- FILL: sales.where = "this.status <> 9 AND NOT this.ambiente_teste"
-- FILL: sales.id = "codigo"
-- FILL: sales.completed_at = "concluido_em"
-- FILL: sales.is_client_financial_responsible = { sql = "this.obs IS DISTINCT FROM 'terceiro paga'" }
-- FILL: evidences.from = "(SELECT r.id::text, r.venda_id, r.tipo, r.chave, r.aprovado, r.criado_em FROM gravacao AS r UNION ALL SELECT 'd' || d.id, v.id, d.tipo, d.chave, 1, d.criado_em FROM documento_cliente AS d JOIN proposta AS p USING (cliente_id) JOIN venda AS v ON v.proposta_id = p.id WHERE v.id < 9)"
-- FILL: evidences.where = "this.aprovado = 1"
-- FILL: evidences.sale_id = { column = "codigo", table = "public.venda", key = "id", by = "venda_id" }
CREATE TABLE usuario (id bigserial PRIMARY KEY, login text NOT NULL);
CREATE TABLE cliente (id bigserial PRIMARY KEY, cpf text NOT NULL, nome text, sobrenome text);
CREATE TABLE proposta (id bigserial PRIMARY KEY, numero text NOT NULL UNIQUE, cliente_id bigint NOT NULL REFERENCES cliente, grupo text NOT NULL, criado_em timestamptz NOT NULL);
CREATE TABLE venda (id bigserial PRIMARY KEY, codigo text NOT NULL UNIQUE, proposta_id bigint NOT NULL REFERENCES proposta, responsavel_id bigint NOT NULL REFERENCES usuario, obs text, status int NOT NULL, ambiente_teste boolean NOT NULL, criado_em timestamptz NOT NULL, concluido_em timestamptz);
CREATE TABLE gravacao (id bigserial PRIMARY KEY, venda_id bigint NOT NULL REFERENCES venda, tipo text NOT NULL, chave text NOT NULL, aprovado smallint NOT NULL, criado_em timestamptz NOT NULL);
CREATE TABLE documento_cliente (id bigserial PRIMARY KEY, cliente_id bigint NOT NULL REFERENCES cliente, tipo text NOT NULL, chave text NOT NULL, criado_em timestamptz NOT NULL);
INSERT INTO usuario VALUES (1,'leo'); INSERT INTO cliente SELECT n,(52998224700+n)::text,'Ana','Souza' FROM st;
INSERT INTO proposta SELECT 50+n,'P-'||n,n,g,'2026-10-02 02:00Z' FROM st;
INSERT INTO venda SELECT n,'S-'||n,50+n,1,CASE WHEN p THEN NULL ELSE 'terceiro paga' END,CASE WHEN d THEN 3 ELSE 1 END,false,'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END FROM st;
INSERT INTO venda VALUES (9,'S-9',51,1,NULL,9,false,'2026-10-02 02:30Z',NULL),(10,'S-10',51,1,NULL,1,true,'2026-10-02 02:30Z',NULL);
INSERT INTO gravacao SELECT i,n,t,'r/'||n||'/'||i||x,CASE WHEN del THEN 0 ELSE 1 END,'2026-10-02 03:00Z' FROM ev WHERE x='.mp3';
INSERT INTO documento_cliente SELECT i,n,t,'d/'||n||'/'||i||x,'2026-10-02 03:00Z' FROM live WHERE x='.pdf';
-- KEYS: SELECT chave FROM gravacao UNION ALL SELECT chave FROM documento_cliente
