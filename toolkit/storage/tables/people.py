"""The tables of decisions and access: withdrawals, requests, openings, partners and revoked tokens."""

import sqlalchemy as sa
from sqlalchemy import Column, Index, Text, Uuid, text

from toolkit.storage.tables.metadata import columns, moment, numbered, table

withdrawals = table(
    "withdrawals",
    Column("evidence_id", Uuid, primary_key=True),
    *columns(Text, "reason", "withdrawn_by", "approved_by", moment, "withdrawn_at", Text, "account?"),
)
"""Evidence records taken out of the count, with the two people who decided it; the object stays.

``account`` is who was signed in to the system when it was done; it was not noted in the first rows.
"""

evidence_requests = table(
    "evidence_requests",
    Column("evidence_id", Uuid, primary_key=True),
    *columns(Text, "account", "partner?"),
)
"""The account that asked for each evidence record: a token's subject, or an account of the system.

``partner`` is the one that the subject acted for, and empty where an operator of the toolkit asked. Records that
were stored before this table, or by another system, have no row.
"""

partner_subjects = table(
    "partner_subjects",
    numbered(),
    *columns(Text, "subject", "partner", moment, "added_at", Text, "added_by", moment, "revoked_at?"),
    *columns(Text, "revoked_by?"),
    Index("partner_subjects_current_idx", "subject", unique=True, postgresql_where=text("revoked_at IS NULL")),
)
"""The partner that the subject of a token acts for, where the token itself does not name one."""

token_revocations = table(
    "token_revocations",
    numbered(),
    *columns(Text, "token_id?", "subject?", "reason", moment, "revoked_at", Text, "revoked_by"),
    sa.CheckConstraint("num_nonnulls(token_id, subject) = 1", name="token_revocations_one_check"),
)
"""Bearer tokens that are refused before they expire: one by its id, or all that a subject had until then."""

evidence_openings = table(
    "evidence_openings",
    Column("id", Uuid, primary_key=True),
    *columns(Uuid, "evidence_id", Text, "reason", "opened_by", moment, "opened_at", "expires_at"),
    *columns(Text, "account?"),
)
"""Links to evidence files that were handed out, each with who asked for it, the account signed in, and why."""
