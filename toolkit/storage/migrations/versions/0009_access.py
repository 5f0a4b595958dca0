"""Who may do what: partners and their subjects, who asked for a record, revoked tokens, who was signed in."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

AUDIT = "audit"


def upgrade() -> None:
    """Create the tables; the records and withdrawals that are there say nothing of who was signed in."""
    moment = TIMESTAMP(timezone=True)
    op.create_table(
        "evidence_requests",
        sa.Column("evidence_id", sa.Uuid, primary_key=True),
        sa.Column("account", sa.Text, nullable=False),
        sa.Column("partner", sa.Text),
        schema=AUDIT,
    )
    op.create_table(
        "partner_subjects",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("partner", sa.Text, nullable=False),
        sa.Column("added_at", moment, nullable=False),
        sa.Column("added_by", sa.Text, nullable=False),
        sa.Column("revoked_at", moment),
        sa.Column("revoked_by", sa.Text),
        schema=AUDIT,
    )
    op.create_index(
        "partner_subjects_current_idx",
        "partner_subjects",
        ["subject"],
        unique=True,
        schema=AUDIT,
        postgresql_where=sa.text("revoked_at IS NULL"),
    )
    op.create_table(
        "token_revocations",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("token_id", sa.Text),
        sa.Column("subject", sa.Text),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("revoked_at", moment, nullable=False),
        sa.Column("revoked_by", sa.Text, nullable=False),
        sa.CheckConstraint("num_nonnulls(token_id, subject) = 1", name="token_revocations_one_check"),
        schema=AUDIT,
    )
    op.add_column("withdrawals", sa.Column("account", sa.Text), schema=AUDIT)
    _keep_history()


def _keep_history() -> None:
    op.execute(
        f"""
        CREATE FUNCTION {AUDIT}.revoke_once() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF OLD.revoked_at IS NOT NULL OR NEW.revoked_at IS NULL
               OR to_jsonb(NEW) - 'revoked_at' - 'revoked_by' <> to_jsonb(OLD) - 'revoked_at' - 'revoked_by' THEN
                RAISE EXCEPTION 'rows of %.% change only once, when revoked_at is set',
                    TG_TABLE_SCHEMA, TG_TABLE_NAME;
            END IF;
            RETURN NEW;
        END $$
        """
    )
    for table in ("evidence_requests", "token_revocations"):
        op.execute(
            f"CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {AUDIT}.{table} "
            f"FOR EACH ROW EXECUTE FUNCTION {AUDIT}.refuse_change()"
        )
    op.execute(
        f"CREATE TRIGGER never_deleted BEFORE DELETE ON {AUDIT}.partner_subjects "
        f"FOR EACH ROW EXECUTE FUNCTION {AUDIT}.refuse_change()"
    )
    op.execute(
        f"CREATE TRIGGER revoked_once BEFORE UPDATE ON {AUDIT}.partner_subjects "
        f"FOR EACH ROW EXECUTE FUNCTION {AUDIT}.revoke_once()"
    )
    for table in ("evidence_requests", "partner_subjects", "token_revocations"):
        op.execute(
            f"CREATE TRIGGER never_emptied BEFORE TRUNCATE ON {AUDIT}.{table} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {AUDIT}.refuse_change()"
        )
