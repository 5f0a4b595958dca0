-- An older Brazilian system: Portuguese names, S/N flags, its own codes, local date and time in two columns.
DO $$ BEGIN CREATE ROLE svc NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
CREATE TABLE clientes (
  cod_cliente integer PRIMARY KEY, cod_externo varchar(30), cpf char(14) NOT NULL, rg varchar(20), cod_distribuidora varchar(20) NOT NULL,
  matricula varchar(20) NOT NULL, nome varchar(60) NOT NULL, sobrenome varchar(60) NOT NULL, email varchar(120), dt_nascimento date NOT NULL,
  fone varchar(15), dt_cadastro date NOT NULL, hr_cadastro time NOT NULL);
CREATE TABLE enderecos (
  cod_endereco integer PRIMARY KEY, cod_cliente integer NOT NULL REFERENCES clientes, bairro varchar(60) NOT NULL, instalacao varchar(11) NOT NULL,
  logradouro varchar(120) NOT NULL, numero varchar(10) NOT NULL, cidade varchar(60) NOT NULL, cep char(9) NOT NULL);
CREATE TABLE vendas (
  num_venda varchar(20) PRIMARY KEY, cod_cliente integer REFERENCES clientes, cod_grupo smallint NOT NULL, fl_resp_financeiro char(1) NOT NULL,
  parceiro varchar(60), dt_venda date NOT NULL, hr_venda time NOT NULL, dt_conclusao date, hr_conclusao time, situacao char(1) NOT NULL);
COMMENT ON COLUMN vendas.cod_grupo IS '1 = A, 2 = B, 3 = C, 4 = D';
COMMENT ON COLUMN vendas.situacao IS 'A = ativa, X = cancelada: cancelled sales are not audited';
CREATE TABLE evidencias (
  seq integer PRIMARY KEY, num_venda varchar(20) NOT NULL REFERENCES vendas, tp_evidencia varchar(3) NOT NULL, arquivo varchar(120) NOT NULL,
  pasta varchar(200) NOT NULL, dt_envio date NOT NULL, hr_envio time NOT NULL);
COMMENT ON COLUMN evidencias.tp_evidencia IS 'ACT = POV, ARF = AUT, DCT = DOC_CONTRATANTE, DRF = DOC_RESPONSAVEL_FINANCEIRO, DCR = DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO, KYC';
INSERT INTO clientes VALUES (1, NULL, '529.982.247-25', NULL, '7700001', '1', 'Antônia', 'Gonçalves', NULL, '1979-03-04', NULL, '2026-10-01', '09:00');
INSERT INTO enderecos VALUES (1, 1, 'Centro', '5000001', 'Rua A', '1', 'São Paulo', '01310-100');
INSERT INTO vendas SELECT 'V-' || n, 1, g, f, 'Energia Certa', '2026-10-01', '23:30', CASE WHEN n = 5 THEN date '2026-10-03' END,
  CASE WHEN n = 5 THEN time '12:00' END, CASE WHEN n = 8 THEN 'X' ELSE 'A' END
  FROM (VALUES (1, 1, 'S'), (2, 2, 'N'), (3, 3, 'S'), (4, 4, 'S'), (5, 1, 'S'), (6, 2, 'N'), (7, 3, 'S'), (8, 1, 'S')) AS s(n, g, f);
INSERT INTO evidencias SELECT row_number() OVER (), 'V-' || n, t, lower(t) || x, '/gravacoes/2026-10/V-' || n || '/', '2026-10-02', '00:00'
  FROM (VALUES (1, 'DCT', '.pdf'), (1, 'ACT', '.mp3'), (2, 'DCT', '.pdf'), (2, 'ACT', '.mp3'), (3, 'KYC', '.pdf'), (4, 'KYC', '.pdf'),
    (4, 'ACT', '.mp3'), (5, 'DCT', '.pdf'), (6, 'DCR', '.pdf'), (6, 'ACT', '.mp3'), (6, 'ARF', '.mp3'), (7, 'DCT', '.pdf')) AS e(n, t, x);
ALTER TABLE clientes OWNER TO svc; ALTER TABLE enderecos OWNER TO svc; ALTER TABLE vendas OWNER TO svc; ALTER TABLE evidencias OWNER TO svc;
