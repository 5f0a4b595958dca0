"""The tables of observations: what the service and the bucket held, and the readings that saw it."""

from typing import Final

import sqlalchemy as sa
from sqlalchemy import Column, ForeignKey, Index, Text, Uuid, text
from sqlalchemy.dialects.postgresql import JSONB

from toolkit.storage.tables.metadata import columns, life, moment, numbered, table

sale_observations = table(
    "sale_observations",
    numbered(),
    *columns(Text, "sale_id", Uuid, "client_id?", Text, "utility_group"),
    *columns(sa.Boolean, "is_client_financial_responsible?", Text, "partner?"),
    *columns(moment, "created_at", "completed_at?"),
    *life("sale_observations", "sale_id"),
)
"""Observations of each sale: a row holds from ``seen_at`` until ``gone_at`` (open: until now)."""

evidence_observations = table(
    "evidence_observations",
    numbered(),
    *columns(Uuid, "evidence_id", Text, "sale_id", "evidence_type", "type?", "object_key?"),
    *columns(moment, "requested_at", "expires_at?"),
    *life("evidence_observations", "evidence_id"),
    *columns(moment, "assumed_at?"),
    Index(None, "evidence_id"),
    Index(None, "sale_id"),
    Index(None, "assumed_at", postgresql_where=text("assumed_at IS NOT NULL")),
    Index("evidence_observations_object_key_idx", "object_key", postgresql_where=text("gone_at IS NULL")),
)
"""Observations of each evidence record: a row holds from ``seen_at`` until ``gone_at`` (open: until now).

Where ``assumed_at`` is set, the record was there before any was observed: ``seen_at`` was then taken from
``requested_at``, at that moment.
"""

object_observations = table(
    "object_observations",
    numbered(),
    *columns(Text, "key", sa.BigInteger, "size", Text, "etag", moment, "last_modified"),
    *life("object_observations", "key"),
    *columns(Text, "version_id?", "gone_how?"),
    Index("object_observations_key_idx", text('key COLLATE "C"')),
)
"""Observations of each key of the bucket; an overwritten object is a new row.

``version_id`` is known where the bucket is versioned; ``gone_how`` is a ``GoneHow``.
"""

moved_partitions = table(
    "moved_partitions",
    numbered(),
    *columns(Text, "observations", moment, "began_at", "over_at", sa.BigInteger, "rows"),
    *columns(Text, "sha256", "target", moment, "exported_at", Text, "manifests"),
    *columns(moment, "records_assumed_at?", "moved_at"),
    sa.UniqueConstraint("observations", "began_at", name="moved_partitions_observations_began_at_key"),
)
"""Months of observations that are in the snapshot ``target`` and here no more, by the table that held them.

``exported_at`` is the export that completed them, ``manifests`` the SHA-256 of its manifest and of those before
it, and ``sha256`` that of the rows; see ``toolkit.operations.snapshot.moving``.
"""

content_checks = table(
    "content_checks",
    numbered(),
    Column("observation_id", sa.BigInteger, ForeignKey(object_observations.c.id), nullable=False),
    *columns(Text, "kind", "problem?", moment, "checked_at", Text, "media_type?", "sha256?"),
    *columns(sa.BigInteger, "pages?", sa.Double, "seconds?", Text, "normal_form?"),
    *columns(sa.ARRAY(Text), "active_parts?", Text, "stored_type?"),
    Index(None, "observation_id"),
    Index(None, "checked_at"),
)
"""Checks of the bytes of an observed object: ``kind`` is a ``FileKind``; ``problem`` says why it is unusable.

A first look at an object's start leaves ``sha256`` empty; a verification of all its bytes is a second row.
"""

verification_failures = table(
    "verification_failures",
    numbered(),
    Column("observation_id", sa.BigInteger, ForeignKey(object_observations.c.id), nullable=False, unique=True),
    *columns(Text, "reason", moment, "failed_at"),
)
"""Object versions whose bytes could not be read when they were to be verified; each is tried again."""

bucket_syncs = table(
    "bucket_syncs",
    numbered(),
    *columns(moment, "started_at", "finished_at", Text, "bucket", sa.Boolean, "full_listing"),
    *columns(sa.BigInteger, "listed", "appeared", "vanished", "cycle?", Text, "read_to?"),
    *columns(sa.BigInteger, "asked?", "unreadable?", "denied?", Text, "source?"),
)
"""Each finished reading of the bucket.

Readings go round all keys in cycles: one read those after the ``read_to`` of the one before, up to its own, or to
the end where that is null. ``asked`` counts the keys that were asked for one by one, ``denied`` those about which
the bucket refused to answer. ``source``
names an inventory or a journal that was taken over instead.
"""

object_events = table(
    "object_events",
    numbered(),
    *columns(Text, "key", "sequence_number", "kind", moment, "happened_at"),
    *columns(Text, "version_id?", "requester?", "source_address?", moment, "noted_at"),
    sa.UniqueConstraint("key", "sequence_number", name="object_events_key_sequence_number_key"),
)
"""Writes and deletions of objects as the journal of the bucket tells them: by whom, and from which address."""

adopted_buckets = table(
    "adopted_buckets",
    numbered(),
    *columns(Text, "bucket", moment, "adopted_at"),
)
"""The bucket that this database belongs to is the last one here."""

adopted_services = table(
    "adopted_services",
    numbered(),
    *columns(sa.BigInteger, "cluster?", "database", Text, "name", JSONB, "relations"),
    *columns(moment, "adopted_at"),
)
"""The service that this database belongs to is the last one here; see ``toolkit.operations.observe.belonging``."""

service_readings = table(
    "service_readings",
    Column("relation", Text, primary_key=True),
    *columns(sa.BigInteger, "since", "written_by", Text, "state", moment, "all_compared_at"),
    prefixes=["UNLOGGED"],
)
"""The last reading of each relation through a mapping: rows written by transactions before ``since`` were seen.

``written_by`` is the transaction that wrote this row, in another cluster another one. A row that is lost costs one
comparison of all rows.
"""

OBSERVED_RELATIONS: Final = {"sales": sale_observations, "evidences": evidence_observations}
"""The observations of the service's relations."""

observation_clock = table(
    "observation_clock",
    Column("only", sa.Boolean, primary_key=True),
    *columns(moment, "stands_at"),
)
"""One row: no observation will be stamped with an earlier moment, see ``toolkit.storage.observation_clock``."""
