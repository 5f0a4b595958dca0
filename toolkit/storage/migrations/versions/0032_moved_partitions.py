"""Months of observations that were moved to a snapshot; the custody log tells whether a record was seen before."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

AUDIT = "audit"


def upgrade() -> None:
    """Create the table, which stays empty until a month is moved."""
    op.create_table(
        "moved_partitions",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("observations", sa.Text, nullable=False),
        sa.Column("began_at", TIMESTAMP(timezone=True), nullable=False),
        sa.Column("over_at", TIMESTAMP(timezone=True), nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("sha256", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("exported_at", TIMESTAMP(timezone=True), nullable=False),
        sa.Column("manifests", sa.Text, nullable=False),
        sa.Column("records_assumed_at", TIMESTAMP(timezone=True)),
        sa.Column("moved_at", TIMESTAMP(timezone=True), nullable=False),
        sa.UniqueConstraint("observations", "began_at", name="moved_partitions_observations_began_at_key"),
        schema=AUDIT,
    )
    for name, change, each in (
        ("append_only", "UPDATE OR DELETE", "ROW"),
        ("never_emptied", "TRUNCATE", "STATEMENT"),
    ):
        op.execute(
            f"CREATE TRIGGER {name} BEFORE {change} ON {AUDIT}.moved_partitions "
            f"FOR EACH {each} EXECUTE FUNCTION {AUDIT}.refuse_change()"
        )
    for statement in (_TELL_MOVED, _MOVED_TRIGGER, _TELL_RECORDED):
        op.execute(statement)


_TELL_MOVED = f"""
    CREATE FUNCTION {AUDIT}.tell_moved() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO {AUDIT}.custody_events (kind, happened_at, detail)
        SELECT 'OBSERVATIONS_MOVED', moved_at,
               jsonb_build_object('moved', id, 'observations', observations, 'rows', rows, 'sha256', sha256,
                                  'month', to_char(began_at AT TIME ZONE 'UTC', 'YYYY-MM'), 'manifests', manifests)
        FROM written
        ORDER BY id;
        RETURN NULL;
    END $$
"""  # noqa: S608  # made of constants

_MOVED_TRIGGER = f"""
    CREATE TRIGGER tell_moved AFTER INSERT ON {AUDIT}.moved_partitions REFERENCING NEW TABLE AS written
    FOR EACH STATEMENT EXECUTE FUNCTION {AUDIT}.tell_moved()
"""

_RECORD_HASH = """encode(sha256(convert_to(
    concat_ws(E'\\n', sale_id, evidence_type, type, object_key,
              extract(epoch FROM requested_at), extract(epoch FROM expires_at)), 'UTF8')), 'hex')"""

_TELL_RECORDED = f"""
    CREATE OR REPLACE FUNCTION {AUDIT}.tell_recorded() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO {AUDIT}.custody_events (kind, happened_at, detail)
        SELECT CASE WHEN seen_before THEN 'RECORD_CHANGED' ELSE 'RECORDED' END, seen_at,
               jsonb_build_object('observation', id, 'evidence', evidence_id, 'evidenceType', evidence_type,
                                  'record', {_RECORD_HASH})
        FROM (
            SELECT written.*,
                   EXISTS (
                       SELECT FROM {AUDIT}.custody_events AS event
                       WHERE event.kind = 'RECORD_GONE' AND (event.detail ->> 'evidence')::uuid = evidence_id
                   ) AS seen_before,
                   EXISTS (
                       SELECT FROM {AUDIT}.custody_events AS event
                       WHERE event.kind = 'ISSUED' AND (event.detail ->> 'evidence')::uuid = evidence_id
                   ) AS issued_here
            FROM written
        ) AS observed
        WHERE seen_before OR NOT issued_here
        ORDER BY id;
        RETURN NULL;
    END $$
"""  # noqa: S608
"""Open observations of a record are unique, so an earlier one ended, and the log tells that it did.

The log stays whole, where the earlier observation itself may have been moved.
"""
