-- As a desktop database was moved over: minus one for yes, blanks in names, milliseconds, papers called by their names.
CREATE TABLE "tblClientes" ("ID Cliente" serial PRIMARY KEY, "CPF" text, "Nome Completo" text, "Data Nascimento" timestamp);
CREATE TABLE "tblVendas" ("ID Venda" serial PRIMARY KEY, "Nº Venda" text, "ID Cliente" int, "Grupo" text, "Cliente é Pagador" smallint NOT NULL, "Cancelada" smallint NOT NULL DEFAULT 0, "Criado Em" bigint, "Concluído Em" bigint);
CREATE TABLE "tblAnexos" ("ID" serial PRIMARY KEY, "ID Venda" int, "Tipo Anexo" text, "Caminho" text, "Criado Em" bigint, "Excluído" smallint NOT NULL DEFAULT 0);
INSERT INTO "tblClientes" VALUES (1,'529.982.247-25','Ana Souza','1979-03-04');
INSERT INTO "tblVendas" SELECT n,'S-'||n,1,g,CASE WHEN p THEN -1 ELSE 0 END,0,1790908200000,CASE WHEN d THEN 1791039600000 END FROM st;
INSERT INTO "tblVendas" VALUES (9,'S-9',1,'A',-1,-1,1790908200000,NULL);
INSERT INTO "tblAnexos" SELECT i,n,CASE t WHEN 'POV' THEN 'Gravação do cliente' WHEN 'AUT' THEN 'Gravação do pagador' WHEN 'KYC' THEN 'Selfie' WHEN 'DOC_CONTRATANTE' THEN 'RG/CNH do cliente' ELSE 'RG/CNH do cliente e do pagador' END,'anexos/'||n||'/'||i||x,1790910000000,CASE WHEN del THEN -1 ELSE 0 END FROM ev;
-- KEYS: SELECT "Caminho" FROM "tblAnexos"
