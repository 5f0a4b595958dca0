"""Define the tables: the service's in ``audit_service``, the toolkit's in ``audit``.

Nothing here creates anything. ``audit`` is built by the migrations. ``audit_service`` holds views where a mapping
describes the service's tables; without one it is another name for ``public`` (``toolkit.storage.database``).
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from sqlalchemy import Column, ForeignKey, Index, MetaData, Table, Text, Uuid, text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP

AUDIT: Final = "audit"

SERVICE: Final = "audit_service"
"""The schema that every statement names for the service's relations."""

OWN_TABLES: Final = "public"
"""The schema of the service's relations without a mapping, where they are tables as the contract has them."""

_names = {
    "pk": "%(table_name)s_pkey",
    "fk": "%(table_name)s_%(column_0_name)s_fkey",
    "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    "uq": "%(table_name)s_%(column_0_N_name)s_key",
}

service = MetaData(schema=SERVICE, naming_convention=_names)
"""Tables of the sales service; on a shared database the toolkit only checks and uses them."""

toolkit = MetaData(schema=AUDIT, naming_convention=_names)
"""Tables of the toolkit."""

_moment = TIMESTAMP(timezone=True)


def _stamps(table: str) -> tuple[Index, Index]:
    """Return indexes that find what began or ended since a moment; rows are written as they are seen."""
    began = Index(
        f"{table}_seen_at_idx", "seen_at", postgresql_using="brin", postgresql_with={"autosummarize": "on"}
    )
    return began, Index(f"{table}_gone_at_idx", "gone_at", postgresql_where=text("gone_at IS NOT NULL"))


clients = Table(
    "clients",
    service,
    Column("id", Uuid, primary_key=True),
    Column("external_id", Text),
    Column("cpf", Text, nullable=False),
    Column("rg", Text),
    Column("number_on_dealership", Text, nullable=False),
    Column("enrollment", Text, nullable=False),
    Column("first_name", Text, nullable=False),
    Column("last_name", Text, nullable=False),
    Column("email", Text),
    Column("birthdate", sa.Date, nullable=False),
    Column("phone_number", Text),
    Column("created_at", _moment, nullable=False),
    Index(None, "cpf"),
)

addresses = Table(
    "addresses",
    service,
    Column("id", Uuid, primary_key=True),
    Column("client_id", Uuid, ForeignKey(clients.c.id), nullable=False),
    Column("neighborhood", Text, nullable=False),
    Column("installation_number", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("address_number", Text, nullable=False),
    Column("city", Text, nullable=False),
    Column("zip_code", Text, nullable=False),
    Index(None, "client_id"),
)

sales = Table(
    "sales",
    service,
    Column("id", Text, primary_key=True),
    Column("client_id", Uuid, ForeignKey(clients.c.id)),
    Column("utility_group", Text, nullable=False),
    Column("is_client_financial_responsible", sa.Boolean, nullable=False),
    Column("partner", Text),
    Column("created_at", _moment, nullable=False),
    Column("completed_at", _moment),
)

evidences = Table(
    "evidences",
    service,
    Column("id", Uuid, primary_key=True),
    Column("sale_id", Text, ForeignKey(sales.c.id), nullable=False),
    Column("file_name", Text, nullable=False),
    Column("file_format", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("evidence_type", Text, nullable=False),
    Column("object_key", Text, nullable=False, unique=True),
    Column("requested_by", Text, nullable=False),
    Column("requested_at", _moment, nullable=False),
    Column("expires_at", _moment, nullable=False),
    Index(None, "sale_id"),
)

load_keys = Table(
    "load_keys",
    toolkit,
    Column("number", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    Column("hashes", sa.LargeBinary, nullable=False),
)
"""The hashes of the clients that a load registered, for the loads that run beside it; removed after them."""

load_batches = Table(
    "load_batches",
    toolkit,
    Column("id", Uuid, primary_key=True),
    Column("fingerprint", Text, nullable=False, unique=True),
    Column("sha256", Text, nullable=False),
    Column("options", JSONB, nullable=False),
    Column("source", Text, nullable=False),
    Column("accepted", sa.BigInteger, nullable=False),
    Column("rejected", sa.BigInteger, nullable=False),
    Column("skipped", sa.BigInteger, nullable=False),
    Column("loaded_at", _moment, nullable=False),
)
"""Each file of clients that was loaded, written in the same transaction as its rows.

``fingerprint`` stands for the contents (``sha256``) together with the ``options`` that change what becomes of
them. The clients of a batch have its ``loaded_at`` as their ``created_at``.
"""

sale_observations = Table(
    "sale_observations",
    toolkit,
    Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    Column("sale_id", Text, nullable=False),
    Column("client_id", Uuid),
    Column("utility_group", Text, nullable=False),
    Column("is_client_financial_responsible", sa.Boolean),
    Column("partner", Text),
    Column("created_at", _moment, nullable=False),
    Column("completed_at", _moment),
    Column("seen_at", _moment, nullable=False),
    Column("gone_at", _moment),
    Index("sale_observations_current_idx", "sale_id", unique=True, postgresql_where=text("gone_at IS NULL")),
    *_stamps("sale_observations"),
)
"""Observations of each sale: a row holds from ``seen_at`` until ``gone_at`` (open: until now)."""

evidence_observations = Table(
    "evidence_observations",
    toolkit,
    Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    Column("evidence_id", Uuid, nullable=False),
    Column("sale_id", Text, nullable=False),
    Column("evidence_type", Text, nullable=False),
    Column("type", Text),
    Column("object_key", Text),
    Column("requested_at", _moment, nullable=False),
    Column("expires_at", _moment),
    Column("seen_at", _moment, nullable=False),
    Column("gone_at", _moment),
    Column("assumed_at", _moment),
    Index(None, "evidence_id"),
    Index(None, "sale_id"),
    *_stamps("evidence_observations"),
    Index("evidence_observations_object_key_idx", "object_key", postgresql_where=text("gone_at IS NULL")),
    Index(
        "evidence_observations_current_idx", "evidence_id", unique=True, postgresql_where=text("gone_at IS NULL")
    ),
)
"""Observations of each evidence record: a row holds from ``seen_at`` until ``gone_at`` (open: until now).

Where ``assumed_at`` is set, the record was there before any was observed: ``seen_at`` was then taken from
``requested_at``, at that moment.
"""

object_observations = Table(
    "object_observations",
    toolkit,
    Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    Column("key", Text, nullable=False),
    Column("size", sa.BigInteger, nullable=False),
    Column("etag", Text, nullable=False),
    Column("last_modified", _moment, nullable=False),
    Column("seen_at", _moment, nullable=False),
    Column("gone_at", _moment),
    Index("object_observations_current_idx", "key", unique=True, postgresql_where=text("gone_at IS NULL")),
    Column("version_id", Text),
    Column("gone_how", Text),
    Index("object_observations_key_idx", text('key COLLATE "C"')),
    *_stamps("object_observations"),
)
"""Observations of each key of the bucket; an overwritten object is a new row.

``version_id`` is known where the bucket is versioned; ``gone_how`` is a ``GoneHow``.
"""

content_checks = Table(
    "content_checks",
    toolkit,
    Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    Column("observation_id", sa.BigInteger, ForeignKey(object_observations.c.id), nullable=False),
    Column("kind", Text, nullable=False),
    Column("problem", Text),
    Column("checked_at", _moment, nullable=False),
    Column("media_type", Text),
    Column("sha256", Text),
    Column("pages", sa.BigInteger),
    Column("seconds", sa.Double),
    Column("normal_form", Text),
    Column("active_parts", sa.ARRAY(Text)),
    Column("stored_type", Text),
    Index(None, "observation_id"),
    Index(None, "checked_at", postgresql_using="brin", postgresql_with={"autosummarize": "on"}),
    Index(None, "sha256", postgresql_where=text("sha256 IS NOT NULL")),
)
"""Checks of the bytes of an observed object: ``kind`` is a ``FileKind``; ``problem`` says why it is unusable.

A first look at an object's start leaves ``sha256`` empty; a verification of all its bytes is a second row.
"""

verification_failures = Table(
    "verification_failures",
    toolkit,
    Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    Column("observation_id", sa.BigInteger, ForeignKey(object_observations.c.id), nullable=False, unique=True),
    Column("reason", Text, nullable=False),
    Column("failed_at", _moment, nullable=False),
)
"""Object versions whose bytes could not be read when they were to be verified; each is tried again."""

withdrawals = Table(
    "withdrawals",
    toolkit,
    Column("evidence_id", Uuid, primary_key=True),
    Column("reason", Text, nullable=False),
    Column("withdrawn_by", Text, nullable=False),
    Column("approved_by", Text, nullable=False),
    Column("withdrawn_at", _moment, nullable=False),
    Column("account", Text),
)
"""Evidence records taken out of the count, with the two people who decided it; the object stays.

``account`` is who was signed in to the system when it was done; it was not noted in the first rows.
"""

evidence_requests = Table(
    "evidence_requests",
    toolkit,
    Column("evidence_id", Uuid, primary_key=True),
    Column("account", Text, nullable=False),
    Column("partner", Text),
)
"""The account that asked for each evidence record: a token's subject, or an account of the system.

``partner`` is the one that the subject acted for, and empty where an operator of the toolkit asked. Records that
were stored before this table, or by another system, have no row.
"""

partner_subjects = Table(
    "partner_subjects",
    toolkit,
    Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    Column("subject", Text, nullable=False),
    Column("partner", Text, nullable=False),
    Column("added_at", _moment, nullable=False),
    Column("added_by", Text, nullable=False),
    Column("revoked_at", _moment),
    Column("revoked_by", Text),
    Index("partner_subjects_current_idx", "subject", unique=True, postgresql_where=text("revoked_at IS NULL")),
)
"""The partner that the subject of a token acts for, where the token itself does not name one."""

token_revocations = Table(
    "token_revocations",
    toolkit,
    Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    Column("token_id", Text),
    Column("subject", Text),
    Column("reason", Text, nullable=False),
    Column("revoked_at", _moment, nullable=False),
    Column("revoked_by", Text, nullable=False),
    sa.CheckConstraint("num_nonnulls(token_id, subject) = 1", name="token_revocations_one_check"),
)
"""Bearer tokens that are refused before they expire: one by its id, or all that a subject had until then."""

bucket_syncs = Table(
    "bucket_syncs",
    toolkit,
    Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    Column("started_at", _moment, nullable=False),
    Column("finished_at", _moment, nullable=False),
    Column("bucket", Text, nullable=False),
    Column("full_listing", sa.Boolean, nullable=False),
    Column("listed", sa.BigInteger, nullable=False),
    Column("appeared", sa.BigInteger, nullable=False),
    Column("vanished", sa.BigInteger, nullable=False),
    Column("cycle", sa.BigInteger),
    Column("read_to", Text),
    Column("asked", sa.BigInteger),
    Column("unreadable", sa.BigInteger),
    Column("source", Text),
)
"""Each finished reading of the bucket.

Readings go round all keys in cycles: one read those after the ``read_to`` of the one before, up to its own, or to
the end where that is null. ``asked`` counts the keys that were asked for one by one. ``source``
names an inventory or a journal that was taken over instead.
"""

object_events = Table(
    "object_events",
    toolkit,
    Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    Column("key", Text, nullable=False),
    Column("sequence_number", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("happened_at", _moment, nullable=False),
    Column("version_id", Text),
    Column("requester", Text),
    Column("source_address", Text),
    Column("noted_at", _moment, nullable=False),
    sa.UniqueConstraint("key", "sequence_number", name="object_events_key_sequence_number_key"),
)
"""Writes and deletions of objects as the journal of the bucket tells them: by whom, and from which address."""

adopted_buckets = Table(
    "adopted_buckets",
    toolkit,
    Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    Column("bucket", Text, nullable=False),
    Column("adopted_at", _moment, nullable=False),
)
"""The bucket that this database belongs to is the last one here."""

adopted_services = Table(
    "adopted_services",
    toolkit,
    Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    Column("cluster", sa.BigInteger),
    Column("database", sa.BigInteger, nullable=False),
    Column("name", Text, nullable=False),
    Column("relations", JSONB, nullable=False),
    Column("adopted_at", _moment, nullable=False),
)
"""The service that this database belongs to is the last one here; see ``toolkit.storage.service_identity``."""

observation_clock = Table(
    "observation_clock",
    toolkit,
    Column("only", sa.Boolean, primary_key=True),
    Column("stands_at", _moment, nullable=False),
)
"""One row: no observation will be stamped with an earlier moment, see ``toolkit.storage.observation_clock``."""

audit_runs = Table(
    "audit_runs",
    toolkit,
    Column("id", Uuid, primary_key=True),
    Column("as_of", _moment, nullable=False),
    Column("ran_at", _moment, nullable=False),
    Column("sales", sa.BigInteger, nullable=False),
    Column("compliant", sa.BigInteger, nullable=False),
    Column("incomplete", sa.BigInteger, nullable=False),
    Column("conflict", sa.BigInteger, nullable=False),
    Column("with_files", sa.Boolean),
)
"""Each audit that was made, with its totals."""

custody_events = Table(
    "custody_events",
    toolkit,
    Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    Column(
        "transaction",
        sa.BigInteger,
        nullable=False,
        server_default=text("(pg_current_xact_id())::text::bigint"),
    ),
    Column("kind", Text, nullable=False),
    Column("happened_at", _moment, nullable=False),
    Column("detail", JSONB, nullable=False),
    Column(
        "epoch",
        sa.Integer,
        nullable=False,
        server_default=text("coalesce(nullif(current_setting('audit.epoch', true), ''), '1')::integer"),
    ),
    Index("custody_events_order_idx", "epoch", "transaction", "id"),
)
"""Events of evidence, mostly written by triggers in the same transaction: ids, hashes and times only."""

custody_seals = Table(
    "custody_seals",
    toolkit,
    Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    Column("sealed_at", _moment, nullable=False),
    Column("events", sa.BigInteger, nullable=False),
    Column("last_transaction", sa.BigInteger, nullable=False),
    Column("last_id", sa.BigInteger, nullable=False),
    Column("digests", sa.LargeBinary, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Column("last_epoch", sa.Integer, nullable=False, server_default="1"),
    Column("key_id", Text),
)
"""The chain over the events: each seal covers some and the hash of the seal before."""

finding_observations = Table(
    "finding_observations",
    toolkit,
    Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    Column("finding_id", Uuid, nullable=False),
    Column("code", Text, nullable=False),
    Column("sale_id", Text),
    Column("partner", Text),
    Column("utility_group", Text),
    Column("seen_at", _moment, nullable=False),
    Column("gone_at", _moment),
    Index(None, "finding_id"),
    Index(None, "sale_id"),
    Index("finding_observations_current_idx", "finding_id", unique=True, postgresql_where=text("gone_at IS NULL")),
)
"""Each stretch of a finding's life: from the audit that saw it first until the audit that did not see it any more.

Partner and utility group are those of the sale when the stretch began.
"""

judged_sales = Table(
    "judged_sales",
    toolkit,
    Column("sale_id", Text, primary_key=True),
    Column("client_id", Uuid),
    Column("utility_group", Text, nullable=False),
    Column("is_client_financial_responsible", sa.Boolean),
    Column("partner", Text),
    Column("created_at", _moment, nullable=False),
    Column("completed_at", _moment),
    Column("oldest_request", _moment),
    *(
        Column(name, sa.BigInteger, nullable=False)
        for name in ("unexamined", "verified", "first_bytes", "never", "unreadable")
    ),
    *(Column(name, Text, nullable=False) for name in ("status", "missing", "reasons", "problems", "counted")),
    Column("stands_until", _moment),
    Index(None, "stands_until", postgresql_where=text("stands_until IS NOT NULL")),
    prefixes=["UNLOGGED"],
)
"""The judgement of each sale by the last audit of now, so that the next one judges only what changed since.

It can be made again from the observations at any time. After a crash of the server it is empty.
"""

judgement = Table(
    "judgement",
    toolkit,
    Column("only", sa.Boolean, primary_key=True),
    Column("judged_at", _moment, nullable=False),
    Column("fingerprint", Text, nullable=False),
    prefixes=["UNLOGGED"],
)
"""At most one row: the moment of ``judged_sales``, and a fingerprint of the statement that judged them."""

evidence_openings = Table(
    "evidence_openings",
    toolkit,
    Column("id", Uuid, primary_key=True),
    Column("evidence_id", Uuid, nullable=False),
    Column("reason", Text, nullable=False),
    Column("opened_by", Text, nullable=False),
    Column("opened_at", _moment, nullable=False),
    Column("expires_at", _moment, nullable=False),
    Index(None, "evidence_id"),
)
"""Links to evidence files that were handed out, each with who asked for it and why."""

waivers = Table(
    "waivers",
    toolkit,
    Column("id", Uuid, primary_key=True),
    Column("sale_id", Text),
    Column("partner", Text),
    Column("code", Text),
    Column("reason", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("approved_by", Text, nullable=False),
    Column("start_day", sa.Date, nullable=False),
    Column("end_day", sa.Date, nullable=False),
    Column("added_at", _moment, nullable=False),
)
"""Findings that are accepted for a time; a column that is empty stands for any."""

waiver_revocations = Table(
    "waiver_revocations",
    toolkit,
    Column("waiver_id", Uuid, ForeignKey(waivers.c.id), primary_key=True),
    Column("reason", Text, nullable=False),
    Column("revoked_by", Text, nullable=False),
    Column("revoked_at", _moment, nullable=False),
)
"""Waivers that were revoked before their end."""

custody_epochs = Table(
    "custody_epochs",
    toolkit,
    Column("number", sa.Integer, primary_key=True, autoincrement=False),
    Column("cluster", sa.BigInteger),
    Column("opened_at", _moment, nullable=False),
)
"""The clusters that the log was written in, one after the other; each has transactions of its own."""

APPEND_ONLY: Final = (
    load_batches,
    content_checks,
    verification_failures,
    withdrawals,
    evidence_requests,
    token_revocations,
    bucket_syncs,
    object_events,
    adopted_buckets,
    adopted_services,
    audit_runs,
    evidence_openings,
    waivers,
    waiver_revocations,
    custody_events,
    custody_seals,
    custody_epochs,
)
"""Rows of these tables are never changed or deleted; the database itself refuses it."""

CLOSED_ONCE: Final = (sale_observations, evidence_observations, object_observations, finding_observations)
"""Rows of these tables are never deleted, and change once: when ``gone_at`` is set.

So it is with ``partner_subjects``, when ``revoked_at`` and ``revoked_by`` are set.
"""
