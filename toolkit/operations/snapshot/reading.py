"""List the exports of a snapshot, verify their files, and find the files of a moment."""

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Final

from toolkit.errors import InvalidInput, UnreadableFile
from toolkit.operations.snapshot.manifest import PREFIX, File, Manifest, name_of, read_manifest
from toolkit.storage.file_store import FileStore


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The exports that together are the history up to ``moment``, the full one first."""

    address: str
    manifests: tuple[Manifest, ...]

    @property
    def moment(self) -> datetime:
        """The latest moment that the snapshot knows all about."""
        return self.manifests[-1].moment

    def files(self, table: str, part: str) -> list[File]:
        """Return the files of a table: its ``rows``, or its ``closings``."""
        every = (file for manifest in self.manifests for file in manifest.files)
        return [file for file in every if (file.table, file.part) == (table, part)]


def digest_of_manifests(store: FileStore, snapshot: Snapshot) -> str:
    """Return a SHA-256 of the manifests of a snapshot, which name each file with its own."""
    told = sha256()
    for manifest in snapshot.manifests:
        told.update(store.text(manifest.name).encode())
    return told.hexdigest()


@dataclass(frozen=True, slots=True)
class Fault:
    """A file that is not as it was exported."""

    name: str
    reason: str


def snapshots(store: FileStore) -> list[Manifest]:
    """Return all exports, the oldest first.

    Raises:
        UnreadableFile: a manifest cannot be read, or is of another version.
    """
    names = (name for name in store.names() if name.startswith(PREFIX) and name.endswith(".json"))
    return [read_manifest(store.text(name), f"{store.address}/{name}") for name in names]


def newest(store: FileStore) -> Manifest | None:
    """Return the newest export, ``None`` where there is none."""
    found = snapshots(store)
    return found[-1] if found else None


def open_snapshot(store: FileStore, as_of: datetime | None = None) -> Snapshot:
    """Return the exports that tell of ``as_of``, or of the newest moment.

    Raises:
        InvalidInput: there is no export, or none that reaches to ``as_of``.
        UnreadableFile: a manifest is missing or cannot be read.
    """
    found = {manifest.moment: manifest for manifest in _some(store)}
    moment = max(found) if as_of is None else min((each for each in found if each >= as_of), default=None)
    if moment is None:
        raise InvalidInput(
            f"The snapshot in {store.address} ends at {max(found).isoformat(timespec='seconds')}. "
            "To ask for a later moment, export again."
        )
    chain = [found[moment]]
    while (previous := chain[0].previous) is not None:
        if previous not in found:
            raise UnreadableFile(
                f"The export of {previous.isoformat()} is missing in {store.address}; later ones continue it. "
                "Export the whole history: toolkit snapshot export TARGET --full"
            )
        chain.insert(0, found[previous])
    return Snapshot(store.address, tuple(chain))


def _some(store: FileStore) -> list[Manifest]:
    found = snapshots(store)
    if not found:
        raise InvalidInput(f"There is no snapshot in {store.address}. Make one: toolkit snapshot export TARGET")
    return found


def verify_snapshot(store: FileStore) -> Iterator[Fault | None]:
    """Compare every file with its SHA-256; yield ``None`` for each that is as it was exported.

    Each is read where it is stored. The manifest of an export that another one continues counts as a file.

    Raises:
        InvalidInput: there is no export.
        UnreadableFile: a manifest cannot be read, or is of another version.
    """
    there, exports = set(store.names()), _some(store)
    moments = {manifest.moment for manifest in exports}
    for manifest in exports:
        if manifest.previous is not None and manifest.previous not in moments:
            yield Fault(name_of(manifest.previous), "missing")
        for file in manifest.files:
            if file.name not in there:
                yield Fault(file.name, "missing")
            else:
                yield None if store.sha256(file.name) == file.sha256 else Fault(file.name, "changed")


def checked_file(store: FileStore, file: File, cache: Path) -> Path:
    """Return a local copy of the file, which is as it was exported.

    Raises:
        UnreadableFile: it is missing, or was changed.
    """
    try:
        for anew in (False, True):  # a copy may be damaged where the file is not
            place = store.local(file.name, cache, anew=anew)
            with place.open("rb") as opened:
                if file_digest(opened, "sha256").hexdigest() == file.sha256:
                    return place
        raise UnreadableFile(f"{file.name} in {store.address} is not the file that was exported.")
    except UnreadableFile as error:
        raise UnreadableFile(
            f"{error} Bring it back from a backup, or, where no months were moved there, export the whole history "
            "again: toolkit snapshot export TARGET --full"
        ) from None


_IN_USE: Final = 24 * 3600
"""Seconds since its last use after which nobody reads a copy any more."""


def prune_copies(cache: Path, room: int) -> None:
    """Remove the copies of files that were used longest ago, until the others take no more than ``room`` bytes.

    Those that were used within a day stay: another process may read them.
    """
    copies = []
    for copy in cache.glob("*/*"):
        with suppress(FileNotFoundError):  # another process removes some, too
            about = copy.stat()
            copies.append((about.st_mtime, about.st_size, copy))
    for used_at, size, copy in sorted(copies, reverse=True):
        room -= size
        if room < 0 and used_at < time.time() - _IN_USE:
            copy.unlink(missing_ok=True)


def prune_snapshot(store: FileStore, keep: int) -> list[str]:
    """Remove the exports before the newest ``keep`` full ones; return the names of the removed files.

    An export that continues another one stays with it, and so does each that one which stays continues.

    Raises:
        InvalidInput: there is no export.
    """
    found = _some(store)
    starts = [number for number, manifest in enumerate(found) if manifest.previous is None]
    if keep < 1 or len(starts) <= keep:
        return []
    needed = {manifest.previous for manifest in found[starts[-keep] :]}
    removed = []
    for manifest in reversed(found[: starts[-keep]]):
        if manifest.moment in needed:  # two machines exported side by side
            needed.add(manifest.previous)
            continue
        # The manifest goes first: without it the export does not exist, and its files are leftovers.
        for name in (manifest.name, *(file.name for file in manifest.files)):
            store.remove(name)
            removed.append(name)
    return removed
