"""An S3 Inventory as it is delivered: a manifest and its Parquet files, named with sizes and MD5."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial, reduce
from hashlib import file_digest, md5
from pathlib import Path, PurePosixPath
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from toolkit.audit.object_history import OBJECT
from toolkit.bucket.client import Area
from toolkit.bucket.file_store import FileStore
from toolkit.errors import UnreadableFile

_MANIFEST: Final = "manifest.json"

_ROWS: Final = 50_000  # the rows of a file that are held at a time

_NEEDED: Final = {"key": "Key", "size": "Size", "e_tag": "ETag", "last_modified_date": "LastModifiedDate"}
"""The columns that an observation needs, and how the configuration of an inventory names them."""

_OF_VERSIONS: Final = ("version_id", "is_latest", "is_delete_marker")

_MD5: Final = partial(md5, usedforsecurity=False)


@dataclass(frozen=True, slots=True)
class Inventory:
    """An inventory that was found; it tells of ``bucket`` as it was at ``moment``, when its making began."""

    address: str
    bucket: str
    moment: datetime
    files: tuple[Path, ...] = field(default=(), repr=False)

    def rows(self, area: Area) -> Iterator[pa.Table]:
        """Yield the objects of the area that it lists as current, in memory that does not grow with their number.

        Raises:
            UnreadableFile: a column is missing, or a value of it cannot be read.
        """
        for path in self.files:
            try:
                with parquet.ParquetFile(path) as file:
                    if missing := [text for name, text in _NEEDED.items() if name not in file.schema_arrow.names]:
                        raise UnreadableFile(
                            "The inventory {} lacks {}. Add these fields to its configuration in S3; the next one "
                            "will have them.",
                            self.address,
                            ", ".join(missing),
                        )
                    used = [name for name in (*_NEEDED, *_OF_VERSIONS) if name in file.schema_arrow.names]
                    for batch in file.iter_batches(_ROWS, columns=used):
                        yield _current(pa.Table.from_batches([batch]), area)
            except (pa.ArrowException, OSError):
                raise UnreadableFile("{} of {} cannot be read.", path.name, self.address) from None


def _current(rows: pa.Table, area: Area) -> pa.Table:
    """Return the rows of the area without older versions and delete markers, in the columns of ``OBJECT``."""
    for name, wanted in (("is_delete_marker", False), ("is_latest", True)):
        if name in rows.column_names:
            rows = rows.filter(pc.equal(pc.fill_null(rows[name], False), wanted))
    keys = rows["key"].cast(pa.string())
    version = pa.nulls(len(rows), pa.string())
    if "version_id" in rows.column_names:
        version = pc.if_else(pc.equal(rows["version_id"], ""), pa.scalar(None, pa.string()), rows["version_id"])
    etag = pc.utf8_trim(rows["e_tag"].cast(pa.string()), '"')
    written = rows["last_modified_date"].cast(OBJECT.field("last_modified").type, safe=False)
    found = pa.table([keys, rows["size"].cast(pa.int64()), etag, written, version], OBJECT)
    return found.filter(pc.and_not(_have(keys, area.prefixes or ("",)), _have(keys, area.ignored)))


def find_inventory(store: FileStore, scratch: Path) -> Inventory:
    """Return the newest inventory in ``store``; its files are checked.

    Raises:
        UnreadableFile: there is none, or a file of it is missing or is not the one that the manifest names.
    """
    names = store.names()
    found = sorted((PurePosixPath(name).parent.name, name) for name in names if name.endswith(f"/{_MANIFEST}"))
    if not found:
        raise UnreadableFile("{} holds no folder with the {} of an S3 Inventory.", store.address, _MANIFEST)
    name = found[-1][1]  # the folder of each is called by its moment
    text = store.text(name)
    address = f"{store.address.rstrip('/')}/{name}"
    checksum = str(PurePosixPath(name).with_name("manifest.checksum"))
    if checksum in names and store.text(checksum).strip() != _MD5(text.encode()).hexdigest():
        raise UnreadableFile("{} is not the file that its manifest.checksum was made of.", address)
    try:
        document = json.loads(text)
        moment = datetime.fromtimestamp(int(document["creationTimestamp"]) / 1000, UTC)
        bucket, kind = document["sourceBucket"], document["fileFormat"]
        files = [(str(file["key"]), int(file["size"]), str(file["MD5checksum"])) for file in document["files"]]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, OSError, RecursionError):
        raise UnreadableFile("{} cannot be read as the manifest of an S3 Inventory.", address) from None
    if kind != "Parquet" or not files:
        raise UnreadableFile("{} names no files in Parquet.", address)
    place = partial(_place, frozenset(names), str(PurePosixPath(name).parent))
    fetched = tuple(_fetched(store, place(key), key, size, digest, scratch) for key, size, digest in files)
    return Inventory(address, bucket, moment, fetched)


def _place(names: frozenset[str], folder: str, key: str) -> str | None:
    """Return the name of a file in the store, which may hold only the last part of the destination bucket."""
    parts = key.split("/")
    ends = ["/".join(parts[start:]) for start in range(len(parts))]
    return next((each for end in ends for each in (end, f"{folder}/{end}") if each in names), None)


def _fetched(store: FileStore, name: str | None, key: str, size: int, digest: str, scratch: Path) -> Path:
    if name is None:
        raise UnreadableFile("{} lacks the file {}, which the manifest names.", store.address, key)
    path = store.local(name, scratch)
    with path.open("rb") as file:
        same = path.stat().st_size == size and file_digest(file, _MD5).hexdigest() == digest.lower()
    if not same:
        raise UnreadableFile(
            "The file {} is not the one that the manifest names: its size or its MD5 differs. Nothing was "
            "taken over.",
            key,
        )
    return path


def _have(keys: pa.ChunkedArray, prefixes: tuple[str, ...]) -> pa.ChunkedArray:
    none = pc.is_null(keys)
    return reduce(pc.or_, (pc.starts_with(keys, each) for each in prefixes), none)
