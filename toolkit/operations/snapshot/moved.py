"""Read months of ended observations from the snapshot that they were moved to."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.errors import UnreadableFile
from toolkit.operations.private_folder import PrivateFolder
from toolkit.operations.snapshot.contents import CONTENTS, Content
from toolkit.operations.snapshot.reading import Snapshot, checked_file, digest_of_manifests, open_snapshot
from toolkit.operations.snapshot.rows import digest, history_of
from toolkit.storage.duckdb_session import duckdb_session
from toolkit.storage.file_store import FileStore
from toolkit.storage.partitions import Moved, partition_of
from toolkit.storage.tables import moved_partitions

_AT_ONCE: Final = 50_000
"""Rows that are read at a time."""


@dataclass(frozen=True, slots=True)
class Month:
    """One month of one table, whose rows ended from ``began_at`` until before ``over_at``."""

    content: Content
    began_at: datetime
    rows: int
    sha256: str | None = None
    """Over all values of the rows, once they were compared with the snapshot."""

    @property
    def over_at(self) -> datetime:
        """The beginning of the next month."""
        return month_before(self.began_at, -1)

    @property
    def told(self) -> dict[str, Any]:
        """Its part of ``moved_partitions``."""
        names = ("began_at", "over_at", "rows", "sha256")
        return {"observations": self.content.name} | {name: getattr(self, name) for name in names}

    @property
    def partition(self) -> str:
        """The name of its partition."""
        return partition_of(self.content.table, self.began_at)

    @property
    def compared(self) -> pa.Schema:
        """The columns of its table that the snapshot has."""
        return pa.schema(field for field in self.content.schema if field.name in self.content.table.columns)

    def digest(self, batches: Iterable[pa.RecordBatch]) -> tuple[int, str]:
        """Return the number of rows, and the SHA-256 over all values of the compared columns."""
        return digest(batch.select(self.compared.names) for batch in batches)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The access to snapshots that months were moved to: their stores, and this machine's home and memory."""

    store_of: Callable[[str], FileStore]
    home: Path
    memory: str

    def opened(self, last: Moved, months: Sequence[Month]) -> AbstractContextManager["Rows"]:
        """Open months that were moved, the last of all being ``last``.

        Raises:
            UnreadableFile: a file or manifest is missing, or is not what it was.
        """
        store = self.store_of(last.target)
        return self.months_in(store, snapshot_of(store, last), months)

    @contextmanager
    def months_in(self, store: FileStore, exported: Snapshot, months: Sequence[Month]) -> Iterator["Rows"]:
        """Open months of a snapshot, read from the store itself: a copy that was kept here would prove nothing."""
        began_at, over_at = min(month.began_at for month in months), max(month.over_at for month in months)
        with PrivateFolder(self.home / "snapshots") as scratch, duckdb_session(scratch, self.memory) as session:
            for content in {month.content.name: month.content for month in months}.values():
                history = history_of(
                    session, exported, content, lambda file: str(checked_file(store, file, scratch))
                )
                ended = _within(began_at, over_at)
                session.execute(f"CREATE TABLE {content.name} AS FROM ({history}) WHERE {ended}")

            def rows_of(month: Month) -> Iterator[pa.RecordBatch]:
                within = _within(month.began_at, month.over_at)
                found = session.sql(f"FROM {month.content.name} WHERE {within} ORDER BY id")
                yield from (batch.cast(month.content.schema) for batch in found.to_arrow_reader(_AT_ONCE))

            yield rows_of


Rows = Callable[[Month], Iterator[pa.RecordBatch]]
"""Yields the rows of a month in the columns of its content, in the order of their ids."""


def months_moved(connection: Connection) -> list[Month]:
    """Return all months that were moved, the oldest first."""
    known, contents = moved_partitions.c, {content.name: content for content in CONTENTS}
    query = sa.select(known.observations, known.began_at, known.rows, known.sha256).order_by(known.began_at)
    return [Month(contents[name], *told) for name, *told in connection.execute(query)]


def snapshot_of(store: FileStore, last: Moved) -> Snapshot:
    """Return the exports that hold what was moved, as they were when it was.

    Raises:
        UnreadableFile: they cannot be read, or are others.
    """
    exported = open_snapshot(store, last.exported_at)
    if digest_of_manifests(store, exported) != last.manifests:
        raise UnreadableFile(f"The manifests in {store.address} are not those that held what was moved there.")
    return exported


def _within(began_at: datetime, over_at: datetime) -> str:
    return f"gone_at >= TIMESTAMPTZ '{began_at}' AND gone_at < TIMESTAMPTZ '{over_at}'"


def month_before(moment: datetime, months: int) -> datetime:
    """Return the beginning of the month (UTC) that is some months before that of a moment."""
    moment = moment.astimezone(UTC)
    year, month = divmod(moment.year * 12 + moment.month - 1 - months, 12)
    return datetime(year, month + 1, 1, tzinfo=UTC)
