"""The tables of jobs and of client loads: slots, runs, steps and notices; loaded files and their hashes."""

import sqlalchemy as sa
from sqlalchemy import Column, ForeignKey, Index, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB

from toolkit.storage.tables.metadata import columns, moment, table

job_schedules = table(
    "job_schedules",
    Column("job", Text, primary_key=True),
    *columns(Text, "schedule", moment, "watched_until"),
)
"""Each job that was ever started or watched. Slots up to ``watched_until`` are accounted for: run, or missed.

A job is watched from the moment at which it, or its present schedule, was first seen.
"""

job_runs = table(
    "job_runs",
    Column("id", Uuid, primary_key=True),
    *columns(Text, "job", moment, "slot", Text, "status", Uuid, "holder?", JSONB, "held_by?"),
    *columns(moment, "lease_until?", sa.BigInteger, "starts", moment, "started_at?", "ended_at?"),
    *columns(Text, "failure?", "reason?", "started_by?", "host?", JSONB, "versions", "counts", "files"),
    *columns(Text, "folder?", "seal?", moment, "purged_at?"),
    Index("job_runs_job_slot_key", "job", "slot", unique=True),
)
"""The run of each slot of each job: one row, whoever starts it and however often.

``holder`` names the start that works on it; it holds the run while ``lease_until`` lies ahead by the clock of the
database, and ``held_by`` tells which process of which machine that is. ``counts`` are numbers only, ``files`` are
names with sizes and SHA-256. ``purged_at``: the files were deleted, as their retention demands.
"""

job_steps = table(
    "job_steps",
    Column("run_id", Uuid, ForeignKey("audit.job_runs.id"), primary_key=True),
    Column("name", Text, primary_key=True),
    *columns(sa.BigInteger, "position", Text, "target", JSONB, "parameters", Text, "status"),
    *columns(sa.BigInteger, "tries", moment, "started_at", "ended_at", Text, "failure?", "reason?"),
    *columns(JSONB, "counts", "files"),
)
"""The steps of a run that ended, done or failed; those that are done are not done again."""

job_notices = table(
    "job_notices",
    Column("id", Uuid, primary_key=True),
    *columns(Text, "job", moment, "slot", Text, "kind", "channel", JSONB, "content"),
    *columns(moment, "created_at", "delivered_at?", sa.BigInteger, "tries", Text, "problem?"),
)
"""Notices to people, one a channel, written with what they tell; ``problem`` is why the last try failed."""

load_keys = table(
    "load_keys",
    Column("number", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    *columns(sa.LargeBinary, "hashes"),
)
"""The hashes of the clients that a load registered, for the loads that run beside it; removed after them."""

load_batches = table(
    "load_batches",
    Column("id", Uuid, primary_key=True),
    Column("fingerprint", Text, nullable=False, unique=True),
    *columns(Text, "sha256", JSONB, "options", Text, "source"),
    *columns(sa.BigInteger, "accepted", "rejected", "skipped", moment, "loaded_at"),
)
"""Each file of clients that was loaded, written in the same transaction as its rows.

``fingerprint`` stands for the contents (``sha256``) together with the ``options`` that change what becomes of
them. The clients of a batch have its ``loaded_at`` as their ``created_at``.
"""
