"""Object versions whose bytes could not be read when they were to be verified."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

AUDIT = "audit"


def upgrade() -> None:
    """Create the table; its rows are never changed or deleted."""
    op.create_table(
        "verification_failures",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column(
            "observation_id",
            sa.BigInteger,
            sa.ForeignKey(f"{AUDIT}.object_observations.id", name="verification_failures_observation_id_fkey"),
            nullable=False,
        ),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("failed_at", TIMESTAMP(timezone=True), nullable=False),
        sa.UniqueConstraint("observation_id", name="verification_failures_observation_id_key"),
        schema=AUDIT,
    )
    for name, change, each in (
        ("append_only", "UPDATE OR DELETE", "ROW"),
        ("never_emptied", "TRUNCATE", "STATEMENT"),
    ):
        op.execute(
            f"CREATE TRIGGER {name} BEFORE {change} ON {AUDIT}.verification_failures "
            f"FOR EACH {each} EXECUTE FUNCTION {AUDIT}.refuse_change()"
        )
