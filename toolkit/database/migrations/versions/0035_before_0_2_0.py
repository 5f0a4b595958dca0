"""The oldest schema that can be upgraded: what ``tables`` described before version 0.2.0."""

revision = "0035"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Do nothing: a new database is created as ``tables`` describes it now."""
