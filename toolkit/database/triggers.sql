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
