-- As a document store has it: names, states and deletion stand inside JSON; nothing but keys in columns.
CREATE TABLE sale (id uuid PRIMARY KEY, doc jsonb NOT NULL);
CREATE TABLE evidence (id uuid PRIMARY KEY, sale_id uuid NOT NULL REFERENCES sale, doc jsonb NOT NULL);
INSERT INTO sale SELECT md5('s'||n)::uuid, jsonb_build_object('code','S-'||n,'utilityGroup',g,'isClientFinancialResponsible',p,'createdAt','2026-10-02T02:30:00Z','completedAt',CASE WHEN d THEN '2026-10-03T15:00:00Z' END,'status',CASE WHEN d THEN 'completed' ELSE 'open' END) FROM st;
INSERT INTO sale VALUES (md5('s9')::uuid, '{"code":"S-9","utilityGroup":"A","isClientFinancialResponsible":true,"createdAt":"2026-10-02T02:30:00Z","completedAt":null,"status":"cancelled"}');
INSERT INTO evidence SELECT md5('e'||i)::uuid, md5('s'||n)::uuid, jsonb_build_object('evidenceType',t,'key','e/'||n||'/'||i||x,'createdAt','2026-10-02T03:00:00Z','deletedAt',CASE WHEN del THEN '2026-10-05T10:00:00Z' END) FROM ev;
-- KEYS: SELECT doc->>'key' FROM evidence
