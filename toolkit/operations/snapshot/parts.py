"""Write the Parquet files of one table of an export."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime
from hashlib import file_digest
from pathlib import Path
from typing import Final, Self

import pyarrow as pa
from pyarrow import parquet

from toolkit.errors import UnreadableFile
from toolkit.operations.private_folder import PrivateFolder
from toolkit.operations.snapshot.contents import REPEATED, Content, month_of
from toolkit.operations.snapshot.manifest import File, stamp_of
from toolkit.operations.snapshot.moved import Month
from toolkit.storage.file_store import FileStore

_ROW_GROUP: Final = 20_000
"""Rows that are written to a file at a time."""


class Parts:
    """The Parquet files of one table, one a month; they are put into the store when all is written."""

    def __init__(
        self,
        work: Path,
        moment: datetime,
        store: FileStore,
        content: Content,
        *,
        part: str = "rows",
        columns: pa.Schema | None = None,
        mark: str = "",
    ) -> None:
        self.files: list[File] = []
        self._work, self._moment, self._store = work, moment, store
        self._content, self._part = content, part
        self._columns, self._mark = columns or content.schema, mark
        self._writers: dict[str, parquet.ParquetWriter] = {}
        self._rows: Counter[str] = Counter()
        self._waiting: defaultdict[str, list[pa.RecordBatch]] = defaultdict(list)

    def __enter__(self) -> Self:
        self._scratch = PrivateFolder(self._work)
        return self

    def add(self, month: str, batch: pa.RecordBatch) -> None:
        """Add rows of a month (empty: none) to its file."""
        if month not in self._writers:
            repeated = [name for name in self._columns.names if name in REPEATED]
            self._writers[month] = parquet.ParquetWriter(
                self._draft(month), self._columns, compression="zstd", use_dictionary=repeated
            )
        self._waiting[month].append(batch)
        self._rows[month] += batch.num_rows
        if sum(each.num_rows for each in self._waiting[month]) >= _ROW_GROUP:
            self._flush(month)

    def add_month(self, month: Month, batches: Iterator[pa.RecordBatch]) -> None:
        """Add the rows of a month that was moved.

        Raises:
            UnreadableFile: they are not what was moved.
        """

        def added() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for seen_in, rows in month_of(self._content, batch):
                    self.add(seen_in, rows)
                yield batch

        if month.digest(added()) != (month.rows, month.sha256):
            raise UnreadableFile(f"{month.content.name} of {month.began_at:%Y-%m} is not what was moved there.")

    def _flush(self, month: str) -> None:
        self._writers[month].write_table(pa.Table.from_batches(self._waiting.pop(month, ()), self._columns))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for month, writer in self._writers.items():
            self._flush(month)
            writer.close()
        try:
            if kind is None:
                self.files = [self._put(month) for month in sorted(self._writers)]
        finally:
            self._scratch.remove()

    def _draft(self, month: str) -> Path:
        return self._scratch.path / f"{month or 'all'}.parquet"

    def _put(self, month: str) -> File:
        draft = self._draft(month)
        folder = f"{self._content.name}/{self._part}" + (f"/month={month}" if month else "")
        name = f"{folder}/{stamp_of(self._moment)}{self._mark}.parquet"
        with draft.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
        size = draft.stat().st_size
        self._store.put(name, draft)
        return File(name, self._content.name, self._part, self._rows[month], size, digest)
