CREATE SCHEMA app;
CREATE TABLE app.sale (id {sale} PRIMARY KEY, grp text, sold timestamptz, done timestamptz);
CREATE TABLE app.doc (id {sale} PRIMARY KEY, sale_id {sale}, name text, kind text,
                      key text, at timestamptz);
CREATE INDEX ON app.doc (sale_id);
INSERT INTO app.sale (id, grp, sold) SELECT {id}, 'A', now() FROM generate_series(1, {rows}) AS n;
INSERT INTO app.doc (id, sale_id, name, kind, key, at)
SELECT id, id, 'a.pdf', 'DOC_CONTRATANTE', 'doc/' || id, now() FROM app.sale;
ANALYZE app.sale, app.doc;
