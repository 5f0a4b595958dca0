"""An index with all that an audit of now counts about the sales with findings."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create it."""
    op.create_index(
        "judged_sales_told_idx",
        "judged_sales",
        ["sale_id"],
        schema="audit",
        postgresql_include=["partner", "utility_group", "status", "created_at"],
        postgresql_where=sa.text("status <> 'compliant' OR problems <> '' OR client_id IS NULL"),
    )
