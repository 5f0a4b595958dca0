"""Keep with each reading of the service the counts that jumped, whose findings stand until they are back."""

from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run the statements."""
    op.execute("ALTER TABLE audit.service_readings ADD COLUMN raised jsonb NOT NULL DEFAULT '{}'")
    op.execute("ALTER TABLE audit.service_readings ALTER COLUMN raised DROP DEFAULT")
    op.execute("ALTER TABLE audit.adopted_services DROP COLUMN relations")
