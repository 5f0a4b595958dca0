-- Schema audit at version 0035, the oldest that can be upgraded, with one observed sale.
SET LOCAL check_function_bodies = false;
CREATE SCHEMA audit;
CREATE FUNCTION audit.close_once() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    BEGIN
        IF OLD.gone_at IS NOT NULL OR NEW.gone_at IS NULL
           OR to_jsonb(NEW) - 'gone_at' - 'gone_how' <> to_jsonb(OLD) - 'gone_at' - 'gone_how' THEN
            RAISE EXCEPTION 'rows of %.% change only once, when gone_at is set',
                TG_TABLE_SCHEMA, TG_TABLE_NAME;
        END IF;
        RETURN NEW;
    END $$;
CREATE FUNCTION audit.cluster() RETURNS bigint
    LANGUAGE plpgsql STABLE
    AS $$
    BEGIN
        RETURN (SELECT system_identifier FROM pg_control_system());
    EXCEPTION WHEN insufficient_privilege THEN
        RETURN NULL;
    END $$;
CREATE FUNCTION audit.never_back() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
        BEGIN
            IF NEW.stands_at < OLD.stands_at THEN
                RAISE EXCEPTION 'the clock of observations never goes back';
            END IF;
            RETURN NEW;
        END $$;
CREATE FUNCTION audit.open_epoch() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    DECLARE
        newest audit.custody_epochs;
        sealed bigint;
        here bigint := audit.cluster();
    BEGIN
        SELECT * INTO newest FROM audit.custody_epochs ORDER BY number DESC LIMIT 1;
        SELECT last_transaction INTO sealed FROM audit.custody_seals
        WHERE last_epoch = newest.number ORDER BY number DESC LIMIT 1;
        IF newest.cluster <> here OR pg_current_xact_id()::text::bigint <= sealed THEN
            newest.number := newest.number + 1;
            INSERT INTO audit.custody_epochs (number, cluster, opened_at)
            VALUES (newest.number, here, now()) ON CONFLICT DO NOTHING;
            IF FOUND THEN
                INSERT INTO audit.custody_events (kind, happened_at, detail)
                VALUES ('EPOCH_OPENED', now(), jsonb_build_object('epoch', newest.number));
            END IF;
        END IF;
        PERFORM set_config('audit.epoch', newest.number::text, true);
        RETURN NULL;
    END $$;
CREATE FUNCTION audit.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
        BEGIN
            RAISE EXCEPTION 'rows of %.% are never changed or deleted', TG_TABLE_SCHEMA, TG_TABLE_NAME;
        END $$;
CREATE FUNCTION audit.revoke_once() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
        BEGIN
            IF OLD.revoked_at IS NOT NULL OR NEW.revoked_at IS NULL
               OR to_jsonb(NEW) - 'revoked_at' - 'revoked_by' <> to_jsonb(OLD) - 'revoked_at' - 'revoked_by' THEN
                RAISE EXCEPTION 'rows of %.% change only once, when revoked_at is set',
                    TG_TABLE_SCHEMA, TG_TABLE_NAME;
            END IF;
            RETURN NEW;
        END $$;
CREATE FUNCTION audit.tell_adopted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    BEGIN
        INSERT INTO audit.custody_events (kind, happened_at, detail)
        SELECT 'BUCKET_ADOPTED', adopted_at, jsonb_build_object('bucket', bucket) FROM written;
        RETURN NULL;
    END $$;
CREATE FUNCTION audit.tell_audited() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
            BEGIN
                INSERT INTO audit.custody_events (kind, happened_at, detail) 
        SELECT 'AUDITED', ran_at,
               jsonb_build_object('run', id, 'asOf', to_char(as_of AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'sales', sales, 'compliant', compliant,
                                  'incomplete', incomplete, 'conflict', conflict)
        FROM written
        ;
                RETURN NULL;
            END $$;
CREATE FUNCTION audit.tell_gone() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    BEGIN
        INSERT INTO audit.custody_events (kind, happened_at, detail)
        SELECT 'GONE', gone_at,
               jsonb_strip_nulls(jsonb_build_object('observation', id, 'key', encode(sha256(convert_to(key, 'UTF8')), 'hex'), 'how', gone_how))
        FROM written
        ORDER BY id;
        RETURN NULL;
    END $$;
CREATE FUNCTION audit.tell_moved() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    BEGIN
        INSERT INTO audit.custody_events (kind, happened_at, detail)
        SELECT 'OBSERVATIONS_MOVED', moved_at,
               jsonb_build_object('moved', id, 'observations', observations, 'rows', rows, 'sha256', sha256,
                                  'month', to_char(began_at AT TIME ZONE 'UTC', 'YYYY-MM'), 'manifests', manifests)
        FROM written
        ORDER BY id;
        RETURN NULL;
    END $$;
CREATE FUNCTION audit.tell_opened() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    BEGIN
        INSERT INTO audit.custody_events (kind, happened_at, detail)
        SELECT 'OPENED', opened_at, jsonb_strip_nulls(jsonb_build_object(
                   'evidence', evidence_id, 'opening', id, 'by', encode(sha256(convert_to(opened_by, 'UTF8')), 'hex'),
                   'account', encode(sha256(convert_to(account, 'UTF8')), 'hex'), 'reason', encode(sha256(convert_to(reason, 'UTF8')), 'hex')))
        FROM written;
        RETURN NULL;
    END $$;
CREATE FUNCTION audit.tell_record_gone() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
            BEGIN
                INSERT INTO audit.custody_events (kind, happened_at, detail) 
    SELECT 'RECORD_GONE', gone_at, jsonb_build_object('observation', id, 'evidence', evidence_id)
    FROM written
    ORDER BY id
;
                RETURN NULL;
            END $$;
CREATE FUNCTION audit.tell_recorded() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    BEGIN
        INSERT INTO audit.custody_events (kind, happened_at, detail)
        SELECT CASE WHEN seen_before THEN 'RECORD_CHANGED' ELSE 'RECORDED' END, seen_at,
               jsonb_build_object('observation', id, 'evidence', evidence_id, 'evidenceType', evidence_type,
                                  'record', encode(sha256(convert_to(
    concat_ws(E'\n', sale_id, evidence_type, type, object_key,
              extract(epoch FROM requested_at), extract(epoch FROM expires_at)), 'UTF8')), 'hex'))
        FROM (
            SELECT written.*,
                   EXISTS (
                       SELECT FROM audit.custody_events AS event
                       WHERE event.kind = 'RECORD_GONE' AND (event.detail ->> 'evidence')::uuid = evidence_id
                   ) AS seen_before,
                   EXISTS (
                       SELECT FROM audit.custody_events AS event
                       WHERE event.kind = 'ISSUED' AND (event.detail ->> 'evidence')::uuid = evidence_id
                   ) AS issued_here
            FROM written
        ) AS observed
        WHERE seen_before OR NOT issued_here
        ORDER BY id;
        RETURN NULL;
    END $$;
CREATE FUNCTION audit.tell_sale_gone() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
            BEGIN
                INSERT INTO audit.custody_events (kind, happened_at, detail)  
    SELECT 'SALE_GONE', gone_at, jsonb_build_object('observation', id)
    FROM written
    ORDER BY id
;
                RETURN NULL;
            END $$;
CREATE FUNCTION audit.tell_sales_observed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
            BEGIN
                INSERT INTO audit.custody_events (kind, happened_at, detail)  
    SELECT 'SALES_OBSERVED', max(seen_at),
           jsonb_build_object('first', min(id), 'last', max(id), 'count', count(*), 'sales', encode(sha256(
               convert_to(string_agg(ROW(
                   id, sale_id, client_id, utility_group, is_client_financial_responsible, partner,
                   extract(epoch FROM created_at), extract(epoch FROM completed_at), extract(epoch FROM seen_at)
               )::text, '' ORDER BY id), 'UTF8')), 'hex'))
    FROM written
    GROUP BY id / 1000
    ORDER BY min(id)
;
                RETURN NULL;
            END $$;
CREATE FUNCTION audit.tell_service_adopted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    BEGIN
        INSERT INTO audit.custody_events (kind, happened_at, detail)
        SELECT 'SERVICE_ADOPTED', adopted_at,
               jsonb_build_object('cluster', cluster, 'database', database, 'relations', relations)
        FROM written
        WHERE EXISTS (SELECT FROM audit.adopted_services AS former WHERE former.id < written.id);
        RETURN NULL;
    END $$;
CREATE FUNCTION audit.tell_uploaded() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    BEGIN
        INSERT INTO audit.custody_events (kind, happened_at, detail)
        SELECT CASE WHEN version_id IS NOT NULL AND EXISTS (
                   SELECT FROM audit.object_observations AS earlier
                   WHERE earlier.key COLLATE "C" = written.key
                     AND earlier.version_id = written.version_id AND earlier.id < written.id
               ) THEN 'RESTORED' ELSE 'UPLOADED' END,
               seen_at,
               jsonb_strip_nulls(jsonb_build_object(
                   'observation', id, 'key', encode(sha256(convert_to(key, 'UTF8')), 'hex'), 'size', size, 'etag', etag,
                   'lastModified', to_char(last_modified AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'version', version_id))
        FROM written
        ORDER BY id;
        RETURN NULL;
    END $$;
CREATE FUNCTION audit.tell_verified() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
            BEGIN
                INSERT INTO audit.custody_events (kind, happened_at, detail) 
        SELECT 'VERIFIED', checked_at,
               jsonb_build_object('observation', observation_id, 'sha256', sha256, 'kind', kind,
                                  'problem', problem)
        FROM written
        WHERE sha256 IS NOT NULL
        ORDER BY id
        ;
                RETURN NULL;
            END $$;
CREATE FUNCTION audit.tell_waiver_revocations() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
            BEGIN
                INSERT INTO audit.custody_events (kind, happened_at, detail) 
        SELECT 'WAIVER_REVOKED', revoked_at, jsonb_build_object('waiver', waiver_id) FROM written
    ;
                RETURN NULL;
            END $$;
CREATE FUNCTION audit.tell_waivers() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
            BEGIN
                INSERT INTO audit.custody_events (kind, happened_at, detail) 
        SELECT 'WAIVED', added_at,
               jsonb_build_object('waiver', id, 'code', code, 'start', start_day::text, 'end', end_day::text)
        FROM written
    ;
                RETURN NULL;
            END $$;
CREATE FUNCTION audit.tell_withdrawn() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    BEGIN
        INSERT INTO audit.custody_events (kind, happened_at, detail)
        SELECT 'WITHDRAWN', withdrawn_at, jsonb_strip_nulls(jsonb_build_object(
                   'evidence', evidence_id, 'by', encode(sha256(convert_to(withdrawn_by, 'UTF8')), 'hex'), 'approvedBy', encode(sha256(convert_to(approved_by, 'UTF8')), 'hex'),
                   'account', encode(sha256(convert_to(account, 'UTF8')), 'hex'), 'reason', encode(sha256(convert_to(reason, 'UTF8')), 'hex')))
        FROM written;
        RETURN NULL;
    END $$;
CREATE TABLE audit.adopted_buckets (
    id bigint NOT NULL,
    bucket text NOT NULL,
    adopted_at timestamp with time zone NOT NULL
);
ALTER TABLE audit.adopted_buckets ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME audit.adopted_buckets_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE audit.adopted_services (
    id bigint NOT NULL,
    cluster bigint,
    database bigint NOT NULL,
    name text NOT NULL,
    relations jsonb NOT NULL,
    adopted_at timestamp with time zone NOT NULL
);
ALTER TABLE audit.adopted_services ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME audit.adopted_services_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE audit.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE audit.audit_runs (
    id uuid NOT NULL,
    as_of timestamp with time zone NOT NULL,
    ran_at timestamp with time zone NOT NULL,
    sales bigint NOT NULL,
    compliant bigint NOT NULL,
    incomplete bigint NOT NULL,
    conflict bigint NOT NULL,
    with_files boolean
);
CREATE TABLE audit.bucket_syncs (
    id bigint NOT NULL,
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone NOT NULL,
    bucket text NOT NULL,
    full_listing boolean NOT NULL,
    listed bigint NOT NULL,
    appeared bigint NOT NULL,
    vanished bigint NOT NULL,
    cycle bigint,
    read_to text,
    asked bigint,
    unreadable bigint,
    source text,
    denied bigint
);
ALTER TABLE audit.bucket_syncs ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME audit.bucket_syncs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE audit.content_checks (
    id bigint NOT NULL,
    observation_id bigint NOT NULL,
    kind text NOT NULL,
    problem text,
    checked_at timestamp with time zone NOT NULL,
    media_type text,
    sha256 text,
    pages bigint,
    seconds double precision,
    normal_form text,
    active_parts text[],
    stored_type text
);
ALTER TABLE audit.content_checks ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME audit.content_checks_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE audit.custody_epochs (
    number integer NOT NULL,
    cluster bigint,
    opened_at timestamp with time zone NOT NULL
);
CREATE TABLE audit.custody_events (
    id bigint NOT NULL,
    transaction bigint DEFAULT ((pg_current_xact_id())::text)::bigint NOT NULL,
    kind text NOT NULL,
    happened_at timestamp with time zone NOT NULL,
    detail jsonb NOT NULL,
    epoch integer DEFAULT (COALESCE(NULLIF(current_setting('audit.epoch'::text, true), ''::text), '1'::text))::integer NOT NULL
);
ALTER TABLE audit.custody_events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME audit.custody_events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE audit.custody_seals (
    number bigint NOT NULL,
    sealed_at timestamp with time zone NOT NULL,
    events bigint NOT NULL,
    last_transaction bigint NOT NULL,
    last_id bigint NOT NULL,
    digests bytea NOT NULL,
    previous text NOT NULL,
    hash text NOT NULL,
    last_epoch integer DEFAULT 1 NOT NULL,
    key_id text
);
CREATE TABLE audit.evidence_observations (
    id bigint NOT NULL,
    evidence_id uuid NOT NULL,
    sale_id text NOT NULL,
    evidence_type text NOT NULL,
    type text,
    object_key text,
    requested_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    seen_at timestamp with time zone NOT NULL,
    gone_at timestamp with time zone,
    assumed_at timestamp with time zone
);
ALTER TABLE audit.evidence_observations ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME audit.evidence_observations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE audit.evidence_openings (
    id uuid NOT NULL,
    evidence_id uuid NOT NULL,
    reason text NOT NULL,
    opened_by text NOT NULL,
    opened_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    account text
);
CREATE TABLE audit.evidence_requests (
    evidence_id uuid NOT NULL,
    account text NOT NULL,
    partner text
);
CREATE TABLE audit.finding_observations (
    id bigint NOT NULL,
    finding_id uuid NOT NULL,
    code text NOT NULL,
    sale_id text,
    partner text,
    utility_group text,
    seen_at timestamp with time zone NOT NULL,
    gone_at timestamp with time zone
);
ALTER TABLE audit.finding_observations ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME audit.finding_observations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE audit.job_notices (
    id uuid NOT NULL,
    job text NOT NULL,
    slot timestamp with time zone NOT NULL,
    kind text NOT NULL,
    channel text NOT NULL,
    content jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    delivered_at timestamp with time zone,
    tries bigint NOT NULL,
    problem text
);
CREATE TABLE audit.job_runs (
    id uuid NOT NULL,
    job text NOT NULL,
    slot timestamp with time zone NOT NULL,
    status text NOT NULL,
    holder uuid,
    held_by jsonb,
    lease_until timestamp with time zone,
    starts bigint NOT NULL,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    failure text,
    reason text,
    started_by text,
    host text,
    versions jsonb NOT NULL,
    counts jsonb NOT NULL,
    files jsonb NOT NULL,
    folder text,
    seal text,
    purged_at timestamp with time zone
);
CREATE TABLE audit.job_schedules (
    job text NOT NULL,
    schedule text NOT NULL,
    watched_until timestamp with time zone NOT NULL
);
CREATE TABLE audit.job_steps (
    run_id uuid NOT NULL,
    name text NOT NULL,
    "position" bigint NOT NULL,
    target text NOT NULL,
    parameters jsonb NOT NULL,
    status text NOT NULL,
    tries bigint NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone NOT NULL,
    failure text,
    reason text,
    counts jsonb NOT NULL,
    files jsonb NOT NULL
);
CREATE UNLOGGED TABLE audit.judged_sales (
    sale_id text NOT NULL,
    client_id uuid,
    utility_group text NOT NULL,
    is_client_financial_responsible boolean,
    partner text,
    created_at timestamp with time zone NOT NULL,
    completed_at timestamp with time zone,
    oldest_request timestamp with time zone,
    unexamined bigint NOT NULL,
    verified bigint NOT NULL,
    first_bytes bigint NOT NULL,
    never bigint NOT NULL,
    unreadable bigint NOT NULL,
    status text NOT NULL,
    missing text NOT NULL,
    reasons text NOT NULL,
    problems text NOT NULL,
    counted text NOT NULL,
    stands_until timestamp with time zone,
    unusable boolean NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.005', autovacuum_vacuum_insert_scale_factor='0.005');
CREATE UNLOGGED TABLE audit.judgement (
    "only" boolean NOT NULL,
    judged_at timestamp with time zone NOT NULL,
    fingerprint text NOT NULL,
    counts text NOT NULL
);
CREATE TABLE audit.load_batches (
    id uuid NOT NULL,
    fingerprint text NOT NULL,
    sha256 text NOT NULL,
    options jsonb NOT NULL,
    source text NOT NULL,
    accepted bigint NOT NULL,
    rejected bigint NOT NULL,
    skipped bigint NOT NULL,
    loaded_at timestamp with time zone NOT NULL
);
CREATE TABLE audit.load_keys (
    number bigint NOT NULL,
    hashes bytea NOT NULL
);
ALTER TABLE ONLY audit.load_keys ALTER COLUMN hashes SET STORAGE EXTERNAL;
ALTER TABLE audit.load_keys ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME audit.load_keys_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE audit.moved_partitions (
    id bigint NOT NULL,
    observations text NOT NULL,
    began_at timestamp with time zone NOT NULL,
    over_at timestamp with time zone NOT NULL,
    rows bigint NOT NULL,
    sha256 text NOT NULL,
    target text NOT NULL,
    exported_at timestamp with time zone NOT NULL,
    manifests text NOT NULL,
    records_assumed_at timestamp with time zone,
    moved_at timestamp with time zone NOT NULL
);
ALTER TABLE audit.moved_partitions ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME audit.moved_partitions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE audit.object_events (
    id bigint NOT NULL,
    key text NOT NULL,
    sequence_number text NOT NULL,
    kind text NOT NULL,
    happened_at timestamp with time zone NOT NULL,
    version_id text,
    requester text,
    source_address text,
    noted_at timestamp with time zone NOT NULL
);
ALTER TABLE audit.object_events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME audit.object_events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE audit.object_observations (
    id bigint NOT NULL,
    key text NOT NULL,
    size bigint NOT NULL,
    etag text NOT NULL,
    last_modified timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    gone_at timestamp with time zone,
    version_id text,
    gone_how text
);
ALTER TABLE audit.object_observations ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME audit.object_observations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE audit.observation_clock (
    "only" boolean NOT NULL,
    stands_at timestamp with time zone NOT NULL,
    CONSTRAINT observation_clock_only_check CHECK ("only")
);
CREATE TABLE audit.partner_subjects (
    id bigint NOT NULL,
    subject text NOT NULL,
    partner text NOT NULL,
    added_at timestamp with time zone NOT NULL,
    added_by text NOT NULL,
    revoked_at timestamp with time zone,
    revoked_by text
);
ALTER TABLE audit.partner_subjects ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME audit.partner_subjects_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE audit.sale_observations (
    id bigint NOT NULL,
    sale_id text NOT NULL,
    client_id uuid,
    utility_group text NOT NULL,
    is_client_financial_responsible boolean,
    partner text,
    created_at timestamp with time zone NOT NULL,
    completed_at timestamp with time zone,
    seen_at timestamp with time zone NOT NULL,
    gone_at timestamp with time zone
);
ALTER TABLE audit.sale_observations ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME audit.sale_observations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE UNLOGGED TABLE audit.service_readings (
    relation text NOT NULL,
    since bigint NOT NULL,
    written_by bigint NOT NULL,
    state text NOT NULL,
    all_compared_at timestamp with time zone NOT NULL
);
CREATE TABLE audit.token_revocations (
    id bigint NOT NULL,
    token_id text,
    subject text,
    reason text NOT NULL,
    revoked_at timestamp with time zone NOT NULL,
    revoked_by text NOT NULL,
    CONSTRAINT token_revocations_one_check CHECK ((num_nonnulls(token_id, subject) = 1))
);
ALTER TABLE audit.token_revocations ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME audit.token_revocations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE audit.verification_failures (
    id bigint NOT NULL,
    observation_id bigint NOT NULL,
    reason text NOT NULL,
    failed_at timestamp with time zone NOT NULL
);
ALTER TABLE audit.verification_failures ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME audit.verification_failures_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE audit.waiver_revocations (
    waiver_id uuid NOT NULL,
    reason text NOT NULL,
    revoked_by text NOT NULL,
    revoked_at timestamp with time zone NOT NULL,
    account text
);
CREATE TABLE audit.waivers (
    id uuid NOT NULL,
    sale_id text,
    partner text,
    code text,
    reason text NOT NULL,
    owner text NOT NULL,
    approved_by text NOT NULL,
    start_day date NOT NULL,
    end_day date NOT NULL,
    added_at timestamp with time zone NOT NULL,
    account text
);
CREATE TABLE audit.withdrawals (
    evidence_id uuid NOT NULL,
    reason text NOT NULL,
    withdrawn_by text NOT NULL,
    approved_by text NOT NULL,
    withdrawn_at timestamp with time zone NOT NULL,
    account text
);
ALTER TABLE ONLY audit.adopted_buckets
    ADD CONSTRAINT adopted_buckets_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audit.adopted_services
    ADD CONSTRAINT adopted_services_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audit.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY audit.audit_runs
    ADD CONSTRAINT audit_runs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audit.bucket_syncs
    ADD CONSTRAINT bucket_syncs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audit.content_checks
    ADD CONSTRAINT content_checks_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audit.custody_epochs
    ADD CONSTRAINT custody_epochs_pkey PRIMARY KEY (number);
ALTER TABLE ONLY audit.custody_events
    ADD CONSTRAINT custody_events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audit.custody_seals
    ADD CONSTRAINT custody_seals_pkey PRIMARY KEY (number);
ALTER TABLE ONLY audit.evidence_observations
    ADD CONSTRAINT evidence_observations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audit.evidence_openings
    ADD CONSTRAINT evidence_openings_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audit.evidence_requests
    ADD CONSTRAINT evidence_requests_pkey PRIMARY KEY (evidence_id);
ALTER TABLE ONLY audit.finding_observations
    ADD CONSTRAINT finding_observations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audit.job_notices
    ADD CONSTRAINT job_notices_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audit.job_runs
    ADD CONSTRAINT job_runs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audit.job_schedules
    ADD CONSTRAINT job_schedules_pkey PRIMARY KEY (job);
ALTER TABLE ONLY audit.job_steps
    ADD CONSTRAINT job_steps_pkey PRIMARY KEY (run_id, name);
ALTER TABLE ONLY audit.judged_sales
    ADD CONSTRAINT judged_sales_pkey PRIMARY KEY (sale_id);
ALTER TABLE ONLY audit.judgement
    ADD CONSTRAINT judgement_pkey PRIMARY KEY ("only");
ALTER TABLE ONLY audit.load_batches
    ADD CONSTRAINT load_batches_fingerprint_key UNIQUE (fingerprint);
ALTER TABLE ONLY audit.load_batches
    ADD CONSTRAINT load_batches_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audit.load_keys
    ADD CONSTRAINT load_keys_pkey PRIMARY KEY (number);
ALTER TABLE ONLY audit.moved_partitions
    ADD CONSTRAINT moved_partitions_observations_began_at_key UNIQUE (observations, began_at);
ALTER TABLE ONLY audit.moved_partitions
    ADD CONSTRAINT moved_partitions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audit.object_events
    ADD CONSTRAINT object_events_key_sequence_number_key UNIQUE (key, sequence_number);
ALTER TABLE ONLY audit.object_events
    ADD CONSTRAINT object_events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audit.object_observations
    ADD CONSTRAINT object_observations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audit.observation_clock
    ADD CONSTRAINT observation_clock_pkey PRIMARY KEY ("only");
ALTER TABLE ONLY audit.partner_subjects
    ADD CONSTRAINT partner_subjects_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audit.sale_observations
    ADD CONSTRAINT sale_observations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audit.service_readings
    ADD CONSTRAINT service_readings_pkey PRIMARY KEY (relation);
ALTER TABLE ONLY audit.token_revocations
    ADD CONSTRAINT token_revocations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audit.verification_failures
    ADD CONSTRAINT verification_failures_observation_id_key UNIQUE (observation_id);
ALTER TABLE ONLY audit.verification_failures
    ADD CONSTRAINT verification_failures_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audit.waiver_revocations
    ADD CONSTRAINT waiver_revocations_pkey PRIMARY KEY (waiver_id);
ALTER TABLE ONLY audit.waivers
    ADD CONSTRAINT waivers_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audit.withdrawals
    ADD CONSTRAINT withdrawals_pkey PRIMARY KEY (evidence_id);
CREATE INDEX content_checks_checked_at_idx ON audit.content_checks USING btree (checked_at);
CREATE INDEX content_checks_observation_id_idx ON audit.content_checks USING btree (observation_id);
CREATE INDEX custody_events_completed_idx ON audit.custody_events USING btree (((detail ->> 'sale'::text))) WHERE (kind = 'COMPLETED'::text);
CREATE INDEX custody_events_evidence_idx ON audit.custody_events USING btree ((((detail ->> 'evidence'::text))::uuid)) WHERE (((detail ->> 'evidence'::text))::uuid IS NOT NULL);
CREATE INDEX custody_events_object_idx ON audit.custody_events USING btree ((((detail ->> 'observation'::text))::bigint)) WHERE (((detail ->> 'observation'::text))::bigint IS NOT NULL);
CREATE INDEX custody_events_order_idx ON audit.custody_events USING btree (epoch, transaction, id);
CREATE INDEX evidence_observations_assumed_at_idx ON audit.evidence_observations USING btree (assumed_at) WHERE (assumed_at IS NOT NULL);
CREATE UNIQUE INDEX evidence_observations_current_idx ON audit.evidence_observations USING btree (evidence_id) WHERE (gone_at IS NULL);
CREATE INDEX evidence_observations_evidence_id_idx ON audit.evidence_observations USING btree (evidence_id);
CREATE INDEX evidence_observations_gone_at_idx ON audit.evidence_observations USING btree (gone_at) WHERE (gone_at IS NOT NULL);
CREATE INDEX evidence_observations_object_key_idx ON audit.evidence_observations USING btree (object_key) WHERE (gone_at IS NULL);
CREATE INDEX evidence_observations_sale_id_idx ON audit.evidence_observations USING btree (sale_id);
CREATE INDEX evidence_observations_seen_at_idx ON audit.evidence_observations USING btree (seen_at);
CREATE UNIQUE INDEX finding_observations_current_idx ON audit.finding_observations USING btree (finding_id) WHERE (gone_at IS NULL);
CREATE INDEX finding_observations_ended_idx ON audit.finding_observations USING btree (finding_id) WHERE (gone_at IS NOT NULL);
CREATE INDEX finding_observations_gone_at_idx ON audit.finding_observations USING btree (gone_at) WHERE (gone_at IS NOT NULL);
CREATE INDEX finding_observations_sale_id_idx ON audit.finding_observations USING btree (sale_id);
CREATE INDEX finding_observations_seen_at_idx ON audit.finding_observations USING btree (seen_at);
CREATE UNIQUE INDEX job_runs_job_slot_key ON audit.job_runs USING btree (job, slot);
CREATE INDEX judged_sales_completed_idx ON audit.judged_sales USING btree (partner, created_at, completed_at) WHERE (completed_at IS NOT NULL);
CREATE INDEX judged_sales_sale_id_idx ON audit.judged_sales USING btree (sale_id) WHERE unusable;
CREATE INDEX judged_sales_stands_until_idx ON audit.judged_sales USING btree (stands_until) WHERE (stands_until IS NOT NULL);
CREATE INDEX judged_sales_told_idx ON audit.judged_sales USING btree (sale_id) INCLUDE (partner, utility_group, status, created_at) WHERE ((status <> 'compliant'::text) OR (problems <> ''::text) OR (client_id IS NULL));
CREATE UNIQUE INDEX object_observations_current_idx ON audit.object_observations USING btree (key) WHERE (gone_at IS NULL);
CREATE INDEX object_observations_gone_at_idx ON audit.object_observations USING btree (gone_at) WHERE (gone_at IS NOT NULL);
CREATE INDEX object_observations_key_idx ON audit.object_observations USING btree (key COLLATE "C");
CREATE INDEX object_observations_seen_at_idx ON audit.object_observations USING btree (seen_at);
CREATE UNIQUE INDEX partner_subjects_current_idx ON audit.partner_subjects USING btree (subject) WHERE (revoked_at IS NULL);
CREATE UNIQUE INDEX sale_observations_current_idx ON audit.sale_observations USING btree (sale_id) WHERE (gone_at IS NULL);
CREATE INDEX sale_observations_gone_at_idx ON audit.sale_observations USING btree (gone_at) WHERE (gone_at IS NOT NULL);
CREATE INDEX sale_observations_seen_at_idx ON audit.sale_observations USING btree (seen_at);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON audit.adopted_buckets FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON audit.adopted_services FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON audit.audit_runs FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON audit.bucket_syncs FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON audit.content_checks FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON audit.custody_epochs FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON audit.custody_events FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON audit.custody_seals FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON audit.evidence_openings FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON audit.evidence_requests FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON audit.load_batches FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON audit.moved_partitions FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON audit.object_events FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON audit.token_revocations FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON audit.verification_failures FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON audit.waiver_revocations FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON audit.waivers FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON audit.withdrawals FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER closed_once BEFORE UPDATE ON audit.evidence_observations FOR EACH ROW EXECUTE FUNCTION audit.close_once();
CREATE TRIGGER closed_once BEFORE UPDATE ON audit.finding_observations FOR EACH ROW EXECUTE FUNCTION audit.close_once();
CREATE TRIGGER closed_once BEFORE UPDATE ON audit.object_observations FOR EACH ROW EXECUTE FUNCTION audit.close_once();
CREATE TRIGGER closed_once BEFORE UPDATE ON audit.sale_observations FOR EACH ROW EXECUTE FUNCTION audit.close_once();
CREATE TRIGGER never_back BEFORE UPDATE ON audit.observation_clock FOR EACH ROW EXECUTE FUNCTION audit.never_back();
CREATE TRIGGER never_deleted BEFORE DELETE ON audit.evidence_observations FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_deleted BEFORE DELETE ON audit.finding_observations FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_deleted BEFORE DELETE ON audit.object_observations FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_deleted BEFORE DELETE ON audit.observation_clock FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_deleted BEFORE DELETE ON audit.partner_subjects FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_deleted BEFORE DELETE ON audit.sale_observations FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.adopted_buckets FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.adopted_services FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.audit_runs FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.bucket_syncs FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.content_checks FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.custody_epochs FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.custody_events FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.custody_seals FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.evidence_observations FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.evidence_openings FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.evidence_requests FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.finding_observations FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.load_batches FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.moved_partitions FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.object_events FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.object_observations FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.observation_clock FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.partner_subjects FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.sale_observations FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.token_revocations FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.verification_failures FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.waiver_revocations FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.waivers FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit.withdrawals FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER open_epoch BEFORE INSERT ON audit.custody_events FOR EACH STATEMENT EXECUTE FUNCTION audit.open_epoch();
CREATE TRIGGER revoked_once BEFORE UPDATE ON audit.partner_subjects FOR EACH ROW EXECUTE FUNCTION audit.revoke_once();
CREATE TRIGGER tell_adopted AFTER INSERT ON audit.adopted_buckets REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_adopted();
CREATE TRIGGER tell_adopted AFTER INSERT ON audit.adopted_services REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_service_adopted();
CREATE TRIGGER tell_audited AFTER INSERT ON audit.audit_runs REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_audited();
CREATE TRIGGER tell_gone AFTER UPDATE ON audit.object_observations REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_gone();
CREATE TRIGGER tell_moved AFTER INSERT ON audit.moved_partitions REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_moved();
CREATE TRIGGER tell_opened AFTER INSERT ON audit.evidence_openings REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_opened();
CREATE TRIGGER tell_record_gone AFTER UPDATE ON audit.evidence_observations REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_record_gone();
CREATE TRIGGER tell_recorded AFTER INSERT ON audit.evidence_observations REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_recorded();
CREATE TRIGGER tell_sale_gone AFTER UPDATE ON audit.sale_observations REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_sale_gone();
CREATE TRIGGER tell_sales_observed AFTER INSERT ON audit.sale_observations REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_sales_observed();
CREATE TRIGGER tell_uploaded AFTER INSERT ON audit.object_observations REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_uploaded();
CREATE TRIGGER tell_verified AFTER INSERT ON audit.content_checks REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_verified();
CREATE TRIGGER tell_waiver_revocations AFTER INSERT ON audit.waiver_revocations REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_waiver_revocations();
CREATE TRIGGER tell_waivers AFTER INSERT ON audit.waivers REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_waivers();
CREATE TRIGGER tell_withdrawn AFTER INSERT ON audit.withdrawals REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_withdrawn();
ALTER TABLE ONLY audit.content_checks
    ADD CONSTRAINT content_checks_observation_id_fkey FOREIGN KEY (observation_id) REFERENCES audit.object_observations(id);
ALTER TABLE ONLY audit.job_steps
    ADD CONSTRAINT job_steps_run_id_fkey FOREIGN KEY (run_id) REFERENCES audit.job_runs(id);
ALTER TABLE ONLY audit.verification_failures
    ADD CONSTRAINT verification_failures_observation_id_fkey FOREIGN KEY (observation_id) REFERENCES audit.object_observations(id);
ALTER TABLE ONLY audit.waiver_revocations
    ADD CONSTRAINT waiver_revocations_waiver_id_fkey FOREIGN KEY (waiver_id) REFERENCES audit.waivers(id);
INSERT INTO audit.alembic_version VALUES ('0035');
INSERT INTO audit.observation_clock VALUES (TRUE, '2026-11-01 00:00:00+00');
INSERT INTO audit.custody_epochs VALUES (1, audit.cluster(), '2026-11-01 00:00:00+00');
INSERT INTO audit.sale_observations (sale_id, utility_group, created_at, seen_at) VALUES ('S-1', 'A', '2026-11-01 00:00:00+00', '2026-11-02 00:00:00+00');
