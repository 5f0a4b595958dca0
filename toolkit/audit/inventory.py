"""An S3 Inventory as it is delivered: a manifest and its files; or a copy of the live inventory table.

A manifest names the files with their sizes and MD5. Without one, the Parquet files are taken for a copy of the
live inventory table of S3 Metadata, which holds every version and tells no time of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import file_digest, md5
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import orc

from toolkit.audit.duckdb_session import files_alone
from toolkit.bucket.file_store import FileStore
from toolkit.errors import InvalidInput, UnreadableFile

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MANIFEST: Final = "manifest.json"

_TABLE_LAG: Final = timedelta(hours=1)
"""The time that a change may take until the live inventory table shows it."""

_NEEDED: Final = {"key": "Key", "size": "Size", "last_modified_date": "LastModifiedDate", "e_tag": "ETag"}
"""The columns of an inventory that an observation needs, and how their configuration names them."""

_MD5: Final = partial(md5, usedforsecurity=False)

_TRUE: Final = "lower(CAST({} AS VARCHAR)) = 'true'"


@dataclass(frozen=True, slots=True)
class Inventory:
    """An inventory that was found; ``bucket`` and ``moment`` are those that it tells of."""

    address: str
    bucket: str | None
    """The bucket, ``None`` where only the rows tell it."""
    moment: datetime | None
    """The moment at which its making began, ``None`` where only the rows tell one."""
    columns: tuple[str, ...]
    """The columns of its CSV files, which have no headings."""
    format: str
    files: tuple[Path, ...]

    def show(self, work: DuckDBPyConnection) -> datetime:
        """Make the view ``shown`` of all objects that it lists as current; the moment that it tells of.

        Raises:
            UnreadableFile: a column is missing.
        """
        names = self._read(work)
        missing = [told for name, told in _NEEDED.items() if name not in names]
        if self.moment is None and not {"sequence_number", "bucket"} <= names:
            raise UnreadableFile(
                "The Parquet files in {} are not a live inventory table of S3 Metadata, and no {} tells "
                "that they are an S3 Inventory.",
                self.address,
                _MANIFEST,
            )
        if missing:
            raise UnreadableFile(
                "The inventory {} lacks {}. Add these fields to its configuration in S3; the next one "
                "will have them.",
                self.address,
                ", ".join(missing),
            )
        conditions = [f"NOT coalesce({_TRUE.format('is_delete_marker')}, false)"] * ("is_delete_marker" in names)
        key = "key"
        if self.format == "CSV":
            key = "url_decode(replace(key, '+', ' '))"
        versions = "delivered"
        if self.moment is None:
            # A change of tags may give an older version a later number, so the time of the version goes first.
            versions = (
                "(SELECT * FROM delivered QUALIFY row_number() OVER "
                "(PARTITION BY key ORDER BY last_modified_date DESC, sequence_number DESC) = 1)"
            )
        elif "is_latest" in names:
            conditions.append(_TRUE.format("is_latest"))
        version = "nullif(CAST(version_id AS VARCHAR), '')" if "version_id" in names else "NULL::VARCHAR"
        work.execute(
            f"CREATE VIEW shown AS SELECT {key} AS key, "
            "CAST(nullif(CAST(size AS VARCHAR), '') AS BIGINT) AS size, "
            f"replace(e_tag, '\"', '') AS etag, CAST(last_modified_date AS TIMESTAMPTZ) AS last_modified, "
            f"{version} AS version_id FROM {versions} WHERE {' AND '.join(conditions) or 'true'}"
        )
        if self.moment is not None:
            return self.moment
        ((newest,),) = work.execute("SELECT epoch_us(max(last_modified)) FROM shown").fetchall()
        if newest is None:
            raise UnreadableFile("The inventory table {} shows no object.", self.address)
        return datetime.fromtimestamp(newest / 1e6, UTC) - _TABLE_LAG

    def _read(self, work: DuckDBPyConnection) -> set[str]:
        """Make the table ``delivered`` of all rows; the names of its columns."""
        if self.format == "CSV":
            columns = ", ".join(f"'{name}': 'VARCHAR'" for name in self.columns)
            work.execute(
                f"CREATE VIEW delivered AS SELECT * FROM read_csv({files_alone(self.files)}, "
                f"header=false, delim=',', quote='\"', escape='\"', auto_detect=false, columns={{{columns}}})"
            )
        elif self.format == "ORC":
            first = orc.ORCFile(self.files[0]).schema
            reader = pa.RecordBatchReader.from_batches(first, _stripes(self.files, first))
            work.register("stripes", reader)
            work.execute("CREATE TABLE delivered AS SELECT * FROM stripes")
            work.unregister("stripes")
        else:
            work.execute(f"CREATE VIEW delivered AS SELECT * FROM read_parquet({files_alone(self.files)})")
        return {row[0] for row in work.execute("DESCRIBE delivered").fetchall()}


def find_inventory(store: FileStore, manifest: str | None, scratch: Path) -> Inventory:
    """Return the inventory in ``store``: that of ``manifest``, else the newest one; its files are checked.

    Raises:
        UnreadableFile: there is none, or a file of it is missing or is not the one that the manifest names.
    """
    names = store.names()
    found_at = sorted(place for place in map(PurePosixPath, names) if place.name == _MANIFEST)
    manifests = [str(place) for place in sorted(found_at, key=lambda place: place.parent.name)]  # their moment
    if manifest is None and not manifests:
        return _table(store, names, scratch)
    name = manifest if manifest is not None else manifests[-1]
    text = store.text(name)
    address = f"{store.address.rstrip('/')}/{name}"
    checksum = str(PurePosixPath(name).with_name("manifest.checksum"))
    if checksum in names and store.text(checksum).strip() != _MD5(text.encode()).hexdigest():
        raise UnreadableFile("{} is not the file that its manifest.checksum was made of.", address)
    try:
        document: Mapping[str, Any] = json.loads(text)
        told = document["fileSchema"]
        found = Inventory(
            address,
            document["sourceBucket"],
            datetime.fromtimestamp(int(document["creationTimestamp"]) / 1000, UTC),
            tuple(_snake(each) for each in told.split(",")) if document["fileFormat"] == "CSV" else (),
            document["fileFormat"],
            (),
        )
        files = [(file["key"], int(file["size"]), file["MD5checksum"]) for file in document["files"]]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, OSError, RecursionError):
        raise UnreadableFile("{} cannot be read as the manifest of an S3 Inventory.", address) from None
    if found.format not in {"CSV", "ORC", "Parquet"} or not files:
        raise UnreadableFile("{} names no files in CSV, ORC or Parquet.", address)
    place = partial(_place, frozenset(names), str(PurePosixPath(name).parent))
    paths = tuple(_fetched(store, place(key), key, size, digest, scratch) for key, size, digest in files)
    return Inventory(found.address, found.bucket, found.moment, found.columns, found.format, paths)


def _table(store: FileStore, names: Sequence[str], scratch: Path) -> Inventory:
    files = [name for name in names if name.endswith(".parquet")]
    if not files:
        raise UnreadableFile(
            "There is no {} of an S3 Inventory and no Parquet file of an inventory table in {}.",
            _MANIFEST,
            store.address,
        )
    paths = tuple(store.local(name, scratch) for name in files)
    return Inventory(store.address, None, None, (), "Parquet", paths)


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
            "The file {} is not the one that the manifest names: its size or its MD5 differs. "
            "Nothing was taken over.",
            key,
        )
    return path


def _snake(name: str) -> str:
    """Return the name of a column of a CSV file as Parquet and ORC write it: ``IsLatest`` is ``is_latest``."""
    name = name.strip().replace("ETag", "Etag")
    if not re.fullmatch(r"\w+", name):
        raise InvalidInput("A column of the inventory is called {!r}.", name)
    found = re.sub(r"(?<!^)(?=[A-Z][a-z])", "_", name).lower()
    return "e_tag" if found == "etag" else found


def _stripes(paths: Sequence[Path], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for path in paths:
        file = orc.ORCFile(path)
        for number in range(file.nstripes):
            stripe = file.read_stripe(number)
            yield pa.RecordBatch.from_arrays([stripe.column(name) for name in schema.names], schema=schema)
