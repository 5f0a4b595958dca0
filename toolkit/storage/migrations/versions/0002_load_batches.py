"""The loaded files of clients, kept so that none is loaded twice."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

AUDIT = "audit"


def upgrade() -> None:
    """Create the table, and hold it to what was written once."""
    op.create_table(
        "load_batches",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("fingerprint", sa.Text, nullable=False, unique=True),
        sa.Column("sha256", sa.Text, nullable=False),
        sa.Column("options", JSONB, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("accepted", sa.BigInteger, nullable=False),
        sa.Column("rejected", sa.BigInteger, nullable=False),
        sa.Column("skipped", sa.BigInteger, nullable=False),
        sa.Column("loaded_at", TIMESTAMP(timezone=True), nullable=False),
        schema=AUDIT,
    )
    op.execute(
        f"CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {AUDIT}.load_batches "
        f"FOR EACH ROW EXECUTE FUNCTION {AUDIT}.refuse_change()"
    )
