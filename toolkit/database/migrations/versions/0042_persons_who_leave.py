"""Keep holds, requests of persons and erasures; a random salt for the hashes of each event."""

from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run the statements."""
    # Events that are sealed have none: their entries were made without.
    op.execute("ALTER TABLE audit.custody_events ADD COLUMN salt uuid")
    op.execute("ALTER TABLE audit.custody_events ALTER COLUMN salt SET DEFAULT gen_random_uuid()")
    op.execute(
        """
        CREATE TABLE audit.legal_holds (
            id uuid CONSTRAINT legal_holds_pkey PRIMARY KEY,
            sale_id text NOT NULL, basis text NOT NULL, held_by text NOT NULL, until date,
            held_at timestamptz NOT NULL, account text
        )
        """
    )
    op.execute("CREATE INDEX legal_holds_sale_id_idx ON audit.legal_holds (sale_id)")
    op.execute(
        """
        CREATE TABLE audit.hold_releases (
            hold_id uuid CONSTRAINT hold_releases_pkey PRIMARY KEY
                CONSTRAINT hold_releases_hold_id_fkey REFERENCES audit.legal_holds (id),
            reason text NOT NULL, released_by text NOT NULL, released_at timestamptz NOT NULL, account text
        )
        """
    )
    op.execute(
        """
        CREATE TABLE audit.privacy_requests (
            id uuid CONSTRAINT privacy_requests_pkey PRIMARY KEY,
            subject text NOT NULL, "right" text NOT NULL, received_on date NOT NULL, due_on date NOT NULL,
            added_at timestamptz NOT NULL, account text
        )
        """
    )
    op.execute(
        """
        CREATE TABLE audit.privacy_answers (
            request_id uuid CONSTRAINT privacy_answers_pkey PRIMARY KEY
                CONSTRAINT privacy_answers_request_id_fkey REFERENCES audit.privacy_requests (id),
            outcome text NOT NULL, basis text NOT NULL, answered_by text NOT NULL,
            answered_at timestamptz NOT NULL, account text
        )
        """
    )
    op.execute(
        """
        CREATE TABLE audit.erasures (
            id uuid CONSTRAINT erasures_pkey PRIMARY KEY,
            transaction bigint NOT NULL DEFAULT (pg_current_xact_id())::text::bigint,
            sales jsonb NOT NULL, clients bigint NOT NULL, records bigint NOT NULL, objects bigint NOT NULL,
            basis text NOT NULL, erased_by text NOT NULL, approved_by text NOT NULL,
            erased_at timestamptz NOT NULL, account text
        )
        """
    )
