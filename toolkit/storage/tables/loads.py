"""The tables of client loads: the files that were loaded, and the hashes of clients while loads run."""

import sqlalchemy as sa
from sqlalchemy import Column, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB

from toolkit.storage.tables.metadata import moment, required, table

load_keys = table(
    "load_keys",
    Column("number", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    Column("hashes", sa.LargeBinary, nullable=False),
)
"""The hashes of the clients that a load registered, for the loads that run beside it; removed after them."""

load_batches = table(
    "load_batches",
    Column("id", Uuid, primary_key=True),
    Column("fingerprint", Text, nullable=False, unique=True),
    Column("sha256", Text, nullable=False),
    Column("options", JSONB, nullable=False),
    Column("source", Text, nullable=False),
    *required(sa.BigInteger, "accepted", "rejected", "skipped"),
    Column("loaded_at", moment, nullable=False),
)
"""Each file of clients that was loaded, written in the same transaction as its rows.

``fingerprint`` stands for the contents (``sha256``) together with the ``options`` that change what becomes of
them. The clients of a batch have its ``loaded_at`` as their ``created_at``.
"""
