"""History cannot be emptied either: TRUNCATE passes the triggers of rows by."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

AUDIT = "audit"

HISTORY = (
    "load_batches",
    "content_checks",
    "withdrawals",
    "bucket_syncs",
    "audit_runs",
    "custody_events",
    "custody_seals",
    "sale_observations",
    "object_observations",
)


def upgrade() -> None:
    """Refuse it by a trigger of the statement."""
    for table in HISTORY:
        op.execute(
            f"CREATE TRIGGER never_emptied BEFORE TRUNCATE ON {AUDIT}.{table} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {AUDIT}.refuse_change()"
        )
