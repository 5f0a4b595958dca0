-- As a system of several states has it: a zone in each row, infinity or the year 1 for never, the hour 24:00, midnights that summer time leaves out.
CREATE TABLE cliente (id int PRIMARY KEY, cpf text NOT NULL, nome text, nascimento date);
CREATE TABLE venda (id int PRIMARY KEY, codigo text NOT NULL UNIQUE, cliente_id int REFERENCES cliente, grupo text NOT NULL, cliente_paga boolean NOT NULL, criado_em timestamp NOT NULL, fuso text NOT NULL, concluido_em timestamp NOT NULL DEFAULT 'infinity', excluido_em timestamp NOT NULL DEFAULT 'infinity');
CREATE TABLE evidencia (id bytea PRIMARY KEY, venda_id int REFERENCES venda, tipo text NOT NULL, chave text NOT NULL, dia date NOT NULL, hora time NOT NULL, excluido_em timestamp NOT NULL DEFAULT '0001-01-01');
INSERT INTO cliente VALUES (1,'52998224725','Ana','0044-03-15 BC');
INSERT INTO venda SELECT n,'S-'||n,1,g,p,'2018-11-04 00:00',CASE WHEN n%2=0 THEN 'America/Manaus' ELSE 'America/Sao_Paulo' END,CASE WHEN d THEN timestamp '2026-10-03 15:00' ELSE 'infinity' END FROM st;
INSERT INTO evidencia SELECT decode(md5(i::text),'hex'),n,t,'ev/'||n||'/'||i||x,'2026-10-02','24:00',CASE WHEN del THEN timestamp '2026-10-05' ELSE '0001-01-01' END FROM ev;
-- KEYS: SELECT chave FROM evidencia
