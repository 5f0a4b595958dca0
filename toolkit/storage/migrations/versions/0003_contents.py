"""Columns for the verification of contents, and an index to read the objects of a day."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

AUDIT = "audit"


def upgrade() -> None:
    """Widen the content checks; the rows that are there keep their meaning."""
    op.add_column("content_checks", sa.Column("media_type", sa.Text), schema=AUDIT)
    op.add_column("content_checks", sa.Column("sha256", sa.Text), schema=AUDIT)
    op.add_column("content_checks", sa.Column("pages", sa.BigInteger), schema=AUDIT)
    op.add_column("content_checks", sa.Column("seconds", sa.Double), schema=AUDIT)
    op.create_index(
        "content_checks_sha256_idx",
        "content_checks",
        ["sha256"],
        schema=AUDIT,
        postgresql_where=sa.text("sha256 IS NOT NULL"),
    )
    op.create_index(
        "object_observations_day_idx",
        "object_observations",
        [sa.text('"left"(key, 21)')],
        schema=AUDIT,
        postgresql_where=sa.text("gone_at IS NULL"),
    )
