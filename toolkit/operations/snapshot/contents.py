"""The tables of a snapshot: their columns, and how their rows are read from PostgreSQL.

Every row carries the stamp of the observation clock, which never goes back. So an export is the rows stamped after
the export before and up to its own moment, and the observations that ended in between.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from operator import itemgetter
from typing import Final

import pyarrow as pa
import sqlalchemy as sa
from pyarrow import compute as pc

from toolkit.domain.integrity import LAYOUT
from toolkit.storage import tables
from toolkit.storage.picture import PICTURE_SINCE

_MOMENT: Final = pa.timestamp("us", "UTC")
_HALF: Final = 32
"""Hexadecimal digits of an HMAC that a pseudonym keeps, of 64."""

_SHA256_BLOCK: Final = 64

REPEATED: Final = frozenset(
    {"utility_group", "partner", "evidence_type", "type", "requested_for", "kind", "problem", "media_type"}
    | {"active_parts", "stored_type", "code", "bucket"}
)
"""The columns with few values; dictionaries of the others would take time, and room."""

PSEUDONYM: Final = "[0-9a-f]{32}"
"""The pseudonym of a key within the layout of evidence."""

PARTS: Final = ","
"""Joins the active parts of a file."""

CLOSINGS: Final = pa.schema({"id": pa.int64(), "gone_at": _MOMENT})
"""Observations of an earlier export that ended since."""


@dataclass(frozen=True, slots=True)
class Content:
    """One table of a snapshot; ``stamp`` is the column that orders its rows in time."""

    table: sa.Table
    stamp: str
    schema: pa.Schema
    pseudonym: str | None = None
    """The column with a key of an object, which becomes a pseudonym."""
    personal: tuple[str, ...] = ()
    """The columns with words of people or about them, which stay in the database; the first column is the key."""

    @property
    def name(self) -> str:
        """The table's name."""
        return self.table.name

    @property
    def closes(self) -> bool:
        """Tell whether rows end, by ``gone_at``."""
        return self.table in tables.CLOSED_ONCE

    def rows(self, after: datetime | None, moment: datetime, partition: str | None = None) -> str:
        """Return a query for the rows stamped after ``after`` and up to ``moment``, as they were at ``moment``.

        ``partition`` is the part of the table to read, where not all of it is.
        """
        columns = ", ".join(self._column(field.name, moment) for field in self.schema)
        since = "" if after is None else f" AND {self.stamp} > {_literal(after)}"
        rows = partition or self.table.fullname
        if "requested_for" in self.schema.names:
            rows += " LEFT JOIN audit.evidence_requests AS asked USING (evidence_id)"
        return f"SELECT {columns} FROM {rows} WHERE {self.stamp} <= {_literal(moment)}{since}"  # noqa: S608

    def without_keys(self, batch: pa.RecordBatch, secret: bytes) -> pa.RecordBatch:
        """Replace keys of objects by halves of their HMACs; that of a key outside the layout starts with ``?``."""
        if self.pseudonym is None:
            return batch
        place = batch.schema.get_field_index(self.pseudonym)
        keys = batch.column(place)
        within = pc.match_substring_regex(keys, f"^{LAYOUT.pattern}$").to_pylist()
        # RFC 2104 by its definition: hmac.digest() takes twice as long for each of millions of short keys.
        padded = secret.ljust(_SHA256_BLOCK, b"\0")
        inner, outer = (bytes(byte ^ mask for byte in padded) for mask in (0x36, 0x5C))
        told = [
            None
            if key is None
            else f"{'' if ours else '?'}{sha256(outer + sha256(inner + key).digest()).hexdigest()[:_HALF]}"
            for key, ours in zip(keys.cast(pa.binary()).to_pylist(), within, strict=True)
        ]
        return batch.set_column(place, self.pseudonym, pa.array(told, pa.string()))

    def closings(self, after: datetime, moment: datetime) -> str:
        """Return a query for the rows of earlier exports that ended after ``after`` and up to ``moment``."""
        return (
            f"SELECT id, gone_at FROM {self.table.fullname} WHERE gone_at > {_literal(after)} "  # noqa: S608
            f"AND gone_at <= {_literal(moment)} AND {self.stamp} <= {_literal(after)}"
        )

    def _column(self, name: str, moment: datetime) -> str:
        if name == "gone_at":
            return f"CASE WHEN gone_at <= {_literal(moment)} THEN gone_at END AS gone_at"
        if name == "picture_since":
            return f"{PICTURE_SINCE} AS picture_since"
        if name == "active_parts":
            return f"array_to_string(active_parts, '{PARTS}') AS active_parts"
        if name == "requested_for":
            return "CASE WHEN asked.account IS NOT NULL THEN coalesce(asked.partner, '') END AS requested_for"
        return name


_TYPES: Final = {
    sa.BigInteger: pa.int64(),
    sa.Boolean: pa.bool_(),
    sa.Double: pa.float64(),
    sa.DateTime: _MOMENT,
    sa.Date: pa.date32(),
}
"""The types of columns; all others are texts."""


def _content(
    table: sa.Table,
    stamp: str,
    *columns: str,
    pseudonym: str | None = None,
    personal: tuple[str, ...] = (),
    made: dict[str, pa.DataType] | None = None,
) -> Content:
    """Return a table of these columns, and of those ``made`` at the export."""
    types = {
        name: next((_TYPES[kind] for kind in type(table.c[name].type).__mro__ if kind in _TYPES), pa.string())
        for name in columns
    }
    return Content(table, stamp, pa.schema(types | (made or {})), pseudonym, personal)


_SEEN: Final = ("id", "seen_at", "gone_at")
_OF_SALE: Final = ("sale_id", "partner", "utility_group")

CONTENTS: Final = (
    _content(
        tables.sale_observations,
        "seen_at",
        *(*_SEEN, *_OF_SALE, "client_id", "is_client_financial_responsible", "created_at", "completed_at"),
    ),
    _content(
        tables.evidence_observations,
        "seen_at",
        *(*_SEEN, "evidence_id", "sale_id", "evidence_type", "type", "object_key", "requested_at", "expires_at"),
        pseudonym="object_key",
        made={"requested_for": pa.string()},
    ),
    _content(
        tables.object_observations,
        "seen_at",
        *(*_SEEN, "key", "size", "etag", "last_modified"),
        pseudonym="key",
    ),
    _content(
        tables.content_checks,
        "checked_at",
        *("id", "observation_id", "kind", "problem", "sha256", "normal_form", "media_type", "stored_type"),
        *("pages", "seconds", "checked_at", "active_parts"),
    ),
    _content(tables.verification_failures, "failed_at", "id", "observation_id", "failed_at"),
    _content(
        tables.withdrawals,
        "withdrawn_at",
        *("evidence_id", "withdrawn_at"),
        personal=("reason", "withdrawn_by", "approved_by"),
    ),
    _content(tables.finding_observations, "seen_at", *_SEEN, "finding_id", "code", *_OF_SALE),
    _content(tables.audit_runs, "as_of", "as_of", "with_files"),
    _content(
        tables.waivers,
        "added_at",
        *("id", "sale_id", "partner", "code", "start_day", "end_day", "added_at"),
        personal=("reason", "owner", "approved_by"),
    ),
    _content(
        tables.waiver_revocations,
        "revoked_at",
        *("waiver_id", "revoked_at"),
        personal=("reason", "revoked_by"),
    ),
    _content(
        tables.bucket_syncs,
        "finished_at",
        *("id", "finished_at", "bucket", "source"),
        made={"picture_since": _MOMENT},
    ),
)
"""The tables that an audit and its report read."""


def month_of(content: Content, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the batch by the months (UTC) of its stamps."""
    stamps = batch.column(content.stamp)
    months = pc.add(pc.multiply(pc.year(stamps), 12), pc.subtract(pc.month(stamps), 1))
    for run in sorted(pc.value_counts(months).to_pylist(), key=itemgetter("values")):
        year, month = divmod(run["values"], 12)
        whole = run["counts"] == batch.num_rows
        yield f"{year:04}-{month + 1:02}", batch if whole else batch.filter(pc.equal(months, run["values"]))


def _literal(moment: datetime) -> str:
    return f"timestamptz '{moment.astimezone(UTC).isoformat()}'"
