-- As Hibernate keeps subclasses in one table: its class says what a file is, another column whose it is.
CREATE TABLE cliente (id bigint PRIMARY KEY, cpf varchar(11) NOT NULL, nome varchar(255), sobrenome varchar(255));
CREATE TABLE venda (id bigint PRIMARY KEY, codigo varchar(30) NOT NULL UNIQUE, cliente_id bigint NOT NULL REFERENCES cliente, grupo_tarifario varchar(1) NOT NULL, cliente_responsavel_financeiro boolean NOT NULL, criado_em timestamptz NOT NULL, concluido_em timestamptz);
CREATE TABLE evidencia (dtype varchar(31) NOT NULL, id bigint PRIMARY KEY, venda_id bigint NOT NULL REFERENCES venda, parte varchar(20), chave_s3 varchar(255) NOT NULL, duracao int, paginas int, criado_em timestamptz NOT NULL, removido_em timestamptz);
INSERT INTO cliente VALUES (1,'52998224725','Ana','Souza');
INSERT INTO venda SELECT n,'S-'||n,1,g,p,'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END FROM st;
INSERT INTO evidencia SELECT CASE WHEN t IN ('POV','AUT') THEN 'EvidenciaAudio' WHEN t='KYC' THEN 'EvidenciaBiometria' ELSE 'EvidenciaDocumento' END,i,n,CASE t WHEN 'POV' THEN 'CONTRATANTE' WHEN 'DOC_CONTRATANTE' THEN 'CONTRATANTE' WHEN 'AUT' THEN 'RESPONSAVEL' WHEN 'KYC' THEN NULL ELSE 'AMBOS' END,'ev/'||n||'/'||i||x,NULL,NULL,'2026-10-02 03:00Z',CASE WHEN del THEN timestamptz '2026-10-05 10:00Z' END FROM ev;
-- KEYS: SELECT chave_s3 FROM evidencia
