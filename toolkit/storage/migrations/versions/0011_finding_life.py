"""The life of findings: the stretches during which each was seen, and the waivers that accept some for a time."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

AUDIT = "audit"


def _moment(name: str, *, nullable: bool = False) -> sa.Column:
    return sa.Column(name, TIMESTAMP(timezone=True), nullable=nullable)


def _text(name: str, *, nullable: bool = False) -> sa.Column:
    return sa.Column(name, sa.Text, nullable=nullable)


def upgrade() -> None:
    """Create the tables; the history of findings begins with the next audit."""
    op.create_table(
        "finding_observations",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("finding_id", sa.Uuid, nullable=False),
        _text("code"),
        _text("sale_id", nullable=True),
        _text("partner", nullable=True),
        _text("utility_group", nullable=True),
        _moment("seen_at"),
        _moment("gone_at", nullable=True),
        schema=AUDIT,
    )
    op.create_index(
        "finding_observations_current_idx",
        "finding_observations",
        ["finding_id"],
        unique=True,
        schema=AUDIT,
        postgresql_where=sa.text("gone_at IS NULL"),
    )
    op.create_index("finding_observations_finding_id_idx", "finding_observations", ["finding_id"], schema=AUDIT)
    op.create_table(
        "waivers",
        sa.Column("id", sa.Uuid, primary_key=True),
        _text("sale_id", nullable=True),
        _text("partner", nullable=True),
        _text("code", nullable=True),
        _text("reason"),
        _text("owner"),
        _text("approved_by"),
        sa.Column("start_day", sa.Date, nullable=False),
        sa.Column("end_day", sa.Date, nullable=False),
        _moment("added_at"),
        schema=AUDIT,
    )
    op.create_table(
        "waiver_revocations",
        sa.Column(
            "waiver_id",
            sa.Uuid,
            sa.ForeignKey(f"{AUDIT}.waivers.id", name="waiver_revocations_waiver_id_fkey"),
            primary_key=True,
        ),
        _text("reason"),
        _text("revoked_by"),
        _moment("revoked_at"),
        schema=AUDIT,
    )
    op.add_column("audit_runs", sa.Column("with_files", sa.Boolean), schema=AUDIT)
    _guard("finding_observations", "never_deleted", "DELETE", "refuse_change")
    _guard("finding_observations", "closed_once", "UPDATE", "close_once")
    for table in ("waivers", "waiver_revocations"):
        _guard(table, "append_only", "UPDATE OR DELETE", "refuse_change")
    for table in ("finding_observations", "waivers", "waiver_revocations"):
        _guard(table, "never_emptied", "TRUNCATE", "refuse_change", each="STATEMENT")
    for table, events in _TOLD.items():
        op.execute(
            f"""
            CREATE FUNCTION {AUDIT}.tell_{table}() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                INSERT INTO {AUDIT}.custody_events (kind, happened_at, detail) {events};
                RETURN NULL;
            END $$
            """
        )
        op.execute(
            f"CREATE TRIGGER tell_{table} AFTER INSERT ON {AUDIT}.{table} REFERENCING NEW TABLE AS written "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {AUDIT}.tell_{table}()"
        )


def _guard(table: str, name: str, change: str, function: str, *, each: str = "ROW") -> None:
    op.execute(
        f"CREATE TRIGGER {name} BEFORE {change} ON {AUDIT}.{table} "
        f"FOR EACH {each} EXECUTE FUNCTION {AUDIT}.{function}()"
    )


_TOLD = {
    "waivers": """
        SELECT 'WAIVED', added_at,
               jsonb_build_object('waiver', id, 'code', code, 'start', start_day::text, 'end', end_day::text)
        FROM written
    """,
    "waiver_revocations": """
        SELECT 'WAIVER_REVOKED', revoked_at, jsonb_build_object('waiver', waiver_id) FROM written
    """,
}
