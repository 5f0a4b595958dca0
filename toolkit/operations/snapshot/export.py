"""Write the rows observed since the export before: streamed, table by table, in memory that does not grow.

An export that was killed goes on with its own moment: files appear whole or not at all, a note of each is kept
under ``TOOLKIT_HOME``, and the manifest, which makes the export exist, comes last.
"""

import hmac
import json
import secrets
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import file_digest, sha256
from importlib.metadata import version
from pathlib import Path
from typing import Final, Self

import pyarrow as pa
import sqlalchemy as sa
from filelock import FileLock
from pyarrow import parquet
from sqlalchemy import Connection

from toolkit.errors import InvalidInput
from toolkit.operations import Clock
from toolkit.operations.atomic_file import atomic_file
from toolkit.operations.private_folder import PrivateFolder
from toolkit.operations.progress import Progress, Quiet
from toolkit.operations.snapshot.contents import CLOSINGS, CONTENTS, REPEATED, Content, month_of
from toolkit.operations.snapshot.manifest import File, Manifest, stamp_of
from toolkit.operations.snapshot.reading import newest
from toolkit.storage import schema, tables
from toolkit.storage.database import Database
from toolkit.storage.file_store import FileStore
from toolkit.storage.frames import stream_arrow
from toolkit.storage.locks import Lock, take
from toolkit.storage.observation_clock import final_moment
from toolkit.storage.partitions import moved, records_assumed_at
from toolkit.storage.service_map.tables_behind import hidden_and_copied

_AT_ONCE: Final = 3
"""Tables that are written side by side."""

_KEY_BYTES: Final = 32

_ROW_GROUP: Final = 20_000
"""Rows that are written to a Parquet file at a time."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export; ``resumed`` counts the tables that an earlier, killed call had written."""

    manifest: Manifest
    resumed: int


def export_snapshot(
    database: Database,
    store: FileStore,
    home: Path,
    clock: Clock,
    *,
    full: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Write what was observed since the newest export in ``store``, or, with ``full``, the whole history.

    ``home`` keeps the key of the pseudonyms (``snapshot.key``): exports that belong together need the same key.

    Raises:
        InvalidInput: another export into this store is under way, what it lacks was moved to a snapshot, or the
            newest export is of another database or has pseudonyms of another key.
        UnreadableFile: the newest manifest cannot be read, or is of another version.
    """
    progress = progress or Quiet()
    work = home / "snapshots" / sha256(store.address.encode()).hexdigest()[:16]
    work.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = FileLock(work / "lock")
    with ExitStack() as stack:
        try:
            stack.enter_context(lock.acquire(blocking=False))
        except TimeoutError:
            raise InvalidInput(f"Another export into {store.address} is under way.") from None
        before, secret = None if full else newest(store), secret_of(home)
        if before is not None:
            _check_continues(database, store, before, secret)
        export = _Export.resumed_or_new(work, database, clock, None if before is None else before.moment)
        _check_moved(database, export)
        resumed = len(export.done)
        left = [content for content in CONTENTS if content.name not in export.done]
        progress.begin("Exporting", len(left), "tables")
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            written = threads.map(lambda content: export.write(database, store, content, secret), left)
            for content, files in zip(left, written, strict=True):
                export.note(content, files)
                progress.advance(1)
        progress.end()
        _check_moved(database, export)
        manifest = _manifest(database, export, secret)
        draft = work / "manifest.json"
        draft.write_text(manifest.as_json(), encoding="utf-8")
        store.put(manifest.name, draft)
        export.forget()
    return Exported(manifest, resumed)


@dataclass
class _Export:
    """An export under way; ``done`` holds the files of the tables that are written."""

    work: Path
    database: str
    moment: datetime
    after: datetime | None
    done: dict[str, list[File]]

    @classmethod
    def resumed_or_new(cls, work: Path, database: Database, clock: Clock, after: datetime | None) -> Self:
        note = work / "under-way.json"
        if note.exists():
            told = json.loads(note.read_text(encoding="utf-8"))
            expected = (None if after is None else after.isoformat(), database.address)
            if (told["after"], told.get("database")) == expected:
                done = {name: [File(**file) for file in files] for name, files in told["done"].items()}
                return cls(work, database.address, datetime.fromisoformat(told["moment"]), after, done)
        with database.transaction() as connection:
            take(connection, Lock.FINDING_HISTORY)  # an audit under way notes findings of an earlier moment
            moment = final_moment(database, clock)
        export = cls(work, database.address, moment, after, {})
        export._keep()
        return export

    def write(self, database: Database, store: FileStore, content: Content, secret: bytes) -> list[File]:
        """Write the files of one table."""
        query = content.rows(self.after, self.moment)
        with _Parts(self, store, content, "rows", content.schema) as rows, database.snapshot() as connection:
            for batch in stream_arrow(connection, query, content.schema):
                for month, of_month in month_of(content, content.without_keys(batch, secret)):
                    rows.add(month, of_month)
        if not content.closes or self.after is None:
            return rows.files
        query = content.closings(self.after, self.moment)
        with _Parts(self, store, content, "closings", CLOSINGS) as closings, database.snapshot() as connection:
            for batch in stream_arrow(connection, query, CLOSINGS):
                closings.add("", batch)
        return rows.files + closings.files

    def note(self, content: Content, files: list[File]) -> None:
        """Keep that this table is written."""
        self.done[content.name] = files
        self._keep()

    def forget(self) -> None:
        """Remove the note: the manifest tells it all."""
        (self.work / "under-way.json").unlink()

    def _keep(self) -> None:
        told = {
            "database": self.database,
            "moment": self.moment.isoformat(),
            "after": None if self.after is None else self.after.isoformat(),
            "done": {name: [asdict(file) for file in files] for name, files in self.done.items()},
        }
        with atomic_file(self.work / "under-way.json") as draft:
            draft.file.write(json.dumps(told))
            draft.finish()


class _Parts:
    """The Parquet files of one table, one a month; they are put into the store when all is written."""

    def __init__(self, export: _Export, store: FileStore, content: Content, part: str, columns: pa.Schema) -> None:
        self.files: list[File] = []
        self._export, self._store, self._content, self._part = export, store, content, part
        self._columns = columns
        self._writers: dict[str, parquet.ParquetWriter] = {}
        self._rows: Counter[str] = Counter()
        self._waiting: defaultdict[str, list[pa.RecordBatch]] = defaultdict(list)

    def __enter__(self) -> Self:
        self._scratch = PrivateFolder(self._export.work)
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
        name = f"{folder}/{stamp_of(self._export.moment)}.parquet"
        with draft.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
        size = draft.stat().st_size
        self._store.put(name, draft)
        return File(name, self._content.name, self._part, self._rows[month], size, digest)


def is_of(connection: Connection, database: Database, exported: Manifest) -> bool:
    """Tell whether an export was made of this database: by its seal, and before the first one by its address."""
    if exported.seal is None:
        return database.address == exported.database
    seals = tables.custody_seals.c
    return bool(connection.scalar(sa.select(sa.exists().where(seals.hash == exported.seal))))


def _check_continues(database: Database, store: FileStore, before: Manifest, secret: bytes) -> None:
    """Make sure that the rows of an export fit those of the one before."""
    with database.transaction() as connection:
        same = is_of(connection, database, before)
    if not same:
        raise InvalidInput(
            f"The newest export in {store.address} is of another database, or this one was restored since. Export "
            "into another place, or the whole history: toolkit snapshot export TARGET --full"
        )
    if before.key not in {None, _told_apart(secret)}:
        raise InvalidInput(
            f"The newest export in {store.address} has pseudonyms of another key than snapshot.key in "
            "TOOLKIT_HOME, so files would not meet their records. Copy the key from where that export was made, "
            "or export the whole history: toolkit snapshot export TARGET --full"
        )


def _told_apart(secret: bytes) -> str:
    return hmac.digest(secret, b"snapshot.key", "sha256").hex()[:16]


def _check_moved(database: Database, export: _Export) -> None:
    """Make sure that the exports before hold the months that were moved to a snapshot, and are here no more."""
    with database.transaction() as connection:
        last = moved(connection)
    if last is not None and (export.after is None or export.after < last.over_at):
        raise InvalidInput(
            f"The months before {last.over_at.astimezone(UTC):%Y-%m} were moved to the snapshot {last.target}, "
            "and an export that does not continue one made since then would lack them. "
            f"Run: toolkit snapshot export {last.target}"
        )


def _manifest(database: Database, export: _Export, secret: bytes) -> Manifest:
    seals = tables.custody_seals
    seal = (
        sa.select(seals.c.hash).where(seals.c.sealed_at <= export.moment).order_by(seals.c.number.desc()).limit(1)
    )
    with database.transaction() as connection:
        hidden, copied = hidden_and_copied(connection, database.mapped)
        return Manifest(
            moment=export.moment,
            previous=export.after,
            schema=schema.newest_revision(),
            toolkit=version("evidence-toolkit"),
            database=database.address,
            embedded=database.embedded,
            seal=connection.scalar(seal),
            records_assumed_at=records_assumed_at(connection),
            files=tuple(file for content in CONTENTS for file in export.done[content.name]),
            hidden_rows=hidden,
            copied_rows=copied,
            key=_told_apart(secret),
        )


def secret_of(home: Path) -> bytes:
    """Return the secret that makes pseudonyms, created at its first use; who has it can undo them."""
    place = home / "snapshot.key"
    with FileLock(home / "snapshots" / "key.lock"):
        if not place.exists():
            with atomic_file(place) as draft:
                draft.file.write(secrets.token_hex(_KEY_BYTES))
                draft.finish()
    secret = known_secret(home)
    assert secret is not None
    return secret


def known_secret(home: Path) -> bytes | None:
    """Return that secret, ``None`` where nothing was exported from ``home``."""
    place = home / "snapshot.key"
    return bytes.fromhex(place.read_text(encoding="ascii").strip()) if place.exists() else None
