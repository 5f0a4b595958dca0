"""The tables of the custody log: events, seals and epochs."""

import sqlalchemy as sa
from sqlalchemy import Column, Index, Text, text
from sqlalchemy.dialects.postgresql import JSONB

from toolkit.storage.tables.metadata import columns, moment, numbered, table

_TRANSACTION = text("(pg_current_xact_id())::text::bigint")
_EPOCH = text("coalesce(nullif(current_setting('audit.epoch', true), ''), '1')::integer")

custody_events = table(
    "custody_events",
    numbered(),
    Column("transaction", sa.BigInteger, nullable=False, server_default=_TRANSACTION),
    *columns(Text, "kind", moment, "happened_at", JSONB, "detail"),
    Column("epoch", sa.Integer, nullable=False, server_default=_EPOCH),
    Index("custody_events_order_idx", "epoch", "transaction", "id"),
)
"""Events of evidence, mostly written by triggers in the same transaction: ids, hashes and times only."""

custody_seals = table(
    "custody_seals",
    Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    *columns(moment, "sealed_at", sa.BigInteger, "events", "last_transaction", "last_id"),
    *columns(sa.LargeBinary, "digests", Text, "previous", "hash"),
    Column("last_epoch", sa.Integer, nullable=False, server_default="1"),
    *columns(Text, "key_id?"),
)
"""The chain over the events: each seal covers some and the hash of the seal before."""

custody_epochs = table(
    "custody_epochs",
    Column("number", sa.Integer, primary_key=True, autoincrement=False),
    *columns(sa.BigInteger, "cluster?", moment, "opened_at"),
)
"""The clusters that the log was written in, one after the other; each has transactions of its own."""
