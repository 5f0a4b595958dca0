"""${message.replace("_", " ").capitalize()}."""

from alembic import op

revision = ${repr(up_revision).replace("'", '"')}
down_revision = ${repr(down_revision).replace("'", '"')}
branch_labels = None
depends_on = None

AUDIT = "audit"


def upgrade() -> None:
    """Replace this by the statements, and bring ``toolkit.database.tables`` to the same state."""
    op.execute(f"ALTER TABLE {AUDIT}.")
