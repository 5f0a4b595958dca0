-- As a compact service has it: keys of files in arrays of the sale.
CREATE TABLE cliente (id serial PRIMARY KEY, cpf text NOT NULL, nome text);
CREATE TABLE venda (id serial PRIMARY KEY, codigo text NOT NULL UNIQUE, cliente_id int REFERENCES cliente, grupo char(1) NOT NULL, cliente_paga boolean NOT NULL, criado_em timestamptz NOT NULL, concluido_em timestamptz, chaves text[] NOT NULL DEFAULT '{}', tipos text[] NOT NULL DEFAULT '{}');
INSERT INTO cliente VALUES (1,'52998224725','Ana');
INSERT INTO venda SELECT n,'S-'||n,1,g,p,'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END, ARRAY(SELECT 'ev/'||n||'/'||i||x FROM live WHERE live.n=st.n ORDER BY i), ARRAY(SELECT t FROM live WHERE live.n=st.n ORDER BY i) FROM st;
-- KEYS: SELECT unnest(chaves) FROM venda
