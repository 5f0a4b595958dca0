"""The number of keys about which the bucket refused to answer when it was read."""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; it is unknown of earlier readings."""
    op.add_column("bucket_syncs", sa.Column("denied", sa.BigInteger), schema="audit")
