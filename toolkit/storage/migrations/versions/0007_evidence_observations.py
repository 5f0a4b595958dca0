"""Observations of evidence records, and the clock that stamps every observation.

Records that are there already were never observed. Earlier audits took each as known since it was requested, so
that is what their first observation says, and ``assumed_at`` marks it as an assumption made by this migration.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

AUDIT = "audit"


def _moment(name: str, *, nullable: bool = False) -> sa.Column:
    return sa.Column(name, TIMESTAMP(timezone=True), nullable=nullable)


def _text(name: str) -> sa.Column:
    return sa.Column(name, sa.Text, nullable=False)


def upgrade() -> None:
    """Create both tables; take over the records of a database that was audited before."""
    op.create_table(
        "evidence_observations",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("evidence_id", sa.Uuid, nullable=False),
        _text("sale_id"),
        _text("evidence_type"),
        _text("type"),
        _text("object_key"),
        _moment("requested_at"),
        _moment("expires_at"),
        _moment("seen_at"),
        _moment("gone_at", nullable=True),
        _moment("assumed_at", nullable=True),
        schema=AUDIT,
    )
    op.execute(_TAKE_OVER)
    op.create_index(
        "evidence_observations_current_idx",
        "evidence_observations",
        ["evidence_id"],
        unique=True,
        schema=AUDIT,
        postgresql_where=sa.text("gone_at IS NULL"),
    )
    op.create_index(
        "evidence_observations_evidence_id_idx", "evidence_observations", ["evidence_id"], schema=AUDIT
    )
    for name, change, function in (
        ("never_deleted", "BEFORE DELETE", "refuse_change"),
        ("closed_once", "BEFORE UPDATE", "close_once"),
    ):
        op.execute(
            f"CREATE TRIGGER {name} {change} ON {AUDIT}.evidence_observations "
            f"FOR EACH ROW EXECUTE FUNCTION {AUDIT}.{function}()"
        )
    op.execute(
        f"CREATE TRIGGER never_emptied BEFORE TRUNCATE ON {AUDIT}.evidence_observations "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {AUDIT}.refuse_change()"
    )
    _tell_of_records()
    _start_clock()


def _tell_of_records() -> None:
    op.execute(
        f"CREATE INDEX custody_events_issued_idx ON {AUDIT}.custody_events (((detail ->> 'evidence')::uuid)) "
        "WHERE kind = 'ISSUED'"
    )
    for name, change, events in (("recorded", "INSERT", _RECORDED), ("record_gone", "UPDATE", _RECORD_GONE)):
        op.execute(
            f"""
            CREATE FUNCTION {AUDIT}.tell_{name}() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                INSERT INTO {AUDIT}.custody_events (kind, happened_at, detail) {events};
                RETURN NULL;
            END $$
            """
        )
        op.execute(
            f"CREATE TRIGGER tell_{name} AFTER {change} ON {AUDIT}.evidence_observations "
            f"REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION {AUDIT}.tell_{name}()"
        )


def _start_clock() -> None:
    op.create_table(
        "observation_clock",
        sa.Column("only", sa.Boolean, sa.CheckConstraint('"only"'), primary_key=True),
        _moment("stands_at"),
        schema=AUDIT,
    )
    newest = ", ".join(f"(SELECT max({column}) FROM {AUDIT}.{table})" for table, column in _STAMPED)  # noqa: S608
    op.execute(
        f"INSERT INTO {AUDIT}.observation_clock "
        f"SELECT TRUE, greatest(timestamptz '1970-01-01 00:00+00', {newest}) + interval '1 microsecond'"
    )
    op.execute(
        f"""
        CREATE FUNCTION {AUDIT}.never_back() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF NEW.stands_at < OLD.stands_at THEN
                RAISE EXCEPTION 'the clock of observations never goes back';
            END IF;
            RETURN NEW;
        END $$
        """
    )
    op.execute(
        f"CREATE TRIGGER never_back BEFORE UPDATE ON {AUDIT}.observation_clock "
        f"FOR EACH ROW EXECUTE FUNCTION {AUDIT}.never_back()"
    )
    op.execute(
        f"CREATE TRIGGER never_deleted BEFORE DELETE ON {AUDIT}.observation_clock "
        f"FOR EACH ROW EXECUTE FUNCTION {AUDIT}.refuse_change()"
    )
    op.execute(
        f"CREATE TRIGGER never_emptied BEFORE TRUNCATE ON {AUDIT}.observation_clock "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {AUDIT}.refuse_change()"
    )


_STAMPED = (
    ("sale_observations", "seen_at"),
    ("sale_observations", "gone_at"),
    ("object_observations", "seen_at"),
    ("object_observations", "gone_at"),
    ("content_checks", "checked_at"),
    ("withdrawals", "withdrawn_at"),
    ("audit_runs", "as_of"),
)
"""What was stamped before there was this clock."""

_TAKE_OVER = f"""
    DO $$
    DECLARE
        records regclass := coalesce(to_regclass('audit_service.evidences'), to_regclass('public.evidences'));
    BEGIN
        IF EXISTS (SELECT FROM {AUDIT}.sale_observations) AND records IS NOT NULL THEN
            EXECUTE format(
                'INSERT INTO {AUDIT}.evidence_observations
                     (evidence_id, sale_id, evidence_type, type, object_key, requested_at, expires_at,
                      seen_at, assumed_at)
                 SELECT id, sale_id, evidence_type, type, object_key, requested_at, expires_at,
                        least(requested_at, now()), now()
                 FROM %s
                 ORDER BY id', records
            );
        END IF;
    END $$
"""  # noqa: S608

_RECORD_HASH = """encode(sha256(convert_to(
    concat_ws(E'\\n', sale_id, evidence_type, type, object_key,
              extract(epoch FROM requested_at), extract(epoch FROM expires_at)), 'UTF8')), 'hex')"""

_RECORDED = f"""
    SELECT CASE WHEN seen_before THEN 'RECORD_CHANGED' ELSE 'RECORDED' END, seen_at,
           jsonb_build_object('observation', id, 'evidence', evidence_id, 'evidenceType', evidence_type,
                              'record', {_RECORD_HASH})
    FROM (
        SELECT written.*,
               EXISTS (
                   SELECT FROM {AUDIT}.evidence_observations AS earlier
                   WHERE earlier.evidence_id = written.evidence_id AND earlier.id < written.id
               ) AS seen_before,
               EXISTS (
                   SELECT FROM {AUDIT}.custody_events AS event
                   WHERE event.kind = 'ISSUED' AND (event.detail ->> 'evidence')::uuid = written.evidence_id
               ) AS issued_here
        FROM written
    ) AS observed
    WHERE seen_before OR NOT issued_here
    ORDER BY id
"""  # noqa: S608
"""A record that was issued here is told of by ISSUED; one that the service made, or changed, by this."""

_RECORD_GONE = """
    SELECT 'RECORD_GONE', gone_at, jsonb_build_object('observation', id, 'evidence', evidence_id)
    FROM written
    ORDER BY id
"""
