"""Keep the notices to partners about their findings, and their answers."""

from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run the statements."""
    op.execute(
        """
        CREATE TABLE audit.partner_notices (
            id uuid CONSTRAINT partner_notices_pkey PRIMARY KEY,
            partner text NOT NULL, day date NOT NULL, created_at timestamptz NOT NULL, delivered_at timestamptz,
            tries bigint NOT NULL, problem text
        )
        """
    )
    op.execute("CREATE UNIQUE INDEX partner_notices_partner_day_key ON audit.partner_notices (partner, day)")
    op.execute(
        """
        CREATE TABLE audit.told_findings (
            id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT told_findings_pkey PRIMARY KEY,
            notice_id uuid NOT NULL
                CONSTRAINT told_findings_notice_id_fkey REFERENCES audit.partner_notices (id),
            finding_id uuid NOT NULL, stage text NOT NULL
        )
        """
    )
    op.execute("CREATE INDEX told_findings_notice_id_idx ON audit.told_findings (notice_id)")
    op.execute("CREATE INDEX told_findings_finding_id_idx ON audit.told_findings (finding_id)")
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
