"""The account that was signed in when a waiver was added or revoked, or a file was opened."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; it is unknown of earlier rows."""
    for table in ("waivers", "waiver_revocations", "evidence_openings"):
        op.add_column(table, sa.Column("account", sa.Text), schema="audit")
