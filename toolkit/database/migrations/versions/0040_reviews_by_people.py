"""Keep which files were drawn to be looked at by people, and what they answered."""

from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run the statements."""
    op.execute(
        """
        CREATE TABLE audit.review_draws (
            id uuid CONSTRAINT review_draws_pkey PRIMARY KEY,
            as_of timestamptz NOT NULL, seed bigint NOT NULL, plan jsonb NOT NULL, scorecard jsonb NOT NULL,
            drawn_by text NOT NULL, drawn_at timestamptz NOT NULL
        )
        """
    )
    op.execute(
        """
        CREATE TABLE audit.review_turns (
            id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT review_turns_pkey PRIMARY KEY,
            draw_id uuid NOT NULL CONSTRAINT review_turns_draw_id_fkey REFERENCES audit.review_draws (id),
            evidence_id uuid NOT NULL,
            object_id bigint NOT NULL
                CONSTRAINT review_turns_object_id_fkey REFERENCES audit.object_observations (id),
            turn bigint NOT NULL, sale_id text NOT NULL, partner text, evidence_type text NOT NULL,
            added_at timestamptz NOT NULL, claimed_by text, claimed_until timestamptz
        )
        """
    )
    op.execute("CREATE UNIQUE INDEX review_turns_file_key ON audit.review_turns (draw_id, evidence_id, turn)")
    op.execute("CREATE INDEX review_turns_object_id_idx ON audit.review_turns (object_id)")
    op.execute(
        """
        CREATE TABLE audit.review_answers (
            id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT review_answers_pkey PRIMARY KEY,
            turn_id bigint NOT NULL CONSTRAINT review_answers_turn_id_key UNIQUE
                CONSTRAINT review_answers_turn_id_fkey REFERENCES audit.review_turns (id),
            reviewer text NOT NULL, person text NOT NULL, account text, answers jsonb NOT NULL,
            failures text[] NOT NULL, comment text, answered_at timestamptz NOT NULL, ends_on date
        )
        """
    )
