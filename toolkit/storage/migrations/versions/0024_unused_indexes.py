"""Drop the indexes by which no query looks anything up; each cost time for every row that was written."""

from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Drop them."""
    for name in (
        "content_checks_sha256_idx",
        "evidence_openings_evidence_id_idx",
        "finding_observations_finding_id_idx",
    ):
        op.execute(f"DROP INDEX audit.{name}")
