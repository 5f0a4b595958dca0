-- As a large service has it: partitioned tables in schemas of their own, and no foreign keys.
CREATE SCHEMA pessoas; CREATE SCHEMA comercial; CREATE SCHEMA arquivos;
CREATE TABLE pessoas.cliente (id bigint PRIMARY KEY, cpf text NOT NULL, nome text NOT NULL, sobrenome text NOT NULL, criado_em timestamptz NOT NULL);
CREATE TABLE comercial.contrato (id bigint NOT NULL, codigo text NOT NULL, cliente_id bigint NOT NULL, grupo_cliente text NOT NULL, tipo_pagador text NOT NULL, situacao text NOT NULL, criado_em timestamptz NOT NULL, finalizado_em timestamptz, PRIMARY KEY (id, criado_em)) PARTITION BY RANGE (criado_em);
CREATE TABLE comercial.contrato_2025 PARTITION OF comercial.contrato FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE comercial.contrato_2026 PARTITION OF comercial.contrato FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE TABLE arquivos.evidencia (id bigint NOT NULL, contrato_id bigint NOT NULL, tipo_id smallint NOT NULL, bucket text NOT NULL, chave text NOT NULL, tamanho bigint, criado_em timestamptz NOT NULL, removido boolean NOT NULL DEFAULT false, PRIMARY KEY (id, criado_em)) PARTITION BY HASH (id);
CREATE TABLE arquivos.evidencia_0 PARTITION OF arquivos.evidencia FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE arquivos.evidencia_1 PARTITION OF arquivos.evidencia FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE arquivos.tipo_evidencia (id smallint PRIMARY KEY, sigla text NOT NULL, descricao text NOT NULL);
INSERT INTO arquivos.tipo_evidencia VALUES (1,'POV','Prova de voz'),(2,'AUT','Autorização do responsável'),(3,'DOC_CONTRATANTE','Doc'),(4,'DOC_RESPONSAVEL_FINANCEIRO','Doc resp'),(5,'DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO','Doc ambos'),(6,'KYC','kyc');
INSERT INTO pessoas.cliente VALUES (1,'52998224725','Ana','Souza','2026-10-01 12:00Z');
INSERT INTO comercial.contrato SELECT 100+n,'S-'||n,1,g,CASE WHEN p THEN 'PROPRIO' ELSE 'OUTRO' END,CASE WHEN d THEN 'FINALIZADO' ELSE 'ABERTO' END,'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END FROM st;
INSERT INTO comercial.contrato VALUES (199,'S-99',1,'A','PROPRIO','CANCELADO','2026-10-02 02:30Z',NULL);
INSERT INTO arquivos.evidencia SELECT i,100+n,CASE t WHEN 'POV' THEN 1 WHEN 'AUT' THEN 2 WHEN 'DOC_CONTRATANTE' THEN 3 WHEN 'KYC' THEN 6 ELSE 5 END,'prod','ev/'||n||'/'||i||x,100,'2026-10-02 03:00Z',del FROM ev;
