"""The hashes of the clients that a load registered, for the loads that run beside it."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table; hashes are not compressed, as that would only cost time."""
    op.create_table(
        "load_keys",
        sa.Column("number", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("hashes", sa.LargeBinary, nullable=False),
        schema="audit",
    )
    op.execute("ALTER TABLE audit.load_keys ALTER hashes SET STORAGE EXTERNAL")
