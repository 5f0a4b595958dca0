"""Bring a database of schema 0035 to the tables of version 0.2.0; its histories stay as they are."""

from alembic import op
from sqlalchemy import text

from toolkit.errors import SchemaMismatch

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

_STATEMENTS = (
    # The triggers have names of their own now; triggers.sql makes them.
    "DROP TRIGGER tell_adopted ON audit.adopted_buckets",
    "DROP TRIGGER tell_adopted ON audit.adopted_services",
    "DROP FUNCTION audit.tell_adopted()",
    # The service is read by named SQL: no views. Each reading is kept, instead of the state of the last one.
    "DROP SCHEMA IF EXISTS audit_service CASCADE",
    "DROP TABLE audit.service_readings",
    """
    CREATE TABLE audit.service_readings (
        id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT service_readings_pkey PRIMARY KEY,
        read_at timestamptz NOT NULL, resolved jsonb NOT NULL, counts jsonb NOT NULL, changes jsonb NOT NULL
    )
    """,
    """
    CREATE TABLE audit.restores (
        id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT restores_pkey PRIMARY KEY,
        lost_seal text NOT NULL, noticed_at timestamptz NOT NULL
    )
    """,
    """
    CREATE TABLE audit.restore_confirmations (
        id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT restore_confirmations_pkey PRIMARY KEY,
        confirmed_at timestamptz NOT NULL, confirmed_by text NOT NULL, approved_by text NOT NULL,
        reason text NOT NULL, account text
    )
    """,
    # Loads find each other's clients by an anti-join, one after the other.
    "DROP TABLE audit.load_keys",
    "DROP TABLE audit.object_events",
    # A token names its partner itself.
    "DROP TABLE audit.partner_subjects",
    "DROP FUNCTION audit.revoke_once()",
    # Every audit judges all sales, and nothing is moved out of the database any more.
    "DROP TABLE audit.judged_sales, audit.judgement, audit.moved_partitions",
    "DROP FUNCTION audit.tell_moved()",
    "ALTER TABLE audit.content_checks ADD COLUMN speech_seconds double precision, ADD COLUMN depth text,"
    " ADD COLUMN readers text[], ADD COLUMN look bigint",
    # A reading looks at every key, or at the days and records that can have changed.
    "ALTER TABLE audit.bucket_syncs DROP COLUMN cycle, DROP COLUMN read_to",
    # The steps of a run of a job stand in its row, and the time at which it was due is its logical date.
    "ALTER TABLE audit.job_runs RENAME COLUMN slot TO logical_date",
    "ALTER TABLE audit.job_notices RENAME COLUMN slot TO logical_date",
    "ALTER INDEX audit.job_runs_job_slot_key RENAME TO job_runs_job_logical_date_key",
    "ALTER TABLE audit.job_runs ADD COLUMN steps jsonb NOT NULL DEFAULT '[]'",
    """
    UPDATE audit.job_runs AS run SET steps = ended.steps
    FROM (
        SELECT run_id, jsonb_agg(jsonb_build_object(
            'name', name, 'target', target, 'parameters', parameters, 'status', status,
            'startedAt', started_at, 'endedAt', ended_at, 'failure', failure, 'reason', reason,
            'counts', counts, 'files', files
        ) ORDER BY position) AS steps
        FROM audit.job_steps GROUP BY run_id
    ) AS ended
    WHERE ended.run_id = run.id
    """,
    "UPDATE audit.job_runs SET status = 'running', lease_until = NULL WHERE status = 'publishing'",
    "ALTER TABLE audit.job_runs ALTER COLUMN steps DROP DEFAULT",
    "ALTER TABLE audit.job_runs DROP COLUMN held_by, DROP COLUMN counts, DROP COLUMN files, DROP COLUMN purged_at",
    "DROP TABLE audit.job_steps",
)
"""Each change of a table stands in ``toolkit.database.tables`` as well."""


def upgrade() -> None:
    """Run the statements.

    Raises:
        SchemaMismatch: months were moved out of the database, so that it cannot tell of the past any more.
    """
    if op.get_bind().scalar(text("SELECT EXISTS (SELECT FROM audit.moved_partitions)")):
        raise SchemaMismatch(
            "Months of observations of this database were moved to a snapshot, which this version does not read: "
            "it could not tell what held then. Keep to the version that moved them. Nothing was changed."
        )
    for statement in _STATEMENTS:
        op.execute(statement)
