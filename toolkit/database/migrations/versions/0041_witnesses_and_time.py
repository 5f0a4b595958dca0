"""Keep the signatures of witnesses under states of the custody log, and the time stamps of authorities."""

from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run the statements."""
    op.execute(
        """
        CREATE TABLE audit.log_cosignatures (
            size bigint CONSTRAINT log_cosignatures_size_fkey REFERENCES audit.log_checkpoints (size),
            witness text, line text NOT NULL, signed_at timestamptz NOT NULL, added_at timestamptz NOT NULL,
            CONSTRAINT log_cosignatures_pkey PRIMARY KEY (size, witness)
        )
        """
    )
    op.execute(
        """
        CREATE TABLE audit.log_timestamps (
            id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT log_timestamps_pkey PRIMARY KEY,
            size bigint NOT NULL
                CONSTRAINT log_timestamps_size_fkey REFERENCES audit.log_checkpoints (size),
            token bytea NOT NULL, added_at timestamptz NOT NULL
        )
        """
    )
