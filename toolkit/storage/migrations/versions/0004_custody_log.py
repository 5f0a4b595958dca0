"""The custody log: events written by whoever writes what they tell, and the seals that chain them.

Where the toolkit owns the table, a trigger writes the events, so that nobody can forget to. The service's own
tables get no trigger: issuing credentials writes its events itself (``toolkit.operations.prove.custody_log``).
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

AUDIT = "audit"

TRANSACTION = "(pg_current_xact_id())::text::bigint"


def upgrade() -> None:
    """Create events, seals and triggers; what happened before is not told."""
    op.create_table(
        "custody_events",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("transaction", sa.BigInteger, nullable=False, server_default=sa.text(TRANSACTION)),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("happened_at", TIMESTAMP(timezone=True), nullable=False),
        sa.Column("detail", JSONB, nullable=False),
        schema=AUDIT,
    )
    op.create_index("custody_events_transaction_id_idx", "custody_events", ["transaction", "id"], schema=AUDIT)
    op.create_table(
        "custody_seals",
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("sealed_at", TIMESTAMP(timezone=True), nullable=False),
        sa.Column("events", sa.BigInteger, nullable=False),
        sa.Column("last_transaction", sa.BigInteger, nullable=False),
        sa.Column("last_id", sa.BigInteger, nullable=False),
        sa.Column("digests", sa.LargeBinary, nullable=False),
        sa.Column("previous", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        schema=AUDIT,
    )
    for table in ("custody_events", "custody_seals"):
        op.execute(
            f"CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {AUDIT}.{table} "
            f"FOR EACH ROW EXECUTE FUNCTION {AUDIT}.refuse_change()"
        )
    for name, table, change, events in _TOLD:
        op.execute(
            f"""
            CREATE FUNCTION {AUDIT}.tell_{name}() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                INSERT INTO {AUDIT}.custody_events (kind, happened_at, detail) {events};
                RETURN NULL;
            END $$
            """
        )
        op.execute(
            f"CREATE TRIGGER tell_{name} AFTER {change} ON {AUDIT}.{table} REFERENCING NEW TABLE AS written "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {AUDIT}.tell_{name}()"
        )


_KEY_HASH = "encode(sha256(convert_to(key, 'UTF8')), 'hex')"
"""A key ends with a file name, so the log holds its hash."""


def _moment(column: str) -> str:
    """A time as text that does not depend on the zone of whoever writes it."""
    return f"""to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""


_TOLD = (
    (
        "uploaded",
        "object_observations",
        "INSERT",
        f"""
        SELECT 'UPLOADED', seen_at,
               jsonb_build_object('observation', id, 'key', {_KEY_HASH}, 'size', size, 'etag', etag,
                                  'lastModified', {_moment("last_modified")})
        FROM written
        ORDER BY id
        """,  # noqa: S608  # made of constants
    ),
    (
        "gone",
        "object_observations",
        "UPDATE",
        f"""
        SELECT 'GONE', gone_at, jsonb_build_object('observation', id, 'key', {_KEY_HASH})
        FROM written
        ORDER BY id
        """,  # noqa: S608
    ),
    (
        "verified",
        "content_checks",
        "INSERT",
        """
        SELECT 'VERIFIED', checked_at,
               jsonb_build_object('observation', observation_id, 'sha256', sha256, 'kind', kind,
                                  'problem', problem)
        FROM written
        WHERE sha256 IS NOT NULL
        ORDER BY id
        """,
    ),
    (
        "withdrawn",
        "withdrawals",
        "INSERT",
        "SELECT 'WITHDRAWN', withdrawn_at, jsonb_build_object('evidence', evidence_id) FROM written",
    ),
    (
        "audited",
        "audit_runs",
        "INSERT",
        f"""
        SELECT 'AUDITED', ran_at,
               jsonb_build_object('run', id, 'asOf', {_moment("as_of")}, 'sales', sales, 'compliant', compliant,
                                  'incomplete', incomplete, 'conflict', conflict)
        FROM written
        """,  # noqa: S608
    ),
)
"""What is told by a trigger: its name, the table, what is done to it, and the events."""
