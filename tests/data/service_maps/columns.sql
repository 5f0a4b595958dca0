-- As an older team has it: a column of the sale for the path of each type of file.
CREATE TABLE cliente (id serial PRIMARY KEY, cpf varchar(14) NOT NULL, nome varchar(80));
CREATE TABLE venda (id serial PRIMARY KEY, codigo varchar(20) NOT NULL UNIQUE, cliente_id int REFERENCES cliente, grupo_tarifario char(1) NOT NULL, cliente_responsavel_financeiro boolean NOT NULL, data_criacao timestamptz NOT NULL, data_conclusao timestamptz, audio_contratante varchar(200), audio_responsavel varchar(200), doc_contratante varchar(200), doc_responsavel varchar(200), doc_contratante_responsavel varchar(200), kyc varchar(200));
INSERT INTO cliente VALUES (1,'529.982.247-25','Ana Souza');
INSERT INTO venda SELECT n,'S-'||n,1,g,p,'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END,
 (SELECT 'v/'||n||'/a'||x FROM live WHERE live.n=st.n AND t='POV'),(SELECT 'v/'||n||'/b'||x FROM live WHERE live.n=st.n AND t='AUT'),(SELECT 'v/'||n||'/c'||x FROM live WHERE live.n=st.n AND t='DOC_CONTRATANTE'),NULL,(SELECT 'v/'||n||'/d'||x FROM live WHERE live.n=st.n AND t LIKE 'DOC_CONTRATANTE_E%'),(SELECT 'v/'||n||'/e'||x FROM live WHERE live.n=st.n AND t='KYC') FROM st;
