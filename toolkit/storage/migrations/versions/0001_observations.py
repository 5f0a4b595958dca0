"""Observations of sales and bucket objects, content checks, withdrawals and audit runs.

What was seen is never rewritten, and the database itself holds us to it.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

AUDIT = "audit"


def _id() -> sa.Column:
    return sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True)


def _moment(name: str, *, nullable: bool = False) -> sa.Column:
    return sa.Column(name, TIMESTAMP(timezone=True), nullable=nullable)


def _text(name: str, *, nullable: bool = False) -> sa.Column:
    return sa.Column(name, sa.Text, nullable=nullable)


def _count(name: str) -> sa.Column:
    return sa.Column(name, sa.BigInteger, nullable=False)


def upgrade() -> None:
    """Create the tables and the triggers that keep them append-only."""
    op.create_table(
        "sale_observations",
        _id(),
        _text("sale_id"),
        sa.Column("client_id", sa.Uuid),
        _text("utility_group"),
        sa.Column("is_client_financial_responsible", sa.Boolean, nullable=False),
        _text("partner", nullable=True),
        _moment("created_at"),
        _moment("completed_at", nullable=True),
        _moment("seen_at"),
        _moment("gone_at", nullable=True),
        schema=AUDIT,
    )
    op.create_table(
        "object_observations",
        _id(),
        _text("key"),
        _count("size"),
        _text("etag"),
        _moment("last_modified"),
        _moment("seen_at"),
        _moment("gone_at", nullable=True),
        schema=AUDIT,
    )
    for table, column in (("sale_observations", "sale_id"), ("object_observations", "key")):
        op.create_index(
            f"{table}_current_idx",
            table,
            [column],
            unique=True,
            schema=AUDIT,
            postgresql_where=sa.text("gone_at IS NULL"),
        )
    op.create_table(
        "content_checks",
        _id(),
        sa.Column(
            "observation_id", sa.BigInteger, sa.ForeignKey(f"{AUDIT}.object_observations.id"), nullable=False
        ),
        _text("kind"),
        _text("problem", nullable=True),
        _moment("checked_at"),
        schema=AUDIT,
    )
    op.create_index("content_checks_observation_id_idx", "content_checks", ["observation_id"], schema=AUDIT)
    op.create_table(
        "withdrawals",
        sa.Column("evidence_id", sa.Uuid, primary_key=True),
        _text("reason"),
        _text("withdrawn_by"),
        _text("approved_by"),
        _moment("withdrawn_at"),
        schema=AUDIT,
    )
    op.create_table(
        "bucket_syncs",
        _id(),
        _moment("started_at"),
        _moment("finished_at"),
        _text("bucket"),
        sa.Column("full_listing", sa.Boolean, nullable=False),
        _count("listed"),
        _count("appeared"),
        _count("vanished"),
        schema=AUDIT,
    )
    op.create_table(
        "audit_runs",
        sa.Column("id", sa.Uuid, primary_key=True),
        _moment("as_of"),
        _moment("ran_at"),
        _count("sales"),
        _count("compliant"),
        _count("incomplete"),
        _count("conflict"),
        schema=AUDIT,
    )
    _keep_history()


def _keep_history() -> None:
    op.execute(
        f"""
        CREATE FUNCTION {AUDIT}.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'rows of %.% are never changed or deleted', TG_TABLE_SCHEMA, TG_TABLE_NAME;
        END $$
        """
    )
    op.execute(
        f"""
        CREATE FUNCTION {AUDIT}.close_once() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF OLD.gone_at IS NOT NULL OR NEW.gone_at IS NULL
               OR to_jsonb(NEW) - 'gone_at' <> to_jsonb(OLD) - 'gone_at' THEN
                RAISE EXCEPTION 'rows of %.% change only once, when gone_at is set',
                    TG_TABLE_SCHEMA, TG_TABLE_NAME;
            END IF;
            RETURN NEW;
        END $$
        """
    )
    for table in ("content_checks", "withdrawals", "bucket_syncs", "audit_runs"):
        op.execute(
            f"CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {AUDIT}.{table} "
            f"FOR EACH ROW EXECUTE FUNCTION {AUDIT}.refuse_change()"
        )
    for table in ("sale_observations", "object_observations"):
        op.execute(
            f"CREATE TRIGGER never_deleted BEFORE DELETE ON {AUDIT}.{table} "
            f"FOR EACH ROW EXECUTE FUNCTION {AUDIT}.refuse_change()"
        )
        op.execute(
            f"CREATE TRIGGER closed_once BEFORE UPDATE ON {AUDIT}.{table} "
            f"FOR EACH ROW EXECUTE FUNCTION {AUDIT}.close_once()"
        )
