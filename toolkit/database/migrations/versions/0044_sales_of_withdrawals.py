"""Note of which sale a record was that was withdrawn: a service that was restored gives ids again."""

from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None

_STATEMENTS = (
    "ALTER TABLE audit.withdrawals ADD COLUMN IF NOT EXISTS sale_id text NOT NULL DEFAULT ''",
    "ALTER TABLE audit.withdrawals ALTER COLUMN sale_id DROP DEFAULT, DISABLE TRIGGER append_only",
    # As it was seen then; where it was not seen yet, as it was seen first.
    """
    UPDATE audit.withdrawals AS taken SET sale_id = seen.sale_id
    FROM (
        SELECT DISTINCT ON (id) withdrawn.evidence_id AS id, known.sale_id
        FROM audit.withdrawals AS withdrawn JOIN audit.evidence_observations AS known USING (evidence_id)
        WHERE known.gone_at IS NULL OR known.gone_at > withdrawn.withdrawn_at
        ORDER BY id, known.seen_at
    ) AS seen
    WHERE seen.id = taken.evidence_id
    """,
    "ALTER TABLE audit.withdrawals ENABLE TRIGGER append_only, DROP CONSTRAINT withdrawals_pkey",
    "ALTER TABLE audit.withdrawals ADD CONSTRAINT withdrawals_pkey PRIMARY KEY (evidence_id, sale_id)",
)


def upgrade() -> None:
    """Change the table that is there."""
    for statement in _STATEMENTS:
        op.execute(statement)
