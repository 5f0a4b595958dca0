"""The counts beside the judgement that the last audit kept, and an index of the records assumed from before."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add both; the next audit judges every sale and keeps its counts."""
    op.execute("DELETE FROM audit.judgement")
    op.add_column("judgement", sa.Column("counts", sa.Text, nullable=False), schema="audit")
    op.create_index(
        "evidence_observations_assumed_at_idx",
        "evidence_observations",
        ["assumed_at"],
        schema="audit",
        postgresql_where=sa.text("assumed_at IS NOT NULL"),
    )
