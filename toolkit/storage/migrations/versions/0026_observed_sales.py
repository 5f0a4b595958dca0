"""The custody log tells of the sales that were observed: payer and group decide what evidence a sale needs."""

from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

AUDIT = "audit"

_OBSERVED = """
    SELECT 'SALES_OBSERVED', {at},
           jsonb_build_object('first', min(id), 'last', max(id), 'count', count(*), 'sales', encode(sha256(
               convert_to(string_agg(ROW(
                   id, sale_id, client_id, utility_group, is_client_financial_responsible, partner,
                   extract(epoch FROM created_at), extract(epoch FROM completed_at), extract(epoch FROM seen_at)
               )::text, '' ORDER BY id), 'UTF8')), 'hex'))
    FROM {rows}
    GROUP BY id / 1000
    ORDER BY min(id)
"""
"""One event for a thousand observations at most: for each sale one would be a second copy of the sales."""

_GONE = """
    SELECT 'SALE_GONE', gone_at, jsonb_build_object('observation', id)
    FROM written
    ORDER BY id
"""


def upgrade() -> None:
    """Tell of the observations that are there, as they are, and of all later ones."""
    told = f"INSERT INTO {AUDIT}.custody_events (kind, happened_at, detail) "
    # Whatever is stamped from now on comes after whatever is there.
    op.execute("UPDATE audit.observation_clock SET stands_at = stands_at + interval '1 microsecond'")
    stands_at = "(SELECT stands_at FROM audit.observation_clock)"
    op.execute(told + _OBSERVED.format(at=stands_at, rows=f"{AUDIT}.sale_observations"))
    for name, change, events in (
        ("sales_observed", "INSERT", _OBSERVED.format(at="max(seen_at)", rows="written")),
        ("sale_gone", "UPDATE", _GONE),
    ):
        op.execute(
            f"""
            CREATE FUNCTION {AUDIT}.tell_{name}() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                {told} {events};
                RETURN NULL;
            END $$
            """
        )
        op.execute(
            f"CREATE TRIGGER tell_{name} AFTER {change} ON {AUDIT}.sale_observations "
            f"REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION {AUDIT}.tell_{name}()"
        )
