-- As classes that inherit keep their rows: times and deletion stand in the parent's row; files belong to sales by a table of links; changes go from one state to another; nobody quoted the names.
CREATE TABLE record (id bigserial PRIMARY KEY, createdat timestamptz NOT NULL, deletedat timestamptz);
CREATE TABLE customer (recordid bigint PRIMARY KEY REFERENCES record, cpf text NOT NULL, firstname text, lastname text);
CREATE TABLE sale (recordid bigint PRIMARY KEY REFERENCES record, number text NOT NULL UNIQUE, customerid bigint NOT NULL REFERENCES customer, tariffgroup text NOT NULL, customerpays boolean NOT NULL);
CREATE TABLE statechange (id bigserial PRIMARY KEY, saleid bigint NOT NULL REFERENCES sale, "from" text, "to" text NOT NULL, at timestamptz NOT NULL);
COMMENT ON TABLE statechange IS 'States of sales';
CREATE TABLE document (recordid bigint PRIMARY KEY REFERENCES record, documenttype text NOT NULL, objectkey text NOT NULL);
CREATE TABLE document_sale (id bigserial PRIMARY KEY, documentid bigint NOT NULL REFERENCES document, saleid bigint NOT NULL REFERENCES sale);
INSERT INTO record SELECT n, timestamptz '2026-10-02 02:30Z', CASE WHEN n = 109 THEN timestamptz '2026-10-05 10:00Z' END FROM generate_series(100, 110) AS n UNION ALL SELECT 300+i, '2026-10-02 03:00Z', CASE WHEN del THEN timestamptz '2026-10-05 10:00Z' END FROM ev;
INSERT INTO customer VALUES (100,'52998224725','Ana','Souza');
INSERT INTO sale SELECT 100+n,'S-'||n,100,g,p FROM st UNION ALL VALUES (109,'S-9',100,'A',true),(110,'S-10',100,'A',true);
INSERT INTO statechange (saleid,"from","to",at) VALUES (105,'open','finished','2026-10-03 15:00Z'),(110,'open','voided','2026-10-03 15:00Z');
INSERT INTO document SELECT 300+i,lower(t),'docs/'||i||x FROM ev;
INSERT INTO document_sale (documentid,saleid) SELECT 300+i,100+n FROM ev;
-- KEYS: SELECT objectkey FROM document
