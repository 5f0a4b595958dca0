-- As an older Brazilian system has it: upper-case names, flags and codes of its own, days and hours apart, paths in two columns.
CREATE TABLE "TB_PARCEIRO" ("CD_PARCEIRO" integer PRIMARY KEY, "NM_FANTASIA" varchar(60) NOT NULL);
CREATE TABLE "TB_CLIENTE" (
  "CD_CLIENTE" integer PRIMARY KEY, "NR_CPF" char(14) NOT NULL, "NR_RG" varchar(20), "CD_CLIENTE_DISTRIBUIDORA" varchar(20) NOT NULL,
  "NR_MATRICULA" varchar(20) NOT NULL, "NM_CLIENTE" varchar(60) NOT NULL, "NM_SOBRENOME" varchar(60) NOT NULL, "DS_EMAIL" varchar(120),
  "DT_NASCIMENTO" date NOT NULL, "NR_CELULAR" varchar(15), "DT_INCLUSAO" timestamp NOT NULL);
CREATE TABLE "TB_ENDERECO" (
  "CD_ENDERECO" integer PRIMARY KEY, "CD_CLIENTE" integer NOT NULL REFERENCES "TB_CLIENTE", "NM_BAIRRO" varchar(60) NOT NULL,
  "NR_INSTALACAO" varchar(11) NOT NULL, "DS_LOGRADOURO" varchar(120) NOT NULL, "NR_ENDERECO" varchar(10) NOT NULL,
  "NM_CIDADE" varchar(60) NOT NULL, "NR_CEP" char(9) NOT NULL);
CREATE TABLE "TB_VENDA" (
  "NR_VENDA" varchar(20) PRIMARY KEY, "CD_CLIENTE" integer REFERENCES "TB_CLIENTE", "CD_PARCEIRO" integer REFERENCES "TB_PARCEIRO",
  "TP_GRUPO" smallint NOT NULL, "FL_CLIENTE_RESPONSAVEL_FINANCEIRO" char(1) NOT NULL, "DT_VENDA" date NOT NULL, "HR_VENDA" time NOT NULL,
  "DT_CONCLUSAO" date, "HR_CONCLUSAO" time, "ST_VENDA" char(1) NOT NULL, "FL_EXCLUIDO" char(1) NOT NULL);
COMMENT ON COLUMN "TB_VENDA"."TP_GRUPO" IS '10: grupo A; 20: grupo B; 30: grupo C; 40: grupo D';
COMMENT ON COLUMN "TB_VENDA"."HR_VENDA" IS 'hora local de Brasília';
COMMENT ON COLUMN "TB_VENDA"."ST_VENDA" IS 'A - ativa, C - cancelada';
CREATE TABLE "TB_DOCUMENTO" (
  "SQ_DOCUMENTO" integer PRIMARY KEY, "NR_VENDA" varchar(20) NOT NULL REFERENCES "TB_VENDA", "TP_DOCUMENTO" varchar(3) NOT NULL,
  "NM_ARQUIVO" varchar(120) NOT NULL, "DS_PASTA" varchar(200) NOT NULL, "DT_ENVIO" date NOT NULL, "HR_ENVIO" time NOT NULL, "FL_ATIVO" char(1) NOT NULL);
COMMENT ON COLUMN "TB_DOCUMENTO"."TP_DOCUMENTO" IS 'VOZ = POV, AUT, DOC = DOC_CONTRATANTE, PAG = DOC_RESPONSAVEL_FINANCEIRO, AMB = DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO, KYC';
INSERT INTO "TB_PARCEIRO" VALUES (7, 'Luz Certa');
INSERT INTO "TB_CLIENTE" VALUES (1, '529.982.247-25', NULL, '7700001', '1', 'Ana', 'Souza', NULL, '1979-03-04', NULL, '2026-10-01 09:00');
INSERT INTO "TB_ENDERECO" VALUES (1, 1, 'Centro', '5000001', 'Rua A', '1', 'Recife', '50000-000');
INSERT INTO "TB_VENDA" SELECT 'S-' || n, 1, 7, g, f, '2026-10-01', '23:30', CASE WHEN n = 5 THEN date '2026-10-03' END,
  CASE WHEN n = 5 THEN time '12:00' END, CASE WHEN n = 8 THEN 'C' ELSE 'A' END, CASE WHEN n = 9 THEN 'S' ELSE 'N' END
  FROM (VALUES (1, 10, 'S'), (2, 20, 'N'), (3, 30, 'S'), (4, 40, 'S'), (5, 10, 'S'), (6, 20, 'N'), (7, 30, 'S'), (8, 10, 'S'), (9, 10, 'S')) AS s(n, g, f);
INSERT INTO "TB_DOCUMENTO" SELECT row_number() OVER (), 'S-' || n, t, lower(t) || x, 'docs/2026-10/S-' || n, '2026-10-02', '00:00', a
  FROM (VALUES (1, 'DOC', '.pdf', 'S'), (1, 'VOZ', '.mp3', 'S'), (2, 'DOC', '.pdf', 'S'), (2, 'VOZ', '.mp3', 'S'), (3, 'KYC', '.pdf', 'S'),
    (4, 'KYC', '.pdf', 'S'), (4, 'VOZ', '.mp3', 'S'), (5, 'DOC', '.pdf', 'S'), (6, 'AMB', '.pdf', 'S'), (6, 'VOZ', '.mp3', 'S'),
    (6, 'AUT', '.mp3', 'S'), (7, 'DOC', '.pdf', 'S'), (7, 'VOZ', '.mp3', 'N')) AS e(n, t, x, a);
