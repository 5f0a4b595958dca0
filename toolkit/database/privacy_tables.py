"""Define the tables of the rights of persons: holds, requests, erasures, and the keys that these destroy."""

import sqlalchemy as sa
from sqlalchemy import Column, ForeignKey, Index, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB

from toolkit.database.tables import TRANSACTION, append_only, columns, moment

legal_holds = append_only(
    "legal_holds",
    Column("id", Uuid, primary_key=True),
    *columns(Text, "sale_id", "basis", "held_by", sa.Date, "until?", moment, "held_at", Text, "account?"),
    Index(None, "sale_id"),
)
"""Sales whose data must not be erased, with the basis; ``until`` is the first day on which a hold is over."""

hold_releases = append_only(
    "hold_releases",
    Column("hold_id", Uuid, ForeignKey(legal_holds.c.id), primary_key=True),
    *columns(Text, "reason", "released_by", moment, "released_at", Text, "account?"),
)
"""Holds that were released before their end."""

privacy_requests = append_only(
    "privacy_requests",
    Column("id", Uuid, primary_key=True),
    *columns(Text, "subject", "right", sa.Date, "received_on", "due_on", moment, "added_at", Text, "account?"),
)
"""Requests of persons; ``subject`` is the keyed hash of a CPF."""

privacy_answers = append_only(
    "privacy_answers",
    Column("request_id", Uuid, ForeignKey(privacy_requests.c.id), primary_key=True),
    *columns(Text, "outcome", "basis", "answered_by", moment, "answered_at", Text, "account?"),
)
"""The answers to requests of persons."""

erasures = append_only(
    "erasures",
    Column("id", Uuid, primary_key=True),
    Column("transaction", sa.BigInteger, nullable=False, server_default=TRANSACTION),
    *columns(JSONB, "sales", sa.BigInteger, "clients", "records", "objects", Text, "basis", "erased_by"),
    *columns(Text, "approved_by", moment, "erased_at", Text, "account?"),
)
"""Erasures of personal data: the ids of the sales, counts, and the two people who decided it.

Only the transaction that writes such a row may change histories, as ``triggers.sql`` says.
"""

sale_keys = append_only(
    "sale_keys",
    Column("sale_id", Text, nullable=False, unique=True),
    *columns(sa.LargeBinary, "wrapped?"),
)
"""The random key of each sale, wrapped by a key outside of the database; an erasure destroys it."""
