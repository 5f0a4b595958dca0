-- As a system of many lists has it: states, groups and types by number; files name their owner by a row of a table of kinds; one completed sale was opened again.
-- FILL: evidences.evidence_type = { column = "ds_tipo", table = "public.tb_tipo_documento", key = "id_tipo", by = "id_tipo", codes = { "Áudio do contratante" = "POV", "Áudio do responsável financeiro" = "AUT", "Documento do contratante" = "DOC_CONTRATANTE", "Documento dos dois" = "DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO", "Biometria facial" = "KYC" } }
CREATE TABLE tb_situacao (id_situacao smallint PRIMARY KEY, ds_situacao text NOT NULL);
INSERT INTO tb_situacao VALUES (1,'Em aberto'),(3,'Concluída'),(4,'Cancelada'),(5,'Reaberta');
CREATE TABLE tb_grupo_tarifario (id_grupo smallint PRIMARY KEY, ds_grupo text NOT NULL);
INSERT INTO tb_grupo_tarifario VALUES (10,'Grupo A'),(20,'Grupo B'),(30,'Grupo C'),(40,'Grupo D');
CREATE TABLE tb_tipo_documento (id_tipo smallint PRIMARY KEY, ds_tipo text NOT NULL);
INSERT INTO tb_tipo_documento VALUES (1,'Áudio do contratante'),(2,'Áudio do responsável financeiro'),(3,'Documento do contratante'),(5,'Documento dos dois'),(6,'Biometria facial');
CREATE TABLE content_type (id int PRIMARY KEY, app_label text NOT NULL, model text NOT NULL);
INSERT INTO content_type VALUES (7,'core','cliente'),(12,'core','venda');
CREATE TABLE tb_cliente (id_cliente bigint PRIMARY KEY, nr_cpf text NOT NULL, nm_cliente text NOT NULL);
CREATE TABLE tb_venda (id_venda uuid PRIMARY KEY, nr_protocolo text NOT NULL UNIQUE, id_cliente bigint NOT NULL REFERENCES tb_cliente, id_grupo smallint NOT NULL REFERENCES tb_grupo_tarifario, fl_titular_pagador char(1) NOT NULL, dt_cadastro timestamptz NOT NULL);
CREATE TABLE tb_venda_situacao (id_venda_situacao bigserial PRIMARY KEY, id_venda uuid NOT NULL REFERENCES tb_venda, id_situacao smallint NOT NULL REFERENCES tb_situacao, dt_situacao timestamptz NOT NULL);
CREATE TABLE tb_documento (id_documento bigint PRIMARY KEY, content_type_id int NOT NULL REFERENCES content_type, object_id text NOT NULL, id_tipo smallint NOT NULL REFERENCES tb_tipo_documento, ds_caminho text NOT NULL, dt_inclusao timestamptz NOT NULL, dt_exclusao timestamptz);
INSERT INTO tb_cliente VALUES (1,'529.982.247-25','Ana Souza');
INSERT INTO tb_venda SELECT md5('s'||n)::uuid,'S-'||n,1,(ascii(g)-64)*10,CASE WHEN p THEN 'S' ELSE 'N' END,timestamptz '2026-10-02 02:30Z' FROM st UNION ALL SELECT md5('s9')::uuid,'S-9',1,10,'S',timestamptz '2026-10-02 02:30Z';
INSERT INTO tb_venda_situacao (id_venda,id_situacao,dt_situacao) SELECT md5('s'||n)::uuid,state,timestamptz '2026-10-02 02:30Z' + state * interval '1 day' FROM (VALUES (1,1),(5,1),(5,3),(7,3),(7,5),(9,1),(9,4)) AS told(n, state);
INSERT INTO tb_documento SELECT i,12,md5('s'||n)::uuid::text,CASE t WHEN 'POV' THEN 1 WHEN 'AUT' THEN 2 WHEN 'DOC_CONTRATANTE' THEN 3 WHEN 'KYC' THEN 6 ELSE 5 END,'vendas/'||n||'/'||i||x,timestamptz '2026-10-02 03:00Z',CASE WHEN del THEN timestamptz '2026-10-05 10:00Z' END FROM ev UNION ALL SELECT 80,7,'1',1,'clientes/1.mp3',timestamptz '2026-10-02 03:00Z',NULL;
-- KEYS: SELECT ds_caminho FROM tb_documento
