"""Put the events of the custody log into a Merkle tree; its first entry is the last seal of the chain."""

from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run the statements."""
    op.execute(
        """
        CREATE TABLE audit.log_entries (
            index bigint CONSTRAINT log_entries_pkey PRIMARY KEY,
            event bigint NOT NULL, transaction bigint NOT NULL, epoch integer NOT NULL, entry bytea NOT NULL
        )
        """
    )
    op.execute("CREATE INDEX log_entries_event_idx ON audit.log_entries (event)")
    op.execute(
        """
        CREATE TABLE audit.log_tiles (
            level integer, number bigint, hashes bytea NOT NULL,
            CONSTRAINT log_tiles_pkey PRIMARY KEY (level, number)
        )
        """
    )
    op.execute(
        """
        CREATE TABLE audit.log_checkpoints (
            size bigint CONSTRAINT log_checkpoints_pkey PRIMARY KEY,
            note text NOT NULL, vkey text NOT NULL, issued_at timestamptz NOT NULL
        )
        """
    )
    # Before all events, which are sealed anew: whoever kept the last seal of the chain finds it here.
    op.execute(
        """
        INSERT INTO audit.log_entries (index, event, transaction, epoch, entry)
        SELECT 0, 0, 0, 0, convert_to(
            format(
                '{"at":"%s","detail":{"hash":"%s","seal":%s},"id":0,"kind":"CHAIN_ENDED"}',
                to_char(sealed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US+00:00'), hash, number
            ),
            'UTF8'
        )
        FROM audit.custody_seals ORDER BY number DESC LIMIT 1
        """.replace(":", "\\:")  # none of them begins a parameter
    )
    op.execute("INSERT INTO audit.log_tiles SELECT 0, 0, sha256('\\x00'::bytea || entry) FROM audit.log_entries")
    op.execute("DROP TABLE audit.custody_seals")
