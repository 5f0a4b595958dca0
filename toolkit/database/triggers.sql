-- The functions and triggers of schema audit. Every upgrade runs this file: it says how things are, not how they came.
-- Tables are in tables.py, which also names those that are append-only (refuse_change) or closed once (close_once).

-- What a trigger tells of names and keys is a hash; sealing replaces it by a keyed one.
CREATE OR REPLACE FUNCTION audit.sha256_hex(value text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT
AS $$ SELECT pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(value, 'UTF8')), 'hex') $$;

CREATE OR REPLACE FUNCTION audit.utc_text(moment timestamptz) RETURNS text
LANGUAGE sql STABLE STRICT
AS $$ SELECT pg_catalog.to_char(pg_catalog.timezone('UTC', moment), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') $$;

CREATE OR REPLACE FUNCTION audit.cluster() RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog AS $$
BEGIN
    RETURN (SELECT system_identifier FROM pg_control_system());
EXCEPTION WHEN insufficient_privilege THEN
    RETURN NULL;
END $$;


-- Histories are never rewritten, but by the transaction that erases personal data and says so in audit.erasures.

CREATE OR REPLACE FUNCTION audit.is_erasing() RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog AS $$
BEGIN
    -- Numbers of transactions come again in another cluster: the row itself must be of this very transaction.
    RETURN EXISTS (
        SELECT FROM audit.erasures
        WHERE transaction = pg_current_xact_id_if_assigned()::text::bigint
          AND xmin = pg_current_xact_id_if_assigned()::xid
    );
END $$;

CREATE OR REPLACE FUNCTION audit.refuse_change() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND TG_TABLE_NAME <> 'erasures' AND audit.is_erasing() THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'rows of %.% are never changed or deleted', TG_TABLE_SCHEMA, TG_TABLE_NAME;
END $$;

CREATE OR REPLACE FUNCTION audit.close_once() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    IF NEW.gone_at = coalesce(OLD.gone_at, NEW.gone_at) AND audit.is_erasing() THEN
        RETURN NEW;
    END IF;
    IF OLD.gone_at IS NOT NULL OR NEW.gone_at IS NULL
       OR to_jsonb(NEW) - 'gone_at' - 'gone_how' <> to_jsonb(OLD) - 'gone_at' - 'gone_how' THEN
        RAISE EXCEPTION 'rows of %.% change only once, when gone_at is set', TG_TABLE_SCHEMA, TG_TABLE_NAME;
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION audit.never_back() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    IF NEW.stands_at < OLD.stands_at THEN
        RAISE EXCEPTION 'the clock of observations never goes back';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER never_back BEFORE UPDATE ON audit.observation_clock
    FOR EACH ROW EXECUTE FUNCTION audit.never_back();


-- The custody log: each event is written by the transaction that it is about.

-- Numbers of transactions are those of a cluster: a database that was restored in another one opens an epoch.
CREATE OR REPLACE FUNCTION audit.open_epoch() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
    newest audit.custody_epochs;
    sealed bigint;
    here bigint := audit.cluster();
BEGIN
    SELECT * INTO newest FROM audit.custody_epochs ORDER BY number DESC LIMIT 1;
    SELECT transaction INTO sealed
    FROM (SELECT epoch, transaction FROM audit.log_entries ORDER BY index DESC LIMIT 1) AS last
    WHERE epoch = newest.number;
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

CREATE OR REPLACE TRIGGER open_epoch BEFORE INSERT ON audit.custody_events
    FOR EACH STATEMENT EXECUTE FUNCTION audit.open_epoch();

CREATE OR REPLACE FUNCTION audit.tell_sales_observed() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    INSERT INTO audit.custody_events (kind, happened_at, detail)
    SELECT 'SALES_OBSERVED', max(seen_at),
           jsonb_build_object('first', min(id), 'last', max(id), 'count', count(*), 'sales', audit.sha256_hex(string_agg(ROW(
               id, sale_id, client_id, utility_group, is_client_financial_responsible, partner,
               extract(epoch FROM created_at), extract(epoch FROM completed_at), extract(epoch FROM seen_at)
           )::text, '' ORDER BY id)))
    FROM written
    GROUP BY id / 1000
    ORDER BY min(id);
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER tell_sales_observed AFTER INSERT ON audit.sale_observations
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_sales_observed();

CREATE OR REPLACE FUNCTION audit.tell_sale_gone() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    IF audit.is_erasing() THEN
        RETURN NULL;
    END IF;
    INSERT INTO audit.custody_events (kind, happened_at, detail)
    SELECT 'SALE_GONE', gone_at, jsonb_build_object('observation', id)
    FROM written
    ORDER BY id;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER tell_sale_gone AFTER UPDATE ON audit.sale_observations
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_sale_gone();

CREATE OR REPLACE FUNCTION audit.tell_recorded() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    INSERT INTO audit.custody_events (kind, happened_at, detail)
    SELECT CASE WHEN seen_before THEN 'RECORD_CHANGED' ELSE 'RECORDED' END, seen_at,
           jsonb_build_object('observation', id, 'evidence', evidence_id, 'evidenceType', evidence_type,
                              'record', audit.sha256_hex(concat_ws(E'\n',
                                  sale_id, evidence_type, type, object_key,
                                  extract(epoch FROM requested_at), extract(epoch FROM expires_at))))
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

CREATE OR REPLACE TRIGGER tell_recorded AFTER INSERT ON audit.evidence_observations
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_recorded();

CREATE OR REPLACE FUNCTION audit.tell_record_gone() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    IF audit.is_erasing() THEN
        RETURN NULL;
    END IF;
    INSERT INTO audit.custody_events (kind, happened_at, detail)
    SELECT 'RECORD_GONE', gone_at, jsonb_build_object('observation', id, 'evidence', evidence_id)
    FROM written
    ORDER BY id;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER tell_record_gone AFTER UPDATE ON audit.evidence_observations
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_record_gone();

CREATE OR REPLACE FUNCTION audit.tell_uploaded() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    INSERT INTO audit.custody_events (kind, happened_at, detail)
    SELECT CASE WHEN version_id IS NOT NULL AND EXISTS (
               SELECT FROM audit.object_observations AS earlier
               WHERE earlier.key COLLATE "C" = written.key
                 AND earlier.version_id = written.version_id AND earlier.id < written.id
           ) THEN 'RESTORED' ELSE 'UPLOADED' END,
           seen_at,
           jsonb_strip_nulls(jsonb_build_object(
               'observation', id, 'key', audit.sha256_hex(key), 'size', size, 'etag', etag,
               'lastModified', audit.utc_text(last_modified), 'version', version_id))
    FROM written
    ORDER BY id;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER tell_uploaded AFTER INSERT ON audit.object_observations
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_uploaded();

CREATE OR REPLACE FUNCTION audit.tell_gone() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    IF audit.is_erasing() THEN
        RETURN NULL;
    END IF;
    INSERT INTO audit.custody_events (kind, happened_at, detail)
    SELECT 'GONE', gone_at,
           jsonb_strip_nulls(jsonb_build_object('observation', id, 'key', audit.sha256_hex(key), 'how', gone_how))
    FROM written
    ORDER BY id;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER tell_gone AFTER UPDATE ON audit.object_observations
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_gone();

CREATE OR REPLACE FUNCTION audit.tell_verified() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    INSERT INTO audit.custody_events (kind, happened_at, detail)
    SELECT 'VERIFIED', checked_at,
           jsonb_build_object('observation', observation_id, 'sha256', sha256, 'kind', kind,
                              'problem', problem)
    FROM written
    WHERE sha256 IS NOT NULL
    ORDER BY id;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER tell_verified AFTER INSERT ON audit.content_checks
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_verified();

CREATE OR REPLACE FUNCTION audit.tell_withdrawn() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    INSERT INTO audit.custody_events (kind, happened_at, detail)
    SELECT 'WITHDRAWN', withdrawn_at, jsonb_strip_nulls(jsonb_build_object(
               'evidence', evidence_id, 'by', audit.sha256_hex(withdrawn_by), 'approvedBy', audit.sha256_hex(approved_by),
               'account', audit.sha256_hex(account), 'reason', audit.sha256_hex(reason)))
    FROM written;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER tell_withdrawn AFTER INSERT ON audit.withdrawals
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_withdrawn();

CREATE OR REPLACE FUNCTION audit.tell_opened() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    INSERT INTO audit.custody_events (kind, happened_at, detail)
    SELECT 'OPENED', opened_at, jsonb_strip_nulls(jsonb_build_object(
               'evidence', evidence_id, 'opening', id, 'by', audit.sha256_hex(opened_by),
               'account', audit.sha256_hex(account), 'reason', audit.sha256_hex(reason)))
    FROM written;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER tell_opened AFTER INSERT ON audit.evidence_openings
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_opened();

CREATE OR REPLACE FUNCTION audit.tell_audited() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    INSERT INTO audit.custody_events (kind, happened_at, detail)
    SELECT 'AUDITED', ran_at,
           jsonb_build_object('run', id, 'asOf', audit.utc_text(as_of), 'sales', sales, 'compliant', compliant,
                              'incomplete', incomplete, 'conflict', conflict)
    FROM written;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER tell_audited AFTER INSERT ON audit.audit_runs
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_audited();

CREATE OR REPLACE FUNCTION audit.tell_waivers() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    INSERT INTO audit.custody_events (kind, happened_at, detail)
    SELECT 'WAIVED', added_at,
           jsonb_build_object('waiver', id, 'code', code, 'start', start_day::text, 'end', end_day::text)
    FROM written;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER tell_waivers AFTER INSERT ON audit.waivers
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_waivers();

CREATE OR REPLACE FUNCTION audit.tell_waiver_revocations() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    INSERT INTO audit.custody_events (kind, happened_at, detail)
    SELECT 'WAIVER_REVOKED', revoked_at, jsonb_build_object('waiver', waiver_id) FROM written;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER tell_waiver_revocations AFTER INSERT ON audit.waiver_revocations
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_waiver_revocations();

CREATE OR REPLACE FUNCTION audit.tell_bucket_adopted() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    INSERT INTO audit.custody_events (kind, happened_at, detail)
    SELECT 'BUCKET_ADOPTED', adopted_at, jsonb_build_object('bucket', bucket) FROM written;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER tell_bucket_adopted AFTER INSERT ON audit.adopted_buckets
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_bucket_adopted();

CREATE OR REPLACE FUNCTION audit.tell_service_adopted() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    INSERT INTO audit.custody_events (kind, happened_at, detail)
    SELECT 'SERVICE_ADOPTED', adopted_at, jsonb_build_object('cluster', cluster, 'database', database)
    FROM written
    WHERE EXISTS (SELECT FROM audit.adopted_services AS former WHERE former.id < written.id);
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER tell_service_adopted AFTER INSERT ON audit.adopted_services
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.tell_service_adopted();
