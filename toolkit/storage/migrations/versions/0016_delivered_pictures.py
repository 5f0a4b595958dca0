"""Inventories and journals of the bucket: the source of a reading, and who wrote or deleted an object."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

AUDIT = "audit"


def upgrade() -> None:
    """Add the column, and the table; its rows are never changed or deleted."""
    op.add_column("bucket_syncs", sa.Column("source", sa.Text), schema=AUDIT)
    op.create_table(
        "object_events",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("sequence_number", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("happened_at", TIMESTAMP(timezone=True), nullable=False),
        sa.Column("version_id", sa.Text),
        sa.Column("requester", sa.Text),
        sa.Column("source_address", sa.Text),
        sa.Column("noted_at", TIMESTAMP(timezone=True), nullable=False),
        sa.UniqueConstraint("key", "sequence_number", name="object_events_key_sequence_number_key"),
        schema=AUDIT,
    )
    for name, change, each in (
        ("append_only", "UPDATE OR DELETE", "ROW"),
        ("never_emptied", "TRUNCATE", "STATEMENT"),
    ):
        op.execute(
            f"CREATE TRIGGER {name} BEFORE {change} ON {AUDIT}.object_events "
            f"FOR EACH {each} EXECUTE FUNCTION {AUDIT}.refuse_change()"
        )
