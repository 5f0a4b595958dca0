"""Find the events of one evidence record, or of one observed object, without going through the whole log."""

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Index the events of any kind by their record, where only the issued ones were, and by their object."""
    op.execute("DROP INDEX audit.custody_events_issued_idx")
    for name, event in (
        ("evidence", "(detail ->> 'evidence')::uuid"),
        ("object", "(detail ->> 'observation')::bigint"),
    ):
        op.execute(
            f"CREATE INDEX custody_events_{name}_idx ON audit.custody_events (({event})) WHERE {event} IS NOT NULL"
        )
