"""The picture of the bucket: which part was read when, versions of objects, and the bucket that belongs here."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

AUDIT = "audit"


def upgrade() -> None:
    """Add the columns; the next reading of the bucket is a full one and begins the first cycle."""
    op.add_column("bucket_syncs", sa.Column("cycle", sa.BigInteger), schema=AUDIT)
    op.add_column("bucket_syncs", sa.Column("read_to", sa.Text), schema=AUDIT)
    op.add_column("bucket_syncs", sa.Column("asked", sa.BigInteger), schema=AUDIT)
    op.add_column("bucket_syncs", sa.Column("unreadable", sa.BigInteger), schema=AUDIT)
    op.add_column("object_observations", sa.Column("version_id", sa.Text), schema=AUDIT)
    op.add_column("object_observations", sa.Column("gone_how", sa.Text), schema=AUDIT)
    op.drop_index("object_observations_day_idx", "object_observations", schema=AUDIT)
    op.execute(f'CREATE INDEX object_observations_key_idx ON {AUDIT}.object_observations (key COLLATE "C")')
    op.create_index(
        "evidence_observations_object_key_idx",
        "evidence_observations",
        ["object_key"],
        schema=AUDIT,
        postgresql_where=sa.text("gone_at IS NULL"),
    )
    op.create_table(
        "adopted_buckets",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("bucket", sa.Text, nullable=False),
        sa.Column("adopted_at", TIMESTAMP(timezone=True), nullable=False),
        schema=AUDIT,
    )
    op.execute(
        f"CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {AUDIT}.adopted_buckets "
        f"FOR EACH ROW EXECUTE FUNCTION {AUDIT}.refuse_change()"
    )
    op.execute(
        f"CREATE TRIGGER never_emptied BEFORE TRUNCATE ON {AUDIT}.adopted_buckets "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {AUDIT}.refuse_change()"
    )
    for statement in (_CLOSE_ONCE, _TELL_UPLOADED, _TELL_GONE, _TELL_ADOPTED, _ADOPTED_TRIGGER):
        op.execute(statement)


_CLOSE_ONCE = f"""
    CREATE OR REPLACE FUNCTION {AUDIT}.close_once() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF OLD.gone_at IS NOT NULL OR NEW.gone_at IS NULL
           OR to_jsonb(NEW) - 'gone_at' - 'gone_how' <> to_jsonb(OLD) - 'gone_at' - 'gone_how' THEN
            RAISE EXCEPTION 'rows of %.% change only once, when gone_at is set',
                TG_TABLE_SCHEMA, TG_TABLE_NAME;
        END IF;
        RETURN NEW;
    END $$
"""
"""With the end of an observation it may be said how it ended."""

_KEY_HASH = "encode(sha256(convert_to(key, 'UTF8')), 'hex')"

_LAST_MODIFIED = """to_char(last_modified AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""

_TELL_UPLOADED = f"""
    CREATE OR REPLACE FUNCTION {AUDIT}.tell_uploaded() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO {AUDIT}.custody_events (kind, happened_at, detail)
        SELECT CASE WHEN version_id IS NOT NULL AND EXISTS (
                   SELECT FROM {AUDIT}.object_observations AS earlier
                   WHERE earlier.key COLLATE "C" = written.key
                     AND earlier.version_id = written.version_id AND earlier.id < written.id
               ) THEN 'RESTORED' ELSE 'UPLOADED' END,
               seen_at,
               jsonb_strip_nulls(jsonb_build_object(
                   'observation', id, 'key', {_KEY_HASH}, 'size', size, 'etag', etag,
                   'lastModified', {_LAST_MODIFIED}, 'version', version_id))
        FROM written
        ORDER BY id;
        RETURN NULL;
    END $$
"""  # noqa: S608  # made of constants

_TELL_GONE = f"""
    CREATE OR REPLACE FUNCTION {AUDIT}.tell_gone() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO {AUDIT}.custody_events (kind, happened_at, detail)
        SELECT 'GONE', gone_at,
               jsonb_strip_nulls(jsonb_build_object('observation', id, 'key', {_KEY_HASH}, 'how', gone_how))
        FROM written
        ORDER BY id;
        RETURN NULL;
    END $$
"""  # noqa: S608

_TELL_ADOPTED = f"""
    CREATE FUNCTION {AUDIT}.tell_adopted() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO {AUDIT}.custody_events (kind, happened_at, detail)
        SELECT 'BUCKET_ADOPTED', adopted_at, jsonb_build_object('bucket', bucket) FROM written;
        RETURN NULL;
    END $$
"""  # noqa: S608

_ADOPTED_TRIGGER = f"""
    CREATE TRIGGER tell_adopted AFTER INSERT ON {AUDIT}.adopted_buckets REFERENCING NEW TABLE AS written
    FOR EACH STATEMENT EXECUTE FUNCTION {AUDIT}.tell_adopted()
"""
