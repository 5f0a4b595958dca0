"""The judgement that the last audit kept, and indexes that find what was observed since."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

AUDIT = "audit"


def _moment(name: str, *, nullable: bool = True) -> sa.Column:
    return sa.Column(name, TIMESTAMP(timezone=True), nullable=nullable)


def _text(name: str, *, nullable: bool = False) -> sa.Column:
    return sa.Column(name, sa.Text, nullable=nullable)


def upgrade() -> None:
    """Create the tables and indexes; the next audit judges every sale and keeps that."""
    op.create_table(
        "judged_sales",
        sa.Column("sale_id", sa.Text, primary_key=True),
        sa.Column("client_id", sa.Uuid),
        _text("utility_group"),
        sa.Column("is_client_financial_responsible", sa.Boolean),
        _text("partner", nullable=True),
        _moment("created_at", nullable=False),
        _moment("completed_at"),
        _moment("oldest_request"),
        *(
            sa.Column(name, sa.BigInteger, nullable=False)
            for name in ("unexamined", "verified", "first_bytes", "never", "unreadable")
        ),
        *(_text(name) for name in ("status", "missing", "reasons", "problems", "counted")),
        _moment("stands_until"),
        schema=AUDIT,
        prefixes=["UNLOGGED"],
    )
    op.create_table(
        "judgement",
        sa.Column("only", sa.Boolean, primary_key=True),
        _moment("judged_at", nullable=False),
        _text("fingerprint"),
        schema=AUDIT,
        prefixes=["UNLOGGED"],
    )
    _index("judged_sales", "stands_until", where="stands_until IS NOT NULL")
    for table in ("sale_observations", "evidence_observations", "object_observations"):
        _in_order("seen_at", table)
        _index(table, "gone_at", where="gone_at IS NOT NULL")
    _in_order("checked_at", "content_checks")
    for table in ("evidence_observations", "finding_observations"):
        _index(table, "sale_id")


def _index(table: str, column: str, *, where: str | None = None) -> None:
    op.create_index(
        f"{table}_{column}_idx",
        table,
        [column],
        schema=AUDIT,
        postgresql_where=None if where is None else sa.text(where),
    )


def _in_order(column: str, table: str) -> None:
    """An index of a few pages, for rows that are written in the order of this column."""
    op.create_index(
        f"{table}_{column}_idx",
        table,
        [column],
        schema=AUDIT,
        postgresql_using="brin",
        postgresql_with={"autosummarize": "on"},
    )
