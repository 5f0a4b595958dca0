"""An S3 Inventory as it is delivered: a manifest and its files, which it names with their sizes and MD5."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial, reduce
from hashlib import file_digest, md5
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import unquote_plus

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, orc, parquet

from toolkit.audit.object_history import OBJECT
from toolkit.bucket.client import Area
from toolkit.bucket.file_store import FileStore
from toolkit.errors import UnreadableFile

_MANIFEST: Final = "manifest.json"

_ROWS: Final = 50_000
"""The rows of a Parquet file that are held at a time."""

_NEEDED: Final = {"key": "Key", "size": "Size", "etag": "ETag", "lastmodifieddate": "LastModifiedDate"}
"""The columns of an inventory that an observation needs, and how their configuration names them."""

_USED: Final = (*_NEEDED, "versionid", "islatest", "isdeletemarker")

_MD5: Final = partial(md5, usedforsecurity=False)


@dataclass(frozen=True, slots=True)
class Inventory:
    """An inventory that was found; it tells of ``bucket`` as it was at ``moment``, when its making began."""

    address: str
    bucket: str
    moment: datetime
    format: str
    columns: list[str]
    """The columns of its CSV files, which have no headings."""
    files: tuple[Path, ...] = field(default=(), repr=False)

    def rows(self, area: Area) -> Iterator[pa.Table]:
        """Yield the objects of the area that it lists as current, in memory that does not grow with their number.

        Raises:
            UnreadableFile: a column is missing, or a value of it cannot be read.
        """
        for path in self.files:
            try:
                for part in self._parts(path):
                    yield self._objects(part, area)
            except (pa.ArrowException, OSError, UnicodeDecodeError):
                raise UnreadableFile("{} of {} cannot be read.", path.name, self.address) from None

    def _parts(self, path: Path) -> Iterator[pa.RecordBatch]:
        if self.format == "CSV":
            with pa.CompressedInputStream(str(path), "gzip") as file:
                texts = csv.ConvertOptions(column_types=dict.fromkeys(self.columns, pa.string()))
                lines = csv.ParseOptions(newlines_in_values=True)
                yield from csv.open_csv(file, csv.ReadOptions(column_names=self.columns), lines, texts)
        elif self.format == "ORC":
            stripes = orc.ORCFile(path)
            yield from (stripes.read_stripe(number) for number in range(stripes.nstripes))
        else:
            with parquet.ParquetFile(path) as groups:
                yield from groups.iter_batches(_ROWS)

    def _objects(self, part: pa.RecordBatch, area: Area) -> pa.Table:
        rows = pa.Table.from_batches([part]).rename_columns([_plain(name) for name in part.schema.names])
        missing = [told for name, told in _NEEDED.items() if name not in rows.column_names]
        if missing:
            raise UnreadableFile(
                "The inventory {} lacks {}. Add these fields to its configuration in S3; the next one will have "
                "them.",
                self.address,
                ", ".join(missing),
            )
        rows = rows.select([name for name in _USED if name in rows.column_names])
        for name, wanted in (("isdeletemarker", False), ("islatest", True)):
            if name in rows.column_names:
                stated = pc.equal(pc.utf8_lower(rows[name].cast(pa.string())), "true")
                rows = rows.filter(pc.equal(pc.fill_null(stated, False), wanted))
        keys = rows["key"].cast(pa.string())
        if self.format == "CSV":
            keys = pa.chunked_array([pa.array(map(unquote_plus, keys.to_pylist()), pa.string())])
        version = pa.nulls(len(rows), pa.string())
        if "versionid" in rows.column_names:
            version = rows["versionid"].cast(pa.string())
            version = pc.if_else(pc.equal(version, ""), pa.scalar(None, pa.string()), version)
        etag = pc.utf8_trim(rows["etag"].cast(pa.string()), '"')
        written = rows["lastmodifieddate"].cast(OBJECT.field("last_modified").type, safe=False)
        found = pa.table([keys, rows["size"].cast(pa.int64()), etag, written, version], OBJECT)
        shown, ignored = _have(keys, area.prefixes or ("",)), _have(keys, area.ignored)
        return found.filter(pc.and_not(shown, ignored))


def find_inventory(store: FileStore, manifest: str | None, scratch: Path) -> Inventory:
    """Return the inventory in ``store``: that of ``manifest``, else the newest one; its files are checked.

    Raises:
        UnreadableFile: there is none, or a file of it is missing or is not the one that the manifest names.
    """
    names = store.names()
    found = sorted((PurePosixPath(name).parent.name, name) for name in names if name.endswith(f"/{_MANIFEST}"))
    if manifest is None and not found:
        raise UnreadableFile("There is no {} of an S3 Inventory in {}.", _MANIFEST, store.address)
    name = manifest or found[-1][1]  # the folder of each is called by its moment
    text = store.text(name)
    address = f"{store.address.rstrip('/')}/{name}"
    checksum = str(PurePosixPath(name).with_name("manifest.checksum"))
    if checksum in names and store.text(checksum).strip() != _MD5(text.encode()).hexdigest():
        raise UnreadableFile("{} is not the file that its manifest.checksum was made of.", address)
    try:
        document: Mapping[str, Any] = json.loads(text)
        told = document["fileFormat"]
        bucket, moment = document["sourceBucket"], int(document["creationTimestamp"]) / 1000
        columns = [_plain(each) for each in document["fileSchema"].split(",")] if told == "CSV" else []
        inventory = partial(Inventory, address, bucket, datetime.fromtimestamp(moment, UTC), told, columns)
        files = [(file["key"], int(file["size"]), file["MD5checksum"]) for file in document["files"]]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, OSError, RecursionError):
        raise UnreadableFile("{} cannot be read as the manifest of an S3 Inventory.", address) from None
    if told not in {"CSV", "ORC", "Parquet"} or not files:
        raise UnreadableFile("{} names no files in CSV, ORC or Parquet.", address)
    place = partial(_place, frozenset(names), str(PurePosixPath(name).parent))
    return inventory(tuple(_fetched(store, place(key), key, size, digest, scratch) for key, size, digest in files))


def _place(names: frozenset[str], folder: str, key: str) -> str | None:
    """Return the name of a file in the store, which may hold only the last part of the destination bucket."""
    parts = key.split("/")
    ends = ["/".join(parts[start:]) for start in range(len(parts))]
    return next((each for end in ends for each in (end, f"{folder}/{end}") if each in names), None)


def _fetched(store: FileStore, name: str | None, key: str, size: int, digest: str, scratch: Path) -> Path:
    if name is None:
        raise UnreadableFile("The file {}, which the manifest names, is not in {}.", key, store.address)
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


def _plain(name: str) -> str:
    """Return the name of a column as its formats share it: CSV has ``IsLatest`` and the others ``is_latest``."""
    return name.strip().replace("_", "").lower()


def _have(keys: pa.ChunkedArray, prefixes: tuple[str, ...]) -> pa.ChunkedArray:
    none = pc.is_null(keys)
    return reduce(pc.or_, (pc.starts_with(keys, each) for each in prefixes), none)
