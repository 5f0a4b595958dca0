-- As a system that keeps every state has it: ranges of time in which a row holds, versions of files in their keys, and addresses of files in three forms.
-- KEYS: SELECT 'ev '||n||'/'||i||x FROM live
CREATE TABLE cliente (id int PRIMARY KEY, cpf char(14) NOT NULL, nome text NOT NULL, sobrenome text NOT NULL);
CREATE TABLE contrato (id int NOT NULL, codigo text NOT NULL, cliente_id int NOT NULL REFERENCES cliente, grupo char(2) NOT NULL, titular_paga char(1) NOT NULL, criado_em timestamptz NOT NULL, concluido_em timestamptz, vigencia tstzrange NOT NULL, PRIMARY KEY (id, vigencia));
CREATE TABLE arquivo (contrato_id int NOT NULL, tipo text NOT NULL, versao int NOT NULL, url text NOT NULL, criado_em timestamptz NOT NULL, PRIMARY KEY (contrato_id, tipo, versao));
INSERT INTO cliente VALUES (1,'529.982.247-25','Ana','Souza');
INSERT INTO contrato SELECT n,'S-'||n,1,g,CASE WHEN p THEN 'S' ELSE 'N' END,'2026-10-02 02:30Z',NULL,tstzrange('2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END) FROM st;
INSERT INTO contrato SELECT id,codigo,1,grupo,titular_paga,criado_em,upper(vigencia),tstzrange(upper(vigencia),NULL) FROM contrato WHERE NOT upper_inf(vigencia);
INSERT INTO arquivo SELECT n,t,1,CASE i%3 WHEN 0 THEN 's3://prova/ev '||n||'/'||i||x WHEN 1 THEN 'https://prova.s3.sa-east-1.amazonaws.com/ev%20'||n||'/'||i||x||'?X-Amz-Expires=9' ELSE 'https://s3.sa-east-1.amazonaws.com/prova/ev%20'||n||'/'||i||x END,'2026-10-02 03:00Z' FROM ev;
INSERT INTO arquivo SELECT n,t,2,'s3://prova/removed/'||i||x,'2026-10-03 03:00Z' FROM ev WHERE del;
