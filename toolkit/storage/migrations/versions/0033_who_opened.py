"""The custody log proves who opened a file and why, and tells the completion of a sale by an index."""

from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

AUDIT = "audit"


def upgrade() -> None:
    """Have each opening tell hashes of its people and its reason, as a withdrawal does; index the completions."""
    op.execute(_OPENED)
    op.execute(
        f"CREATE INDEX custody_events_completed_idx ON {AUDIT}.custody_events ((detail ->> 'sale')) "
        "WHERE kind = 'COMPLETED'"
    )


def _hash(column: str) -> str:
    return f"encode(sha256(convert_to({column}, 'UTF8')), 'hex')"


_OPENED = f"""
    CREATE OR REPLACE FUNCTION {AUDIT}.tell_opened() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO {AUDIT}.custody_events (kind, happened_at, detail)
        SELECT 'OPENED', opened_at, jsonb_strip_nulls(jsonb_build_object(
                   'evidence', evidence_id, 'opening', id, 'by', {_hash("opened_by")},
                   'account', {_hash("account")}, 'reason', {_hash("reason")}))
        FROM written;
        RETURN NULL;
    END $$
"""  # noqa: S608
"""The names and the reason stand in ``evidence_openings``."""
