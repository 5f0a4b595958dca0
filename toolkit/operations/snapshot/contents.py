"""The tables of a snapshot: their columns, and how their rows are read from PostgreSQL.

Every row carries the stamp of the observation clock, which never goes back. So an export is the rows stamped after
the export before and up to its own moment, and the observations that ended in between.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

import pyarrow as pa
import sqlalchemy as sa
from pyarrow import compute as pc
from sqlalchemy.dialects import postgresql

from toolkit.domain.integrity import LAYOUT
from toolkit.storage import tables
from toolkit.storage.picture import PICTURE_SINCE

_MOMENT: Final = pa.timestamp("us", "UTC")
_BLOCK: Final = 64
"""Bytes in a block of SHA-256."""

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

    def rows(self, after: datetime | None, moment: datetime, secret: bytes) -> str:
        """Return a query for the rows stamped after ``after`` and up to ``moment``, as they were at ``moment``."""
        columns = ", ".join(self._column(field.name, moment, secret) for field in self.schema)
        since = "" if after is None else f" AND {self.stamp} > {_literal(after)}"
        rows = self.table.fullname
        if "requested_for" in self.schema.names:
            rows += " LEFT JOIN audit.evidence_requests AS asked USING (evidence_id)"
        return f"SELECT {columns} FROM {rows} WHERE {self.stamp} <= {_literal(moment)}{since}"  # noqa: S608

    def closings(self, after: datetime, moment: datetime) -> str:
        """Return a query for the rows of earlier exports that ended after ``after`` and up to ``moment``."""
        return (
            f"SELECT id, gone_at FROM {self.table.fullname} WHERE gone_at > {_literal(after)} "  # noqa: S608
            f"AND gone_at <= {_literal(moment)} AND {self.stamp} <= {_literal(after)}"
        )

    def _column(self, name: str, moment: datetime, secret: bytes) -> str:
        if name == "gone_at":
            return f"CASE WHEN gone_at <= {_literal(moment)} THEN gone_at END AS gone_at"
        if name == "picture_since":
            return f"{PICTURE_SINCE} AS picture_since"
        if name == self.pseudonym:
            return f"{_pseudonym(name, secret)} AS {name}"
        if name == "active_parts":
            return f"array_to_string(active_parts, '{PARTS}') AS active_parts"
        if name == "requested_for":
            return "CASE WHEN asked.account IS NOT NULL THEN coalesce(asked.partner, '') END AS requested_for"
        return name


def _content(
    table: sa.Table,
    stamp: str,
    columns: dict[str, pa.DataType],
    *,
    pseudonym: str | None = None,
    personal: tuple[str, ...] = (),
) -> Content:
    return Content(table, stamp, pa.schema(columns), pseudonym, personal)


_SEEN: Final = {"id": pa.int64(), "seen_at": _MOMENT, "gone_at": _MOMENT}

CONTENTS: Final = (
    _content(
        tables.sale_observations,
        "seen_at",
        {
            **_SEEN,
            "sale_id": pa.string(),
            "client_id": pa.string(),
            "utility_group": pa.string(),
            "is_client_financial_responsible": pa.bool_(),
            "partner": pa.string(),
            "created_at": _MOMENT,
            "completed_at": _MOMENT,
        },
    ),
    _content(
        tables.evidence_observations,
        "seen_at",
        {
            **_SEEN,
            "evidence_id": pa.string(),
            "sale_id": pa.string(),
            "evidence_type": pa.string(),
            "type": pa.string(),
            "requested_for": pa.string(),
            "object_key": pa.string(),
            "requested_at": _MOMENT,
            "expires_at": _MOMENT,
        },
        pseudonym="object_key",
    ),
    _content(
        tables.object_observations,
        "seen_at",
        {**_SEEN, "key": pa.string(), "size": pa.int64(), "etag": pa.string(), "last_modified": _MOMENT},
        pseudonym="key",
    ),
    _content(
        tables.content_checks,
        "checked_at",
        {
            "id": pa.int64(),
            "observation_id": pa.int64(),
            "kind": pa.string(),
            "problem": pa.string(),
            "sha256": pa.string(),
            "normal_form": pa.string(),
            "media_type": pa.string(),
            "stored_type": pa.string(),
            "active_parts": pa.string(),
            "pages": pa.int64(),
            "seconds": pa.float64(),
            "checked_at": _MOMENT,
        },
    ),
    _content(
        tables.verification_failures,
        "failed_at",
        {"id": pa.int64(), "observation_id": pa.int64(), "failed_at": _MOMENT},
    ),
    _content(
        tables.withdrawals,
        "withdrawn_at",
        {"evidence_id": pa.string(), "withdrawn_at": _MOMENT},
        personal=("reason", "withdrawn_by", "approved_by"),
    ),
    _content(
        tables.finding_observations,
        "seen_at",
        {
            **_SEEN,
            "finding_id": pa.string(),
            "code": pa.string(),
            "sale_id": pa.string(),
            "partner": pa.string(),
            "utility_group": pa.string(),
        },
    ),
    _content(tables.audit_runs, "as_of", {"as_of": _MOMENT, "with_files": pa.bool_()}),
    _content(
        tables.waivers,
        "added_at",
        {
            "id": pa.string(),
            "sale_id": pa.string(),
            "partner": pa.string(),
            "code": pa.string(),
            "start_day": pa.date32(),
            "end_day": pa.date32(),
            "added_at": _MOMENT,
        },
        personal=("reason", "owner", "approved_by"),
    ),
    _content(
        tables.waiver_revocations,
        "revoked_at",
        {"waiver_id": pa.string(), "revoked_at": _MOMENT},
        personal=("reason", "revoked_by"),
    ),
    _content(
        tables.bucket_syncs,
        "finished_at",
        {
            "id": pa.int64(),
            "finished_at": _MOMENT,
            "bucket": pa.string(),
            "source": pa.string(),
            "picture_since": _MOMENT,
        },
    ),
)
"""The tables that an audit and its report read."""


def month_of(content: Content, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the batch by the months (UTC) of its stamps."""
    stamps = batch.column(content.stamp)
    months = pc.add(pc.multiply(pc.year(stamps), 12), pc.subtract(pc.month(stamps), 1))
    order = pc.sort_indices(months)
    batch, months = batch.take(order), months.take(order)
    for run in pc.value_counts(months).to_pylist():
        year, month = divmod(run["values"], 12)
        yield f"{year:04}-{month + 1:02}", batch.slice(0, run["counts"])
        batch = batch.slice(run["counts"])


def _pseudonym(column: str, secret: bytes) -> str:
    """Return half of a key's HMAC as an SQL expression; that of a key outside the layout starts with ``?``."""
    return f"CASE WHEN {column} !~ '^{LAYOUT.pattern}$' THEN '?' ELSE '' END || left({_hmac(column, secret)}, 32)"


def _hmac(column: str, secret: bytes) -> str:
    """Return HMAC-SHA-256 (RFC 2104) of a text as an SQL expression; PostgreSQL has the hash but no HMAC."""
    key = (secret if len(secret) <= _BLOCK else sha256(secret).digest()).ljust(_BLOCK, b"\0")
    inner, outer = (bytes(byte ^ pad for byte in key).hex() for pad in (0x36, 0x5C))
    text = f"convert_to({column}, 'UTF8')"
    return f"encode(sha256('\\x{outer}'::bytea || sha256('\\x{inner}'::bytea || {text})), 'hex')"


def _literal(moment: datetime) -> str:
    compiled = sa.literal(moment.astimezone(UTC), sa.TIMESTAMP(timezone=True)).compile(
        dialect=postgresql.dialect(),  # type: ignore[no-untyped-call]
        compile_kwargs={"literal_binds": True},
    )
    return f"{compiled}::timestamptz"
