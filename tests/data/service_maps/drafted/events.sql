-- As an event store has it: rows for what happened to a sale and to its evidence, facts inside JSON.
-- SAYS: public.events holds a row for each of SaleCompleted, SaleCreated: a query has to make one row of them, and only somebody who knows the service can say which.
-- SAYS: # from = '''(SELECT
-- FILL: sales.from = the one that is shown
-- FILL: evidences.from = the one that is shown
CREATE TABLE events (id bigserial PRIMARY KEY, stream_id text NOT NULL, stream_type text NOT NULL, version int NOT NULL, type text NOT NULL, payload jsonb NOT NULL, at timestamptz NOT NULL DEFAULT now(), UNIQUE (stream_id, version));
INSERT INTO events (stream_id, stream_type, version, type, payload, at) SELECT 'S-'||n,'sale',1,'SaleCreated',jsonb_build_object('group',g,'clientPays',p,'cpf','52998224725','name','Ana Souza'),'2026-10-02 02:30Z' FROM st;
INSERT INTO events (stream_id, stream_type, version, type, payload, at) SELECT 'S-'||n,'sale',10+i,'EvidenceRequested',jsonb_build_object('evidenceId','e'||i,'type',t,'key','ev/'||n||'/'||i||x),'2026-10-02 03:00Z' FROM ev;
INSERT INTO events (stream_id, stream_type, version, type, payload, at) SELECT 'S-'||n,'sale',50+i,'EvidenceRemoved',jsonb_build_object('evidenceId','e'||i),'2026-10-03 03:00Z' FROM ev WHERE del;
INSERT INTO events (stream_id, stream_type, version, type, payload, at) SELECT 'S-'||n,'sale',90,'SaleCompleted','{}'::jsonb,'2026-10-03 15:00Z' FROM st WHERE d;
-- KEYS: SELECT payload->>'key' FROM events WHERE type='EvidenceRequested'
