"""Write the rows observed since the export before: streamed, table by table, in memory that does not grow.

An export that was killed goes on with its own moment: files appear whole or not at all, a note of each is kept
under ``TOOLKIT_HOME``, and the manifest, which makes the export exist, comes last.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Self

import sqlalchemy as sa
from filelock import FileLock
from sqlalchemy import Connection

from toolkit.domain.deadlines import Deadlines
from toolkit.errors import BucketError, InvalidInput, SettingsError
from toolkit.operations import Clock
from toolkit.operations.atomic_file import atomic_file
from toolkit.operations.progress import Progress, Quiet
from toolkit.operations.snapshot.contents import CLOSINGS, CONTENTS, Content, month_of
from toolkit.operations.snapshot.manifest import FORMAT, File, Manifest, name_of
from toolkit.operations.snapshot.moved import Elsewhere, months_moved, snapshot_of
from toolkit.operations.snapshot.parts import Parts
from toolkit.operations.snapshot.reading import newest
from toolkit.operations.snapshot.secret import check_key, secret_of, sign_of
from toolkit.storage import schema, tables
from toolkit.storage.database import Database
from toolkit.storage.file_store import FileStore
from toolkit.storage.frames import stream_arrow
from toolkit.storage.locks import Lock, take
from toolkit.storage.observation_clock import final_moment
from toolkit.storage.partitions import PARTITIONED, Moved, moved, records_assumed_at
from toolkit.storage.service_map.tables_behind import hidden_and_copied

_AT_ONCE: Final = 3
"""Tables that are written side by side."""

_MOVED: Final = "moved"
"""Marks the files of months that were taken over from another snapshot."""


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
    elsewhere: Elsewhere | None = None,
    full: bool = False,
    deadlines: Deadlines | None = None,
    progress: Progress | None = None,
) -> Exported:
    """Write what was observed since the newest export in ``store``, or, with ``full``, the whole history.

    ``home`` keeps the key of the pseudonyms (``snapshot.key``): exports that belong together need the same key.
    The whole history needs ``elsewhere`` where months were moved to a snapshot: they are taken over from there.
    ``deadlines`` are those of this machine: a report that another one makes of the snapshot tells if its differ.

    Raises:
        InvalidInput: another export into this store is under way, what it lacks was moved to a snapshot that
            cannot be read, or the newest export is of another database or has pseudonyms of another key.
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
        after = None if before is None else before.moment
        lacking = _lacking(database, after)
        if lacking is not None and name_of(lacking.exported_at) in store.names():
            raise InvalidInput(
                f"The months before {lacking.over_at.astimezone(UTC):%Y-%m} are read from the exports in "
                f"{lacking.target}, which a newer full one would let be pruned. Export without --full, or into "
                "another place."
            )
        export = _Export.resumed_or_new(work, database, store, clock, after, lacking, secret)
        resumed = len(export.done)
        if lacking is not None and _MOVED not in export.done:
            export.note(_MOVED, _taken_over(database, store, export, lacking, elsewhere, secret))
        left = [content for content in CONTENTS if content.name not in export.done]
        progress.begin("Exporting", len(left), "tables")
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            written = threads.map(lambda content: export.write(database, store, content, secret), left)
            for content, files in zip(left, written, strict=True):
                export.note(content.name, files)
                progress.advance(1)
        progress.end()
        if _lacking(database, after) != lacking:
            raise InvalidInput("Months were moved while this export was under way. Run it again.")
        manifest = _manifest(database, export, secret, deadlines)
        draft = work / "manifest.json"
        draft.write_text(manifest.as_json(), encoding="utf-8")
        store.put(manifest.name, draft)
        export.forget()
    return Exported(manifest, resumed)


@dataclass
class _Export:
    """An export under way; ``done`` holds the files of the tables that are written."""

    work: Path
    moment: datetime
    after: datetime | None
    moved_before: datetime | None
    """The end of the months that are taken over from the snapshot that has them."""
    seal: str | None
    """The newest seal of the custody log at that moment."""
    told: dict[str, Any]
    """The facts that must be the same when the export goes on: its files would not fit otherwise."""
    done: dict[str, list[File]]

    @classmethod
    def resumed_or_new(
        cls,
        work: Path,
        database: Database,
        store: FileStore,
        clock: Clock,
        after: datetime | None,
        lacking: Moved | None,
        secret: bytes,
    ) -> Self:
        moved_before = None if lacking is None else lacking.over_at
        told = {"format": FORMAT, "schema": schema.newest_revision(), "key": sign_of(secret)}
        told |= {"database": database.address, "after": _iso(after), "movedBefore": _iso(moved_before)}
        note = work / "under-way.json"
        if note.exists():
            kept, there = json.loads(note.read_text(encoding="utf-8")), set(store.names())
            moment, seals = datetime.fromisoformat(kept["moment"]), tables.custody_seals.c.hash
            with database.transaction() as connection:
                known = kept.get("seal") is None or connection.scalar(
                    sa.select(sa.exists().where(seals == kept["seal"]))
                )
            if known and kept.items() >= told.items() and name_of(moment) not in there:
                done = {name: [File(**file) for file in files] for name, files in kept["done"].items()}
                done = {name: files for name, files in done.items() if {file.name for file in files} <= there}
                return cls(work, moment, after, moved_before, kept["seal"], told, done)
        with database.transaction() as connection:
            take(connection, Lock.FINDING_HISTORY)  # an audit under way notes findings of an earlier moment
            moment = final_moment(database, clock)
        export = cls(work, moment, after, moved_before, _seal_at(database, moment), told, {})
        export._keep()
        return export

    def write(self, database: Database, store: FileStore, content: Content, secret: bytes) -> list[File]:
        """Write the files of one table."""
        query = content.rows(self.after, self.moment)
        if self.moved_before is not None and content.table in PARTITIONED:
            query += f" AND (gone_at IS NULL OR gone_at >= timestamptz '{self.moved_before.isoformat()}')"
        with Parts(self.work, self.moment, store, content) as rows, database.snapshot() as connection:
            for batch in stream_arrow(connection, query, content.schema):
                for month, of_month in month_of(content, content.without_keys(batch, secret)):
                    rows.add(month, of_month)
        if not content.closes or self.after is None:
            return rows.files
        query = content.closings(self.after, self.moment)
        closings = Parts(self.work, self.moment, store, content, part="closings", columns=CLOSINGS)
        with closings, database.snapshot() as connection:
            for batch in stream_arrow(connection, query, CLOSINGS):
                closings.add("", batch)
        return rows.files + closings.files

    def note(self, table: str, files: list[File]) -> None:
        """Keep that this table is written."""
        self.done[table] = files
        self._keep()

    def forget(self) -> None:
        """Remove the note: the manifest tells it all."""
        (self.work / "under-way.json").unlink()

    def _keep(self) -> None:
        done = {name: [asdict(file) for file in files] for name, files in self.done.items()}
        kept = self.told | {"moment": self.moment.isoformat(), "seal": self.seal, "done": done}
        with atomic_file(self.work / "under-way.json") as draft:
            draft.file.write(json.dumps(kept))
            draft.finish()


def is_of(connection: Connection, database: Database, exported: Manifest, secret: bytes) -> bool:
    """Tell whether an export was made of this database: by its seal, and before the first one by its address.

    All embedded ones have the same address, and each has a key beside it.
    """
    if exported.seal is None:
        beside = not database.embedded or exported.key in {None, sign_of(secret)}
        return database.address == exported.database and beside
    seals = tables.custody_seals.c
    return bool(connection.scalar(sa.select(sa.exists().where(seals.hash == exported.seal))))


def _check_continues(database: Database, store: FileStore, before: Manifest, secret: bytes) -> None:
    """Make sure that the rows of an export fit those of the one before."""
    with database.transaction() as connection:
        same = is_of(connection, database, before, secret)
    if not same:
        raise InvalidInput(
            f"The newest export in {store.address} is of another database, or this one was restored since. Export "
            "into another place, or the whole history: toolkit snapshot export TARGET --full"
        )
    check_key(before, secret, store.address)


def _lacking(database: Database, after: datetime | None) -> Moved | None:
    """Return the last month that was moved, where an export of the whole history has to take it over.

    Raises:
        InvalidInput: the exports before end earlier than that month.
    """
    with database.transaction() as connection:
        last = moved(connection)
    if last is None or after is None or after >= last.over_at:
        return last if after is None else None
    raise InvalidInput(
        f"The months before {last.over_at.astimezone(UTC):%Y-%m} were moved to the snapshot {last.target}, and "
        "the exports here end before that. Continue the exports there, or add --full here, which takes the months "
        "over."
    )


def _taken_over(
    database: Database, store: FileStore, export: _Export, last: Moved, elsewhere: Elsewhere | None, secret: bytes
) -> list[File]:
    """Write the months that were moved, from the snapshot that has them; each is proven by its digest."""
    assert elsewhere is not None
    with database.transaction() as connection:
        months = months_moved(connection)
    files = list[File]()
    try:
        check_key(snapshot_of(elsewhere.store_of(last.target), last).manifests[-1], secret, last.target)
        with elsewhere.opened(last, months) as rows_of:
            for content in {month.content.name: month.content for month in months}.values():
                with Parts(export.work, export.moment, store, content, mark=f"-{_MOVED}") as parts:
                    for month in (each for each in months if each.content is content):
                        parts.add_month(month, rows_of(month))
                files += parts.files
    except (InvalidInput, BucketError, SettingsError) as error:
        raise InvalidInput(
            f"The months before {last.over_at.astimezone(UTC):%Y-%m} were moved to the snapshot {last.target}, "
            f"and cannot be taken over from there: {error} Nothing was exported without them."
        ) from None
    return files


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _seal_at(database: Database, moment: datetime) -> str | None:
    seals = tables.custody_seals.c
    query = sa.select(seals.hash).where(seals.sealed_at <= moment).order_by(seals.number.desc()).limit(1)
    with database.transaction() as connection:
        found: str | None = connection.scalar(query)
    return found


def _manifest(database: Database, export: _Export, secret: bytes, deadlines: Deadlines | None) -> Manifest:
    with database.transaction() as connection:
        hidden, copied = hidden_and_copied(connection, database.mapped)
        return Manifest(
            moment=export.moment,
            previous=export.after,
            schema=schema.newest_revision(),
            toolkit=version("evidence-toolkit"),
            database=database.address,
            embedded=database.embedded,
            seal=export.seal,
            records_assumed_at=records_assumed_at(connection),
            files=tuple(file for files in export.done.values() for file in files),
            key=sign_of(secret),
            hidden_rows=hidden,
            copied_rows=copied,
            deadlines=None if deadlines is None else deadlines.told(export.moment.year),
        )
