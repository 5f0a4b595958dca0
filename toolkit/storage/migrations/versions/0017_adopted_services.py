"""The service that a database belongs to: its cluster, its database, and the relations that are read."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

AUDIT = "audit"


def upgrade() -> None:
    """Create the table; the next look at the sales writes its first row."""
    op.create_table(
        "adopted_services",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("cluster", sa.BigInteger),
        sa.Column("database", sa.BigInteger, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("relations", JSONB, nullable=False),
        sa.Column("adopted_at", TIMESTAMP(timezone=True), nullable=False),
        schema=AUDIT,
    )
    for name, change, each in (
        ("append_only", "UPDATE OR DELETE", "ROW"),
        ("never_emptied", "TRUNCATE", "STATEMENT"),
    ):
        op.execute(
            f"CREATE TRIGGER {name} BEFORE {change} ON {AUDIT}.adopted_services "
            f"FOR EACH {each} EXECUTE FUNCTION {AUDIT}.refuse_change()"
        )
    op.execute(_TELL)
    op.execute(
        f"CREATE TRIGGER tell_adopted AFTER INSERT ON {AUDIT}.adopted_services REFERENCING NEW TABLE AS written "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {AUDIT}.tell_service_adopted()"
    )


_TELL = f"""
    CREATE FUNCTION {AUDIT}.tell_service_adopted() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO {AUDIT}.custody_events (kind, happened_at, detail)
        SELECT 'SERVICE_ADOPTED', adopted_at,
               jsonb_build_object('cluster', cluster, 'database', database, 'relations', relations)
        FROM written
        WHERE EXISTS (SELECT FROM {AUDIT}.adopted_services AS former WHERE former.id < written.id);
        RETURN NULL;
    END $$
"""  # noqa: S608  # made of constants
"""The first one is no change; each later one was confirmed by somebody."""
