"""Bring a database of schema 0035 to the tables of version 0.2.0; its histories stay as they are."""

from alembic import op
from sqlalchemy import inspect, text

from toolkit.database.tables import AUDIT, log_entries, log_tiles
from toolkit.errors import SchemaMismatch

revision = "0044"
down_revision = None
branch_labels = None
depends_on = None

_FROM_0035 = (
    # The triggers have names of their own now; triggers.sql makes them.
    "DROP TRIGGER tell_adopted ON audit.adopted_buckets",
    "DROP TRIGGER tell_adopted ON audit.adopted_services",
    "DROP FUNCTION audit.tell_adopted()",
    # The service is read by named SQL: no views. Each reading is kept, instead of the state of the last one.
    "DROP SCHEMA IF EXISTS audit_service CASCADE",
    "DROP TABLE audit.service_readings",
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
    # Only a database that was older than any released one had records that were observed later than used.
    "ALTER TABLE audit.evidence_observations DROP COLUMN assumed_at",
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

_FROM_LATER = (
    # Counts of the service's rows that jumped have findings, until they are back.
    "ALTER TABLE IF EXISTS audit.service_readings ADD COLUMN IF NOT EXISTS raised jsonb NOT NULL DEFAULT '{}'",
    "ALTER TABLE IF EXISTS audit.service_readings ALTER COLUMN raised DROP DEFAULT",
    "ALTER TABLE audit.adopted_services DROP COLUMN IF EXISTS relations",
    # Events that are sealed have no salt: their entries were made without.
    "ALTER TABLE audit.custody_events ADD COLUMN IF NOT EXISTS salt uuid",
    "ALTER TABLE audit.custody_events ALTER COLUMN salt SET DEFAULT gen_random_uuid()",
    "ALTER TABLE IF EXISTS audit.log_entries ADD COLUMN IF NOT EXISTS sale_key bigint",
    # The sale of a record that was withdrawn: as it was seen then, or first where it was not seen yet.
    "ALTER TABLE audit.withdrawals ADD COLUMN IF NOT EXISTS sale_id text NOT NULL DEFAULT ''",
    "ALTER TABLE audit.withdrawals ALTER COLUMN sale_id DROP DEFAULT, DISABLE TRIGGER append_only",
    """
    UPDATE audit.withdrawals AS taken SET sale_id = seen.sale_id
    FROM (
        SELECT DISTINCT ON (id) withdrawn.evidence_id AS id, known.sale_id
        FROM audit.withdrawals AS withdrawn JOIN audit.evidence_observations AS known USING (evidence_id)
        WHERE withdrawn.sale_id = '' AND (known.gone_at IS NULL OR known.gone_at > withdrawn.withdrawn_at)
        ORDER BY id, known.seen_at
    ) AS seen
    WHERE seen.id = taken.evidence_id AND taken.sale_id = ''
    """,
    "ALTER TABLE audit.withdrawals ENABLE TRIGGER append_only, DROP CONSTRAINT withdrawals_pkey,"
    " ADD PRIMARY KEY (evidence_id, sale_id)",
)
"""The changes since schema 0036, of which a database of a version that was never released may have some."""

_CHAIN_INTO_TREE = (
    # Before all events, which are sealed anew: whoever kept the last seal of the chain finds it here.
    r"""
    INSERT INTO audit.log_entries (index, event, transaction, epoch, entry)
    SELECT 0, 0, 0, 0, convert_to(
        format(
            '{"at":"%s","detail":{"hash":"%s","seal":%s},"id"\:0,"kind":"CHAIN_ENDED"}',
            to_char(sealed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US+00:00'), hash, number
        ),
        'UTF8'
    )
    FROM audit.custody_seals ORDER BY number DESC LIMIT 1
    """,
    r"INSERT INTO audit.log_tiles SELECT 0, 0, sha256('\x00'::bytea || entry) FROM audit.log_entries",
    "DROP TABLE audit.custody_seals",
)


def upgrade() -> None:
    """Change the tables that are there; those that are missing are made from ``tables`` afterwards.

    Raises:
        SchemaMismatch: months were moved out of the database, so that it cannot tell of the past any more.
    """
    there = set(inspect(op.get_bind()).get_table_names(AUDIT))
    if "moved_partitions" in there and op.get_bind().scalar(text("SELECT count(*) FROM audit.moved_partitions")):
        raise SchemaMismatch(
            "Months of observations of this database were moved to a snapshot, which this version does not read: "
            "it could not tell what held then. Keep to the version that moved them. Nothing was changed."
        )
    if "custody_seals" in there:
        for table in (log_entries, log_tiles):
            table.create(op.get_bind())
    for statement in (
        *(_FROM_0035 if "job_steps" in there else ()),
        *_FROM_LATER,
        *(_CHAIN_INTO_TREE if "custody_seals" in there else ()),
    ):
        op.execute(statement)
