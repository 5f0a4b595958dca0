"""Jobs: the slots that are watched, one run for each slot, its steps, and the notices to people."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

AUDIT = "audit"


def _text(name: str, *, empty: bool = False) -> sa.Column:
    return sa.Column(name, sa.Text, nullable=empty)


def _moment(name: str, *, empty: bool = False) -> sa.Column:
    return sa.Column(name, TIMESTAMP(timezone=True), nullable=empty)


def _count(name: str) -> sa.Column:
    return sa.Column(name, sa.BigInteger, nullable=False)


def _json(name: str, *, empty: bool = False) -> sa.Column:
    return sa.Column(name, JSONB, nullable=empty)


def upgrade() -> None:
    """Create the tables; the key of job and slot lets no slot have two runs."""
    op.create_table(
        "job_schedules",
        sa.Column("job", sa.Text, primary_key=True),
        _text("schedule"),
        _moment("watched_until"),
        schema=AUDIT,
    )
    op.create_table(
        "job_runs",
        sa.Column("id", sa.Uuid, primary_key=True),
        _text("job"),
        _moment("slot"),
        _text("status"),
        sa.Column("holder", sa.Uuid),
        _json("held_by", empty=True),
        _moment("lease_until", empty=True),
        _count("starts"),
        _moment("started_at", empty=True),
        _moment("ended_at", empty=True),
        _text("failure", empty=True),
        _text("reason", empty=True),
        _text("started_by", empty=True),
        _text("host", empty=True),
        _json("versions"),
        _json("counts"),
        _json("files"),
        _text("folder", empty=True),
        _text("seal", empty=True),
        _moment("purged_at", empty=True),
        schema=AUDIT,
    )
    op.create_index("job_runs_job_slot_key", "job_runs", ["job", "slot"], unique=True, schema=AUDIT)
    op.create_table(
        "job_steps",
        sa.Column("run_id", sa.Uuid, sa.ForeignKey(f"{AUDIT}.job_runs.id"), primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        _count("position"),
        _text("target"),
        _json("parameters"),
        _text("status"),
        _count("tries"),
        _moment("started_at"),
        _moment("ended_at"),
        _text("failure", empty=True),
        _text("reason", empty=True),
        _json("counts"),
        _json("files"),
        schema=AUDIT,
    )
    op.create_table(
        "job_notices",
        sa.Column("id", sa.Uuid, primary_key=True),
        _text("job"),
        _moment("slot"),
        _text("kind"),
        _text("channel"),
        _json("content"),
        _moment("created_at"),
        _moment("delivered_at", empty=True),
        _count("tries"),
        _text("problem", empty=True),
        schema=AUDIT,
    )
