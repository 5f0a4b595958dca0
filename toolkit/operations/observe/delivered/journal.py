"""The journal table of S3 Metadata, given as Parquet files: each write and each deletion, in their order.

The state that a key has in the end follows from its last event. Where it does not follow, the key is asked for: a
deletion in a bucket with versions may have removed the newest version, an older one or a delete marker, and an
object that was gone before it was noted has no size and no ETag.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from toolkit.errors import UnreadableFile
from toolkit.storage.duckdb_session import files_alone
from toolkit.storage.file_store import FileStore

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_NEEDED: Final = frozenset(
    {"bucket", "key", "sequence_number", "record_type", "record_timestamp", "requester", "source_ip_address"}
    | {"version_id", "is_delete_marker", "size", "last_modified_date", "e_tag"}
)


@dataclass(frozen=True, slots=True)
class Journal:
    """A journal that was found."""

    address: str
    files: tuple[Path, ...]

    def tell(self, work: DuckDBPyConnection) -> tuple[datetime, datetime]:
        """Make the view ``events`` and the table ``states``, one row a key; the first and the last moment.

        ``there`` of a state is null where the journal does not tell whether there is an object.

        Raises:
            UnreadableFile: a column is missing, or there is no event.
        """
        work.execute(f"CREATE VIEW delivered AS SELECT * FROM read_parquet({files_alone(self.files)})")  # noqa: S608
        missing = _NEEDED - {row[0] for row in work.execute("DESCRIBE delivered").fetchall()}
        if missing:
            raise UnreadableFile(
                f"The files in {self.address} are not a journal table of S3 Metadata: there is no column "
                f"{', '.join(sorted(missing))}."
            )
        work.execute(_EVENTS)
        work.execute(_STATES)
        ((first, last),) = work.execute(_SPAN).fetchall()
        if first is None:
            raise UnreadableFile(f"The journal in {self.address} holds no event.")
        return datetime.fromtimestamp(first / 1e6, UTC), datetime.fromtimestamp(last / 1e6, UTC)


def find_journal(store: FileStore, scratch: Path) -> Journal:
    """Return the Parquet files in ``store``.

    Raises:
        UnreadableFile: there is none.
    """
    files = [name for name in store.names() if name.endswith(".parquet")]
    if not files:
        raise UnreadableFile(f"There is no Parquet file of a journal table in {store.address}.")
    return Journal(store.address, tuple(store.local(name, scratch) for name in files))


_SPAN: Final = "SELECT epoch_us(min(happened_at)), epoch_us(max(happened_at)) FROM events"

_EVENTS: Final = """
    CREATE VIEW events AS
    SELECT DISTINCT key, CAST(sequence_number AS VARCHAR) AS sequence_number, record_type,
           CAST(record_timestamp AS TIMESTAMPTZ) AS happened_at,
           nullif(CAST(version_id AS VARCHAR), '') AS version_id,
           coalesce(is_delete_marker, false) AS is_delete_marker,
           size, replace(e_tag, '"', '') AS etag, CAST(last_modified_date AS TIMESTAMPTZ) AS last_modified,
           requester, source_ip_address
    FROM delivered
"""
"""Tables are rewritten now and then, so that an event may stand in an old file and in a new one."""

_STATES: Final = """
    CREATE TABLE states AS
    SELECT key, happened_at AS at, size, etag, last_modified, version_id,
           CASE
               WHEN record_type = 'CREATE' AND NOT is_delete_marker
                    AND size IS NOT NULL AND etag IS NOT NULL AND last_modified IS NOT NULL THEN true
               WHEN record_type = 'DELETE' AND version_id IS NULL AND NOT is_delete_marker THEN false
           END AS there
    FROM events
    WHERE record_type IN ('CREATE', 'DELETE')
    QUALIFY row_number() OVER (PARTITION BY key ORDER BY sequence_number DESC) = 1
"""
"""A change of tags or other metadata (``UPDATE_METADATA``) leaves the object as it is."""
