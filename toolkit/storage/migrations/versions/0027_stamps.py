"""What was observed since a moment is found by indexes that stay exact wherever a row is stored.

PostgreSQL puts a row where there is room. An index of block ranges then leads to every old page with a new row
among its rows, and in time to the whole table.
"""

from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

STAMPS = {
    "sale_observations": "seen_at",
    "evidence_observations": "seen_at",
    "object_observations": "seen_at",
    "content_checks": "checked_at",
}


def upgrade() -> None:
    """Replace the indexes."""
    for table, column in STAMPS.items():
        op.drop_index(f"{table}_{column}_idx", table, schema="audit")
        op.create_index(f"{table}_{column}_idx", table, [column], schema="audit")
