"""Sales of which the service does not say who pays: unknown, and observed as that."""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Let the flag be null that another system may leave empty."""
    op.alter_column("sale_observations", "is_client_financial_responsible", nullable=True, schema="audit")
