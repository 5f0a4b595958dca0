"""What a document can do by itself, and the media type that the bucket hands a file out with."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; both are unknown of files that were verified before."""
    op.add_column("content_checks", sa.Column("active_parts", sa.ARRAY(sa.Text)), schema="audit")
    op.add_column("content_checks", sa.Column("stored_type", sa.Text), schema="audit")
