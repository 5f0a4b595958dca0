-- As a store of entities, attributes and values has it, in one table.
-- FILL: sales.from = the one that is shown
-- FILL: evidences.from = the one that is shown
CREATE TABLE entities (id serial PRIMARY KEY, kind text NOT NULL, created_at timestamptz NOT NULL);
CREATE TABLE eav (entity int NOT NULL REFERENCES entities, attribute text NOT NULL, value text, PRIMARY KEY (entity, attribute));
INSERT INTO entities SELECT n,'sale','2026-10-02 02:30Z' FROM st; INSERT INTO entities SELECT 100+i,'evidence','2026-10-02 03:00Z' FROM live;
INSERT INTO eav SELECT n,'code','S-'||n FROM st UNION ALL SELECT n,'group',g FROM st UNION ALL SELECT n,'client_pays',p::text FROM st UNION ALL SELECT n,'completed_at','2026-10-03 15:00Z' FROM st WHERE d;
INSERT INTO eav SELECT 100+i,'sale',n::text FROM live UNION ALL SELECT 100+i,'type',t FROM live UNION ALL SELECT 100+i,'key','ev/'||n||'/'||i||x FROM live;
-- KEYS: SELECT value FROM eav WHERE attribute='key'
