"""Epochs of the custody log, keyed hashes, and who withdrew a record and why.

The events of a transaction are ordered by its number, which starts anew where a dump is restored in another
cluster. Each cluster has an epoch of its own, so the order survives; the first event there opens it.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

AUDIT = "audit"


def upgrade() -> None:
    """Everything so far is of the first epoch, and its hashes have no key."""
    op.create_table(
        "custody_epochs",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("cluster", sa.BigInteger),
        sa.Column("opened_at", TIMESTAMP(timezone=True), nullable=False),
        schema=AUDIT,
    )
    for name, change, each in (
        ("append_only", "UPDATE OR DELETE", "ROW"),
        ("never_emptied", "TRUNCATE", "STATEMENT"),
    ):
        op.execute(
            f"CREATE TRIGGER {name} BEFORE {change} ON {AUDIT}.custody_epochs "
            f"FOR EACH {each} EXECUTE FUNCTION {AUDIT}.refuse_change()"
        )
    epoch = sa.Column("epoch", sa.Integer, nullable=False, server_default="1")
    op.add_column("custody_events", epoch, schema=AUDIT)
    op.execute(
        f"ALTER TABLE {AUDIT}.custody_events "
        "ALTER epoch SET DEFAULT coalesce(nullif(current_setting('audit.epoch', true), ''), '1')::integer"
    )
    op.create_index("custody_events_order_idx", "custody_events", ["epoch", "transaction", "id"], schema=AUDIT)
    op.drop_index("custody_events_transaction_id_idx", "custody_events", schema=AUDIT)
    last = sa.Column("last_epoch", sa.Integer, nullable=False, server_default="1")
    op.add_column("custody_seals", last, schema=AUDIT)
    op.add_column("custody_seals", sa.Column("key_id", sa.Text), schema=AUDIT)
    for statement in (_CLUSTER, _FIRST, _OPEN, _OPEN_TRIGGER, _WITHDRAWN):
        op.execute(statement)


_CLUSTER = f"""
    CREATE FUNCTION {AUDIT}.cluster() RETURNS bigint LANGUAGE plpgsql STABLE AS $$
    BEGIN
        RETURN (SELECT system_identifier FROM pg_control_system());
    EXCEPTION WHEN insufficient_privilege THEN
        RETURN NULL;
    END $$
"""  # noqa: S608  # made of constants, as are the others

_FIRST = f"INSERT INTO {AUDIT}.custody_epochs (number, cluster, opened_at) VALUES (1, {AUDIT}.cluster(), now())"  # noqa: S608

_OPEN = f"""
    CREATE FUNCTION {AUDIT}.open_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        newest {AUDIT}.custody_epochs;
        sealed bigint;
        here bigint := {AUDIT}.cluster();
    BEGIN
        SELECT * INTO newest FROM {AUDIT}.custody_epochs ORDER BY number DESC LIMIT 1;
        SELECT last_transaction INTO sealed FROM {AUDIT}.custody_seals
        WHERE last_epoch = newest.number ORDER BY number DESC LIMIT 1;
        IF newest.cluster <> here OR pg_current_xact_id()::text::bigint <= sealed THEN
            newest.number := newest.number + 1;
            INSERT INTO {AUDIT}.custody_epochs (number, cluster, opened_at)
            VALUES (newest.number, here, now()) ON CONFLICT DO NOTHING;
            IF FOUND THEN
                INSERT INTO {AUDIT}.custody_events (kind, happened_at, detail)
                VALUES ('EPOCH_OPENED', now(), jsonb_build_object('epoch', newest.number));
            END IF;
        END IF;
        PERFORM set_config('audit.epoch', newest.number::text, true);
        RETURN NULL;
    END $$
"""  # noqa: S608  # made of constants
"""Sealed is only what no older transaction can add to: a number not above it comes from another cluster."""

_OPEN_TRIGGER = f"""
    CREATE TRIGGER open_epoch BEFORE INSERT ON {AUDIT}.custody_events
    FOR EACH STATEMENT EXECUTE FUNCTION {AUDIT}.open_epoch()
"""


def _hash(column: str) -> str:
    return f"encode(sha256(convert_to({column}, 'UTF8')), 'hex')"


_WITHDRAWN = f"""
    CREATE OR REPLACE FUNCTION {AUDIT}.tell_withdrawn() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO {AUDIT}.custody_events (kind, happened_at, detail)
        SELECT 'WITHDRAWN', withdrawn_at, jsonb_strip_nulls(jsonb_build_object(
                   'evidence', evidence_id, 'by', {_hash("withdrawn_by")}, 'approvedBy', {_hash("approved_by")},
                   'account', {_hash("account")}, 'reason', {_hash("reason")}))
        FROM written;
        RETURN NULL;
    END $$
"""  # noqa: S608
"""The names and the reason stand in ``withdrawals``; the log proves that they are the same still."""
