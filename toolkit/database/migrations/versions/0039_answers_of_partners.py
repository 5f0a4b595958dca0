"""Keep what partners answer to findings."""

from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run the statements."""
    op.execute(
        """
        CREATE TABLE audit.finding_answers (
            id uuid CONSTRAINT finding_answers_pkey PRIMARY KEY,
            finding_id uuid NOT NULL, partner text NOT NULL, answer text NOT NULL, until date, text text,
            answered_at timestamptz NOT NULL, answered_by text NOT NULL
        )
        """
    )
    op.execute("CREATE INDEX finding_answers_finding_id_idx ON audit.finding_answers (finding_id)")
