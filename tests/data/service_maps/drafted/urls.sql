-- As a small team has it: addresses of files with %20 in them, a payer who is another client, the group by the name of the distributor.
CREATE TABLE cliente (id serial PRIMARY KEY, cpf text NOT NULL, nome text NOT NULL, sobrenome text NOT NULL, bairro text, numero_instalacao text, rua text, numero text, cidade text, cep text, criado_em timestamptz NOT NULL);
CREATE TABLE venda (id serial PRIMARY KEY, protocolo text NOT NULL UNIQUE, cliente_id int NOT NULL REFERENCES cliente, pagador_id int REFERENCES cliente, distribuidora text NOT NULL, criado_em timestamptz NOT NULL, concluido_em timestamptz);
CREATE TABLE distribuidora_grupo (nome text PRIMARY KEY, grupo text NOT NULL);
CREATE TABLE anexo (id serial PRIMARY KEY, venda_id int NOT NULL REFERENCES venda, tipo text NOT NULL, url text NOT NULL, criado_em timestamptz NOT NULL);
INSERT INTO cliente VALUES (1,'52998224725','Ana','Souza','Centro','5000001','Rua A','1','Recife','50000-000','2026-10-01 12:00Z'),(2,'11144477735','Bia','Souza','Centro','5000001','Rua A','1','Recife','50000-000','2026-10-01 12:00Z');
INSERT INTO distribuidora_grupo VALUES ('Enel SP','A'),('CEMIG','B'),('Copel','C'),('Light','D');
INSERT INTO venda SELECT n,'S-'||n,1,CASE WHEN p THEN NULL ELSE 2 END,(ARRAY['Enel SP','CEMIG','Copel','Light'])[ascii(g)-64],'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END FROM st;
INSERT INTO anexo SELECT i,n,t,'https://evidencias.s3.sa-east-1.amazonaws.com/v%C3%A9nda%20'||n||'/'||i||'%20a%2Bb'||x,'2026-10-02 03:00Z' FROM live;
-- KEYS: SELECT 'vénda '||n||'/'||i||' a+b'||x FROM live
