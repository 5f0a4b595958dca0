"""The hash of what is heard or seen in a file, beside that of its bytes."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; files that were verified before are compared by their bytes alone."""
    op.add_column("content_checks", sa.Column("normal_form", sa.Text), schema="audit")
