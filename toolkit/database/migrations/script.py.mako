"""${message.replace("_", " ").capitalize()}."""

from alembic import op

revision = ${repr(up_revision).replace("'", '"')}
down_revision = ${repr(down_revision).replace("'", '"')}
branch_labels = None
depends_on = None

AUDIT = "audit"


def upgrade() -> None:
    """Replace this by the changes of tables that are there; those that are missing are made from ``tables``."""
    op.execute(f"ALTER TABLE IF EXISTS {AUDIT}.")
