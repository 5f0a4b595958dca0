"""The tables of audits: their totals, the lives of findings, waivers, and the judgement of each sale."""

import sqlalchemy as sa
from sqlalchemy import Column, ForeignKey, Index, Text, Uuid, text

from toolkit.storage.tables.metadata import columns, life, moment, numbered, table

audit_runs = table(
    "audit_runs",
    Column("id", Uuid, primary_key=True),
    *columns(moment, "as_of", "ran_at", sa.BigInteger, "sales", "compliant", "incomplete", "conflict"),
    *columns(sa.Boolean, "with_files?"),
)
"""Each audit that was made, with its totals."""

finding_observations = table(
    "finding_observations",
    numbered(),
    *columns(Uuid, "finding_id", Text, "code", "sale_id?", "partner?", "utility_group?"),
    *life("finding_observations", "finding_id"),
    Index(None, "sale_id"),
    Index("finding_observations_ended_idx", "finding_id", postgresql_where=text("gone_at IS NOT NULL")),
)
"""Each stretch of a finding's life: from the audit that saw it first until the audit that did not see it any more.

Partner and utility group are those of the sale when the stretch began.
"""

judged_sales = table(
    "judged_sales",
    Column("sale_id", Text, primary_key=True),
    *columns(Uuid, "client_id?", Text, "utility_group", sa.Boolean, "is_client_financial_responsible?"),
    *columns(Text, "partner?", moment, "created_at", "completed_at?", "oldest_request?"),
    *columns(sa.BigInteger, "unexamined", "verified", "first_bytes", "never", "unreadable"),
    *columns(Text, "status", "missing", "reasons", "problems", "counted", sa.Boolean, "unusable"),
    *columns(moment, "stands_until?"),
    Index(None, "sale_id", postgresql_where=text("unusable")),
    Index(
        "judged_sales_told_idx",
        "sale_id",
        postgresql_include=["partner", "utility_group", "status", "created_at"],
        postgresql_where=text("status <> 'compliant' OR problems <> '' OR client_id IS NULL"),
    ),
    Index(
        "judged_sales_completed_idx",
        *("partner", "created_at", "completed_at"),
        postgresql_where=text("completed_at IS NOT NULL"),
    ),
    Index(None, "stands_until", postgresql_where=text("stands_until IS NOT NULL")),
    prefixes=["UNLOGGED"],
)
"""The judgement of each sale by the last audit of now, so that the next one judges only what changed since.

It can be made again from the observations at any time. After a crash of the server it is empty.
"""

judgement = table(
    "judgement",
    Column("only", sa.Boolean, primary_key=True),
    *columns(moment, "judged_at", Text, "fingerprint", "counts"),
    prefixes=["UNLOGGED"],
)
"""At most one row: the moment of ``judged_sales``, a fingerprint of the statements that judged and counted them,
and the counts as JSON."""

waivers = table(
    "waivers",
    Column("id", Uuid, primary_key=True),
    *columns(Text, "sale_id?", "partner?", "code?", "reason", "owner", "approved_by"),
    *columns(sa.Date, "start_day", "end_day", moment, "added_at", Text, "account?"),
)
"""Findings that are accepted for a time; a sale, partner or code that is empty stands for any.

``account`` is who was signed in, here and below; it was not noted in the first rows.
"""

waiver_revocations = table(
    "waiver_revocations",
    Column("waiver_id", Uuid, ForeignKey(waivers.c.id), primary_key=True),
    *columns(Text, "reason", "revoked_by", moment, "revoked_at", Text, "account?"),
)
"""Waivers that were revoked before their end."""
