-- As a system of thirty years has it: names of eight letters, padded codes, days as texts, flags as numbers, no foreign keys.
-- FILL: sales.from = "public.movven"
-- FILL: sales.where = "this.canven = 'N'"
-- FILL: sales.id = "numven"
-- FILL: sales.utility_group = "grpven"
-- FILL: sales.is_client_financial_responsible = "respfin"
-- FILL: sales.created_at = { date = "datven", time = "horven" }
-- FILL: sales.completed_at = "datcon"
-- FILL: evidences.from = "public.arqven"
-- FILL: evidences.where = "true"
-- FILL: evidences.id = { sql = "this.numven || this.seqarq" }
-- FILL: evidences.sale_id = "numven"
-- FILL: evidences.evidence_type = { column = "destip", table = "public.tabtip", key = "codtip", by = "tiparq", codes = { "AUDIO TITULAR" = "POV", "AUDIO PAGADOR" = "AUT", "RG TITULAR" = "DOC_CONTRATANTE", "RG DOS DOIS" = "DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO", "FOTO" = "KYC" } }
-- FILL: evidences.object_key = { folder = "dirarq", name = "nomarq" }
-- FILL: evidences.requested_at = "datarq"
CREATE TABLE cadcli (codcli char(6) PRIMARY KEY, nomcli char(40), cpfcli char(14), nascli char(10));
CREATE TABLE movven (numven char(10) PRIMARY KEY, codcli char(6), grpven char(2), respfin int, datven char(10), horven char(5), datcon char(10), canven char(1), totven money);
CREATE TABLE arqven (numven char(10), seqarq char(3), tiparq char(2), nomarq char(60), dirarq char(40), datarq char(10), PRIMARY KEY (numven, seqarq));
CREATE TABLE tabtip (codtip char(2) PRIMARY KEY, destip char(40));
INSERT INTO tabtip VALUES ('01','AUDIO TITULAR'),('02','AUDIO PAGADOR'),('03','RG TITULAR'),('05','RG DOS DOIS'),('06','FOTO');
INSERT INTO movven SELECT 'S-'||n,'000001',g,p::int,'01/10/2026','23:30',CASE WHEN d THEN '03/10/2026' ELSE '  /  /' END,'N',10 FROM st;
INSERT INTO movven VALUES ('S-9','000001','A',1,'01/10/2026','23:30',NULL,'S',10);
INSERT INTO arqven SELECT 'S-'||n,lpad(i::text,3,'0'),CASE t WHEN 'POV' THEN '01' WHEN 'AUT' THEN '02' WHEN 'DOC_CONTRATANTE' THEN '03' WHEN 'KYC' THEN '06' ELSE '05' END,i||x,'vendas/'||n,'02/10/2026' FROM live;
-- KEYS: SELECT rtrim(dirarq)||'/'||rtrim(nomarq) FROM arqven
