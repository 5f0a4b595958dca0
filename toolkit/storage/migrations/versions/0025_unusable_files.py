"""The sales with an unusable file, so that the list of these files is read without looking at every file."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, and its index; the next audit judges every sale."""
    op.execute("TRUNCATE audit.judgement, audit.judged_sales")
    op.add_column("judged_sales", sa.Column("unusable", sa.Boolean, nullable=False), schema="audit")
    op.execute("CREATE INDEX judged_sales_sale_id_idx ON audit.judged_sales (sale_id) WHERE unusable")
