"""The last reading of each relation of the service through a mapping."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table; the next audit compares all rows."""
    op.create_table(
        "service_readings",
        sa.Column("relation", sa.Text, primary_key=True),
        sa.Column("since", sa.BigInteger, nullable=False),
        sa.Column("written_by", sa.BigInteger, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("all_compared_at", TIMESTAMP(timezone=True), nullable=False),
        schema="audit",
        prefixes=["UNLOGGED"],
    )
