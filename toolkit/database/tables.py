"""Define the tables: the toolkit's in ``audit``, which the migrations build, and the contract's own in ``public``.

The contract's own tables stand here to be created, checked and filled. What reads the sales service, whichever
tables it has, selects from the relations of ``toolkit.database.service``.
"""

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Column, ForeignKey, Index, MetaData, Table, Text, Uuid, text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine
from uuid_utils.compat import uuid7

AUDIT: Final = "audit"
OWN_TABLES: Final = "public"  # the schema of the contract's own tables, where no ``service.sql`` names others

_names = {
    "pk": "%(table_name)s_pkey",
    "fk": "%(table_name)s_%(column_0_name)s_fkey",
    "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    "uq": "%(table_name)s_%(column_0_N_name)s_key",
}

service = MetaData(schema=OWN_TABLES, naming_convention=_names)
"""The contract's own tables; on a shared database the toolkit only checks and uses them."""

toolkit = MetaData(schema=AUDIT, naming_convention=_names)  # tables of the toolkit
moment = TIMESTAMP(timezone=True)  # the type of a time with its zone


class SignedText(sa.types.TypeDecorator[str]):
    """Text of signed notes; their dash is written in ASCII, for not every encoding of a database has it."""

    impl, cache_ok = Text, True

    def process_bind_param(self, value: str | None, _: sa.Dialect) -> str | None:
        """Write the dash out."""
        return value and value.replace("—", r"\u2014")

    def process_result_value(self, value: Any | None, _: sa.Dialect) -> str | None:
        """Read the dash."""
        return value and str(value).replace(r"\u2014", "—")


def table(name: str, *parts: SchemaItem) -> Table:
    """Return a table of the toolkit; PostgreSQL numbers the rows of one without a primary key of its own."""
    has_key = any(isinstance(part, Column) and part.primary_key for part in parts)
    number = Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True)
    return Table(name, toolkit, *(() if has_key else (number,)), *parts)


APPEND_ONLY: Final[list[Table]] = []


def append_only(name: str, *parts: SchemaItem) -> Table:
    """Return a table whose rows are never deleted, and changed by an erasure alone; the database refuses it."""
    APPEND_ONLY.append(table(name, *parts))
    return APPEND_ONLY[-1]


def columns(*parts: str | type[TypeEngine[Any]] | TypeEngine[Any]) -> Iterator[Column[Any]]:
    """Yield columns: a type, their names, the next type, and so on; a name ends with ? where a row may lack it."""
    kind: Any = None
    for part in parts:
        if isinstance(part, str):
            yield Column(part.removesuffix("?"), kind, nullable=part.endswith("?"))
        else:
            kind = part


def life(table: str, key: str) -> tuple[Column[Any] | Index, ...]:
    """Return the columns of observations, one open row for each ``key``, with indexes by beginning and end."""
    return (
        *columns(moment, "seen_at", "gone_at?"),
        Index(None, "seen_at"),
        Index(None, "gone_at", postgresql_where=text("gone_at IS NOT NULL")),
        Index(f"{table}_current_idx", key, unique=True, postgresql_where=text("gone_at IS NULL")),
    )


clients = Table(
    "clients",
    service,
    Column("id", Uuid, primary_key=True),
    *columns(Text, "external_id?", "cpf", "rg?", "number_on_dealership", "enrollment", "first_name", "last_name"),
    *columns(Text, "email?", sa.Date, "birthdate", Text, "phone_number?", moment, "created_at"),
    Index(None, "cpf"),
)

addresses = Table(
    "addresses",
    service,
    Column("id", Uuid, primary_key=True),
    Column("client_id", Uuid, ForeignKey(clients.c.id), nullable=False),
    *columns(Text, "neighborhood", "installation_number", "address", "address_number", "city", "zip_code"),
    Index(None, "client_id"),
)

sales = Table(
    "sales",
    service,
    Column("id", Text, primary_key=True),
    Column("client_id", Uuid, ForeignKey(clients.c.id)),
    *columns(Text, "utility_group", sa.Boolean, "is_client_financial_responsible", Text, "partner?"),
    *columns(moment, "created_at", "completed_at?"),
)

evidences = Table(
    "evidences",
    service,
    Column("id", Uuid, primary_key=True),
    Column("sale_id", Text, ForeignKey(sales.c.id), nullable=False),
    *columns(Text, "file_name", "file_format", "type", "evidence_type"),
    Column("object_key", Text, nullable=False, unique=True),
    *columns(Text, "requested_by", moment, "requested_at", "expires_at"),
    Index(None, "sale_id"),
)

sale_observations = table(
    "sale_observations",
    *columns(Text, "sale_id", Uuid, "client_id?", Text, "utility_group"),
    *columns(sa.Boolean, "is_client_financial_responsible?", Text, "partner?"),
    *columns(moment, "created_at", "completed_at?"),
    *life("sale_observations", "sale_id"),
)
"""Observations of each sale: a row holds from ``seen_at`` until ``gone_at`` (open: until now)."""

evidence_observations = table(
    "evidence_observations",
    *columns(Uuid, "evidence_id", Text, "sale_id", "evidence_type", "type?", "object_key?"),
    *columns(moment, "requested_at", "expires_at?"),
    *life("evidence_observations", "evidence_id"),
    *(Index(None, "evidence_id"), Index(None, "sale_id")),
    Index("evidence_observations_object_key_idx", "object_key", postgresql_where=text("gone_at IS NULL")),
)
"""Observations of each evidence record, likewise."""

object_observations = table(
    "object_observations",
    *columns(Text, "key", sa.BigInteger, "size", Text, "etag", moment, "last_modified"),
    *life("object_observations", "key"),
    *columns(Text, "version_id?", "gone_how?"),
    Index("object_observations_key_idx", text('key COLLATE "C"')),
)
"""Observations of each key of the bucket; an overwritten object is a new row. ``version_id`` is known where the
bucket is versioned; ``gone_how`` is ``OVERWRITTEN`` or ``DELETED``."""

content_checks = append_only(
    "content_checks",
    Column("observation_id", sa.BigInteger, ForeignKey(object_observations.c.id), nullable=False),
    *columns(Text, "kind", "problem?", moment, "checked_at", Text, "media_type?", "sha256?"),
    *columns(sa.BigInteger, "pages?", sa.Double, "seconds?", Text, "normal_form?"),
    *columns(sa.ARRAY(Text), "active_parts?", Text, "stored_type?"),
    *columns(sa.Double, "speech_seconds?", Text, "depth?", sa.ARRAY(Text), "readers?", sa.BigInteger, "look?"),
    Index(None, "observation_id"),
    Index(None, "checked_at"),
)
"""Checks of the bytes of an observed object: ``kind`` is a ``FileKind``; ``problem`` says why it is unusable.

A first look at an object's start leaves ``sha256`` empty; a verification of all its bytes is another row, and one
by better readers a third. ``depth`` is a ``Depth``, ``readers`` name the packages that read it and their versions,
and ``look`` is what ``toolkit.contract.contents.LOOK`` was.
"""

verification_failures = append_only(
    "verification_failures",
    Column("observation_id", sa.BigInteger, ForeignKey(object_observations.c.id), nullable=False, unique=True),
    *columns(Text, "reason", moment, "failed_at"),
)
"""Object versions whose bytes could not be read when they were to be verified; each is tried again."""

bucket_syncs = append_only(
    "bucket_syncs",
    *columns(moment, "started_at", "finished_at", Text, "bucket", sa.Boolean, "full_listing"),
    *columns(sa.BigInteger, "listed", "appeared", "vanished", "asked?", "unreadable?", "denied?"),
    *columns(Text, "source?"),
)
"""Each finished reading of the bucket.

``full_listing`` tells that it looked at every key, ``asked`` how many were asked for one by one, ``denied`` about
how many the bucket refused to answer. ``source`` names an inventory that was taken over instead of a listing.
"""

adopted_buckets = append_only("adopted_buckets", *columns(Text, "bucket", moment, "adopted_at"))
"""The bucket that this database belongs to is the last one here."""

adopted_services = append_only(
    "adopted_services",
    *columns(sa.BigInteger, "cluster?", "database", Text, "name", moment, "adopted_at"),
)
"""The service that this database belongs to is the last one here; see ``toolkit.database.belonging``."""

service_readings = append_only(
    "service_readings", *columns(moment, "read_at", JSONB, "resolved", "counts", "changes", "raised")
)
"""Each reading of the service: what its statements meant, what was counted, what differed from the one before.

``raised`` has the counts that jumped and did not come back, as they were before.
"""

restores = append_only("restores", *columns(Text, "lost_seal", moment, "noticed_at"))
"""Restores in place that were noticed, by the root of the log that was kept and that the log lacks since."""

restore_confirmations = append_only(
    "restore_confirmations",
    *columns(moment, "confirmed_at", Text, "confirmed_by", "approved_by", "reason", "account?"),
)
"""Confirmations by two people that they know of a restore; each is for all that were noticed before."""

observation_clock = table(
    "observation_clock",
    Column("only", sa.Boolean, sa.CheckConstraint('"only"'), primary_key=True),
    *columns(moment, "stands_at"),
)
"""One row: no observation will be stamped with an earlier moment, see ``toolkit.database.observation_clock``."""

withdrawals = append_only(
    "withdrawals",
    *(Column("evidence_id", Uuid, primary_key=True), Column("sale_id", Text, primary_key=True)),
    *columns(Text, "reason", "withdrawn_by", "approved_by", moment, "withdrawn_at", Text, "account?"),
)
"""Evidence records taken out of the count, with the two people who decided it; the object stays.

``sale_id`` is the sale that the record was of, empty where that is not known; see ``withdrawal_of``.
``account`` is who was signed in to the system when it was done; it was not noted in the first rows.
"""

evidence_requests = append_only(
    "evidence_requests", Column("evidence_id", Uuid, primary_key=True), *columns(Text, "account", "partner?")
)
"""The account that asked for each evidence record: a token's subject, or an account of the system.

``partner`` is the one that the subject acted for, and empty where an operator of the toolkit asked. Records that
were stored before this table, or by another system, have no row.
"""

token_revocations = append_only(
    "token_revocations",
    *columns(Text, "token_id?", "subject?", "reason", moment, "revoked_at", Text, "revoked_by"),
    sa.CheckConstraint("num_nonnulls(token_id, subject) = 1", name="token_revocations_one_check"),
)
"""Bearer tokens that are refused before they expire: one by its id, or all that a subject had until then."""

evidence_openings = append_only(
    "evidence_openings",
    Column("id", Uuid, primary_key=True),
    *columns(Uuid, "evidence_id", Text, "reason", "opened_by", moment, "opened_at", "expires_at"),
    *columns(Text, "account?"),
)
"""Links to evidence files that were handed out, each with who asked for it, the account signed in, and why."""

audit_runs = append_only(
    "audit_runs",
    Column("id", Uuid, primary_key=True),
    *columns(moment, "as_of", "ran_at", sa.BigInteger, "sales", "compliant", "incomplete", "conflict"),
    *columns(sa.Boolean, "with_files?"),
)
"""Each audit that was made, with its totals."""

finding_observations = table(
    "finding_observations",
    *columns(Uuid, "finding_id", Text, "code", "sale_id?", "partner?", "utility_group?"),
    *life("finding_observations", "finding_id"),
    Index(None, "sale_id"),
    Index("finding_observations_ended_idx", "finding_id", postgresql_where=text("gone_at IS NOT NULL")),
)
"""Each stretch of a finding's life: from the audit that saw it first until the audit that did not see it any more.

Partner and utility group are those of the sale when the stretch began.
"""

waivers = append_only(
    "waivers",
    Column("id", Uuid, primary_key=True),
    *columns(Text, "sale_id?", "partner?", "code?", "reason", "owner", "approved_by"),
    *columns(sa.Date, "start_day", "end_day", moment, "added_at", Text, "account?"),
)
"""Findings that are accepted for a time; a sale, partner or code that is empty stands for any.

``account`` is who was signed in, here and below; it was not noted in the first rows.
"""

waiver_revocations = append_only(
    "waiver_revocations",
    Column("waiver_id", Uuid, ForeignKey(waivers.c.id), primary_key=True),
    *columns(Text, "reason", "revoked_by", moment, "revoked_at", Text, "account?"),
)
"""Waivers that were revoked before their end."""

TRANSACTION = text("(pg_current_xact_id())::text::bigint")
_EPOCH = text("coalesce(nullif(current_setting('audit.epoch', true), ''), '1')::integer")

custody_events = append_only(
    "custody_events",
    Column("transaction", sa.BigInteger, nullable=False, server_default=TRANSACTION),
    *columns(Text, "kind", moment, "happened_at", JSONB, "detail"),
    Column("epoch", sa.Integer, nullable=False, server_default=_EPOCH),
    Column("salt", sa.Uuid, server_default=text("gen_random_uuid()")),
    Index("custody_events_order_idx", "epoch", "transaction", "id"),
    Index(
        "custody_events_evidence_idx",
        text("((detail ->> 'evidence')::uuid)"),
        postgresql_where=text("(detail ->> 'evidence')::uuid IS NOT NULL"),
    ),
    Index(
        "custody_events_object_idx",
        text("((detail ->> 'observation')::bigint)"),
        postgresql_where=text("(detail ->> 'observation')::bigint IS NOT NULL"),
    ),
    Index(
        "custody_events_completed_idx", text("(detail ->> 'sale')"), postgresql_where=text("kind = 'COMPLETED'")
    ),
)
"""Events of evidence, mostly written by triggers: ids, times, hashes; ``salt`` hides those of no known sale."""

log_entries = append_only(
    "log_entries",
    Column("index", sa.BigInteger, primary_key=True, autoincrement=False),
    *columns(sa.BigInteger, "event", "transaction"),
    Column("epoch", sa.Integer, nullable=False),
    *columns(sa.LargeBinary, "entry"),
    *columns(sa.BigInteger, "sale_key?"),
    Index(None, "event"),
)
"""The entries of the log, exactly as they are hashed: each one line of canonical JSON about one event.

``sale_key`` numbers the key that hides its fields; without one the salt of the event does.
"""

log_tiles = table(
    "log_tiles",
    Column("level", sa.Integer, primary_key=True, autoincrement=False),
    Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    *columns(sa.LargeBinary, "hashes"),
)
"""The hashes of the tree over the entries, see ``toolkit.log.merkle``; a tile grows until it is full."""

log_checkpoints = append_only(
    "log_checkpoints",
    Column("size", sa.BigInteger, primary_key=True, autoincrement=False),
    *columns(SignedText, "note", Text, "vkey", moment, "issued_at"),
)
"""The signed states of the log: the number of entries, the signed note with the root, and the key."""

log_cosignatures = append_only(
    "log_cosignatures",
    Column("size", sa.BigInteger, ForeignKey(log_checkpoints.c.size), primary_key=True),
    Column("witness", Text, primary_key=True),
    *columns(SignedText, "line", moment, "signed_at", "added_at"),
)
"""The signatures of witnesses under states of the log, by the key of the witness."""

log_timestamps = append_only(
    "log_timestamps",
    Column("size", sa.BigInteger, ForeignKey(log_checkpoints.c.size), nullable=False),
    *columns(sa.LargeBinary, "token", moment, "added_at"),
)
"""The answers of authorities who stamped states of the log, as they came."""

custody_epochs = append_only(
    "custody_epochs",
    Column("number", sa.Integer, primary_key=True, autoincrement=False),
    *columns(sa.BigInteger, "cluster?", moment, "opened_at"),
)
"""The clusters that the log was written in, one after the other; each has transactions of its own."""

job_schedules = table(
    "job_schedules", Column("job", Text, primary_key=True), *columns(Text, "schedule", moment, "watched_until")
)
"""Each job that was ever started or watched. Dates up to ``watched_until`` are none that it missed."""

job_runs = table(
    "job_runs",
    Column("id", Uuid, primary_key=True),
    *columns(Text, "job", moment, "logical_date", Text, "status", Uuid, "holder?", moment, "lease_until?"),
    *columns(sa.BigInteger, "starts", moment, "started_at?", "ended_at?"),
    *columns(Text, "failure?", "reason?", "started_by?", "host?", JSONB, "versions", "steps"),
    *columns(Text, "folder?", "seal?"),
    Index("job_runs_job_logical_date_key", "job", "logical_date", unique=True),
)
"""The run of each logical date of each job: one row, whoever starts it and however often.

``holder`` names the start that works on it while ``lease_until`` lies ahead by the clock of the database.
``steps`` are those that ended, with their counts, files and parameters.
"""

job_notices = table(
    "job_notices",
    Column("id", Uuid, primary_key=True),
    *columns(Text, "job", moment, "logical_date", Text, "kind", "channel", JSONB, "content"),
    *columns(moment, "created_at", "delivered_at?", sa.BigInteger, "tries", Text, "problem?"),
)
"""Notices to people, one a channel, written with what they tell; ``problem`` is why the last try failed."""

partner_notices = table(
    "partner_notices",
    Column("id", Uuid, primary_key=True),
    *columns(Text, "partner", sa.Date, "day", moment, "created_at", "delivered_at?"),
    *columns(sa.BigInteger, "tries", Text, "problem?"),
    Index("partner_notices_partner_day_key", "partner", "day", unique=True),
)
"""Notices to partners about their findings, at most one a day; ``problem`` is why the last try failed."""

told_findings = append_only(
    "told_findings",
    Column("notice_id", Uuid, ForeignKey(partner_notices.c.id), nullable=False),
    *columns(Uuid, "finding_id", Text, "stage"),
    *(Index(None, "notice_id"), Index(None, "finding_id")),
)
"""The findings that a delivered notice told of: each once when it is new, comes due and is overdue."""

finding_answers = append_only(
    "finding_answers",
    Column("id", Uuid, primary_key=True),
    *columns(Uuid, "finding_id", Text, "partner", "answer", "text?", "answered_by"),
    *columns(sa.Date, "until?", moment, "answered_at"),
    Index(None, "finding_id"),
)
"""Answers of partners to findings; ``answered_by`` is the subject of the token."""

review_draws = append_only(
    "review_draws",
    Column("id", Uuid, primary_key=True),
    *columns(moment, "as_of", "drawn_at", sa.BigInteger, "seed", JSONB, "plan", "scorecard", Text, "drawn_by"),
)
"""Samples of files that people look at: the audit whose counted files they are, and how they were drawn."""

review_turns = table(
    "review_turns",
    Column("draw_id", Uuid, ForeignKey(review_draws.c.id), nullable=False),
    Column("evidence_id", Uuid, nullable=False),
    Column("object_id", sa.BigInteger, ForeignKey(object_observations.c.id), nullable=False),
    *columns(sa.BigInteger, "turn", Text, "sale_id", "partner?", "evidence_type", moment, "added_at"),
    *columns(Text, "claimed_by?", moment, "claimed_until?"),
    *(Index("review_turns_file_key", "draw_id", "evidence_id", "turn", unique=True), Index(None, "object_id")),
)
"""The looks that a drawn version of a file needs: one, a second where it is drawn or critical, a third where two
differ. One of them is claimed for a while by whoever has the file before them."""

review_answers = append_only(
    "review_answers",
    Column("turn_id", sa.BigInteger, ForeignKey(review_turns.c.id), nullable=False, unique=True),
    *columns(Text, "reviewer", "person", "account?", JSONB, "answers", sa.ARRAY(Text), "failures"),
    *columns(Text, "comment?", moment, "answered_at", sa.Date, "ends_on?"),
)
"""The answers of a person: ``failures`` are the questions with a critical answer; a look that has none counts
until ``ends_on``. ``person`` is the name as the four-eyes rule compares it."""

load_batches = append_only(
    "load_batches",
    Column("id", Uuid, primary_key=True),
    Column("fingerprint", Text, nullable=False, unique=True),
    *columns(Text, "sha256", JSONB, "options", Text, "source"),
    *columns(sa.BigInteger, "accepted", "rejected", "skipped", moment, "loaded_at"),
)
"""Each file of clients of which the service refused no row, written with its rows. ``fingerprint`` is of contents
(``sha256``) and ``options`` that change what becomes of them; its clients have ``loaded_at`` as ``created_at``."""

CLOSED_ONCE: Final = (sale_observations, evidence_observations, object_observations, finding_observations)
"""Rows of these tables are never deleted, and change once: when ``gone_at`` is set."""

CHANGED_BY_RULE: Final = (observation_clock, log_tiles)
"""Rows of these tables are never deleted, and change by a rule: that of a trigger, or of the tree of the log."""


def new_id() -> UUID:
    """Return a time-ordered id (UUID version 7): those of one process ascend, those of several may not."""
    return uuid7()
