-- As a system without NULL has it: the first of January of year one stands for never, and the last day of year 9999 for not yet.
CREATE TABLE cliente (cliente_id int PRIMARY KEY, cpf char(11) NOT NULL, nome varchar(60) NOT NULL, sobrenome varchar(60) NOT NULL);
CREATE TABLE venda (venda_id int PRIMARY KEY, codigo varchar(20) NOT NULL UNIQUE, cliente_id int NOT NULL REFERENCES cliente, grupo char(1) NOT NULL, cliente_paga boolean NOT NULL, criado_em timestamptz NOT NULL, concluido_em timestamptz NOT NULL DEFAULT '0001-01-01 00:00Z', excluido_em timestamptz NOT NULL DEFAULT '0001-01-01 00:00Z');
CREATE TABLE evidencia (evidencia_id int PRIMARY KEY, venda_id int NOT NULL REFERENCES venda, tipo varchar(60) NOT NULL, chave varchar(200) NOT NULL, criado_em timestamptz NOT NULL, excluido_em timestamp NOT NULL DEFAULT '9999-12-31');
INSERT INTO cliente VALUES (1,'52998224725','Ana','Souza');
INSERT INTO venda SELECT n,'S-'||n,1,g,p,'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' ELSE '0001-01-01 00:00Z' END FROM st;
INSERT INTO venda VALUES (9,'S-9',1,'A',true,'2026-10-02 02:30Z','0001-01-01 00:00Z','2026-10-05 10:00Z');
INSERT INTO evidencia SELECT i,n,t,'e/'||n||'/'||i||x,'2026-10-02 03:00Z',CASE WHEN del THEN timestamp '2026-10-05 10:00' ELSE '9999-12-31' END FROM ev;
-- KEYS: SELECT chave FROM evidencia
