"""Evidence records whose type, key or expiry the service does not keep: unknown, and observed as that."""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

AUDIT = "audit"


def upgrade() -> None:
    """Let the columns be null that another system may not have."""
    for column in ("type", "object_key", "expires_at"):
        op.alter_column("evidence_observations", column, nullable=True, schema=AUDIT)
