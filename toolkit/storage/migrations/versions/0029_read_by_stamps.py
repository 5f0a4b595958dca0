"""Indexes by which an audit of now counts findings, changes and completions without reading all of them."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

FINDINGS = "finding_observations"


def upgrade() -> None:
    """Create them."""
    ended = {"schema": "audit", "postgresql_where": sa.text("gone_at IS NOT NULL")}
    op.create_index(f"{FINDINGS}_seen_at_idx", FINDINGS, ["seen_at"], schema="audit")
    op.create_index(f"{FINDINGS}_gone_at_idx", FINDINGS, ["gone_at"], **ended)
    op.create_index(f"{FINDINGS}_ended_idx", FINDINGS, ["finding_id"], **ended)
    op.create_index(
        "judged_sales_completed_idx",
        "judged_sales",
        ["partner", "created_at", "completed_at"],
        schema="audit",
        postgresql_where=sa.text("completed_at IS NOT NULL"),
    )
