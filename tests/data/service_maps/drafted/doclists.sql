-- As a document store has it: papers in one list and recordings in another, two levels deep, and each says whose it is.
-- KEYS: SELECT 'ev/'||n||'/'||i||x FROM live
CREATE TABLE vendas (id uuid PRIMARY KEY, dados jsonb NOT NULL);
INSERT INTO vendas SELECT md5('c'||n)::uuid, jsonb_build_object('protocolo','S-'||n,'grupo',g,'clientePaga',p,'criadoEm','2026-10-02T02:30:00Z','concluidoEm',CASE WHEN d THEN '2026-10-03T15:00:00Z' END,'historico',jsonb_build_array(jsonb_build_object('situacao','aberta','em','2026-10-02T02:30:00Z')),'anexos',jsonb_build_object(
 'documentos',(SELECT jsonb_agg(jsonb_build_object('papel',CASE t WHEN 'DOC_CONTRATANTE' THEN 'contratante' WHEN 'KYC' THEN 'biometria' ELSE 'contratante e responsável financeiro' END,'chave','ev/'||n||'/'||i||x,'enviadoEm','2026-10-02T03:00:00Z')) FROM live WHERE live.n=st.n AND x='.pdf'),
 'audios',(SELECT jsonb_agg(jsonb_build_object('papel',CASE t WHEN 'POV' THEN 'contratante' ELSE 'responsável financeiro' END,'chave','ev/'||n||'/'||i||x,'enviadoEm','2026-10-02T03:00:00Z')) FROM live WHERE live.n=st.n AND x='.mp3'))) FROM st;
