"""Files that were opened through a short-lived link, each with who asked for it and why."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

AUDIT = "audit"


def upgrade() -> None:
    """Create the table; its rows are never changed or deleted, and the custody log is told of each."""
    op.create_table(
        "evidence_openings",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("evidence_id", sa.Uuid, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("opened_by", sa.Text, nullable=False),
        sa.Column("opened_at", TIMESTAMP(timezone=True), nullable=False),
        sa.Column("expires_at", TIMESTAMP(timezone=True), nullable=False),
        schema=AUDIT,
    )
    op.create_index("evidence_openings_evidence_id_idx", "evidence_openings", ["evidence_id"], schema=AUDIT)
    for name, change, each in (
        ("append_only", "UPDATE OR DELETE", "ROW"),
        ("never_emptied", "TRUNCATE", "STATEMENT"),
    ):
        op.execute(
            f"CREATE TRIGGER {name} BEFORE {change} ON {AUDIT}.evidence_openings "
            f"FOR EACH {each} EXECUTE FUNCTION {AUDIT}.refuse_change()"
        )
    op.execute(
        f"""
        CREATE FUNCTION {AUDIT}.tell_opened() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO {AUDIT}.custody_events (kind, happened_at, detail) {_OPENED};
            RETURN NULL;
        END $$
        """
    )
    op.execute(
        f"CREATE TRIGGER tell_opened AFTER INSERT ON {AUDIT}.evidence_openings REFERENCING NEW TABLE AS written "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {AUDIT}.tell_opened()"
    )


_OPENED = "SELECT 'OPENED', opened_at, jsonb_build_object('evidence', evidence_id, 'opening', id) FROM written"
