-- As a team without a table of evidence has it: a list in a jsonb column of the contract.
CREATE TABLE clientes (id uuid PRIMARY KEY, cpf text NOT NULL, nome text NOT NULL);
CREATE TABLE contratos (id uuid PRIMARY KEY, numero text NOT NULL UNIQUE, cliente_id uuid REFERENCES clientes, grupo text NOT NULL, titular_responsavel boolean NOT NULL, provas jsonb NOT NULL DEFAULT '[]', criado_em timestamptz NOT NULL, concluido_em timestamptz);
INSERT INTO clientes VALUES (md5('c')::uuid,'52998224725','Ana Souza');
INSERT INTO contratos SELECT md5('s'||st.n)::uuid,'S-'||st.n,md5('c')::uuid,g,p,coalesce((SELECT jsonb_agg(jsonb_build_object('id',md5('e'||i)::uuid,'tipo',t,'arquivo',jsonb_build_object('chave','provas/'||st.n||'/'||i||x,'nome',lower(t)||x,'mime',CASE x WHEN '.pdf' THEN 'application/pdf' ELSE 'audio/mpeg' END),'enviadoEm','2026-10-02T03:00:00Z')) FROM live WHERE live.n=st.n),'[]'),'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END FROM st;
