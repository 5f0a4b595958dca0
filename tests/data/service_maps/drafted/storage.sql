-- As Supabase stores files without a table of evidence: the name of an object holds the sale and the type, and other buckets hold other things.
CREATE SCHEMA auth; CREATE SCHEMA storage;
CREATE TABLE auth.users (id uuid PRIMARY KEY, email varchar, encrypted_password varchar, created_at timestamptz, deleted_at timestamptz, raw_user_meta_data jsonb);
CREATE TABLE storage.buckets (id text PRIMARY KEY, name text NOT NULL, public boolean);
CREATE TABLE storage.objects (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), bucket_id text REFERENCES storage.buckets, name text, owner uuid, created_at timestamptz DEFAULT now(), updated_at timestamptz, last_accessed_at timestamptz, metadata jsonb, path_tokens text[] GENERATED ALWAYS AS (string_to_array(name, '/')) STORED, version text);
CREATE TABLE public.customers (id uuid PRIMARY KEY, cpf text NOT NULL, first_name text NOT NULL, last_name text NOT NULL, created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE public.sales (id uuid PRIMARY KEY, code text NOT NULL UNIQUE, customer_id uuid NOT NULL REFERENCES public.customers, seller_id uuid REFERENCES auth.users, utility_group text NOT NULL CHECK (utility_group IN ('A','B','C','D')), payer_is_customer boolean NOT NULL DEFAULT true, created_at timestamptz NOT NULL DEFAULT now(), completed_at timestamptz);
INSERT INTO auth.users VALUES (md5('u')::uuid,'x@y','x','2026-10-01 12:00Z',NULL,'{}');
INSERT INTO storage.buckets VALUES ('evidence','evidence',false),('avatars','avatars',true);
INSERT INTO customers VALUES (md5('c')::uuid,'52998224725','Ana','Souza','2026-10-01 12:00Z');
INSERT INTO sales SELECT md5('s'||n)::uuid,'S-'||n,md5('c')::uuid,md5('u')::uuid,g,p,'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END FROM st;
INSERT INTO storage.objects (id,bucket_id,name,owner,created_at,updated_at,metadata) SELECT md5('e'||i)::uuid,'evidence','S-'||n||'/'||lower(t)||x,md5('u')::uuid,'2026-10-02 03:00Z','2026-10-02 03:00Z',jsonb_build_object('mimetype',CASE x WHEN '.pdf' THEN 'application/pdf' ELSE 'audio/mpeg' END,'size',1000,'eTag','"x"') FROM live;
INSERT INTO storage.objects (bucket_id,name,created_at,metadata) VALUES ('avatars','u1/me.png','2026-10-02 03:00Z','{"mimetype":"image/png"}');
-- FILL: evidences.where = "this.bucket_id = 'evidence'"
-- KEYS: SELECT name FROM storage.objects WHERE bucket_id = 'evidence'
