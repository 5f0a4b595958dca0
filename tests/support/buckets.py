"""Buckets in memory, for tests of their readings, and inventories as S3 delivers them."""

import json
from datetime import UTC, datetime, timedelta
from hashlib import md5

import pyarrow as pa
from pyarrow import parquet

from toolkit.bucket.client import Area, ObjectSeen, Page

FIRST = datetime(2026, 1, 1, tzinfo=UTC)


class MemoryBucket:
    """Each object is written a second after the one before."""

    area = Area()
    name = address = "memory"

    def __init__(self, page_size=1000):
        self.page_size, self._writes = page_size, 0
        self.contents, self._seen = {}, {}

    def put(self, key, content):
        self._writes += 1
        self.contents[key] = content
        etag = md5(content, usedforsecurity=False).hexdigest()
        self._seen[key] = ObjectSeen(key, len(content), etag, FIRST + timedelta(seconds=self._writes))

    def delete(self, key):
        self.contents.pop(key, None)

    def page(self, prefix, token="", *, level=False):
        keys = [key for key in sorted(self.contents) if key.startswith(prefix) and key > token]
        if level:
            below = [(key, *key.removeprefix(prefix).partition("/")) for key in keys]
            folders = {f"{prefix}{name}/" for _, name, slash, _ in below if slash}
            return Page([self._seen[key] for key, _, slash, _ in below if not slash], None, sorted(folders))
        found = keys[: self.page_size]
        return Page([self._seen[key] for key in found], found[-1] if found != keys else None)

    def head(self, key):
        return self._seen[key] if key in self.contents else None

    def keeps_versions(self):
        return False

    def read(self, key, length):
        return self.contents[key][:length]


_COLUMNS = {
    "bucket": pa.string(),
    "key": pa.string(),
    "version_id": pa.string(),
    "is_latest": pa.bool_(),
    "is_delete_marker": pa.bool_(),
    "size": pa.int64(),
    "last_modified_date": pa.timestamp("ms", "UTC"),
    "e_tag": pa.string(),
}


def row_of(seen, **values):
    """An object as a row of an inventory."""
    listed = {"key": seen.key, "size": seen.size, "last_modified_date": seen.last_modified, "e_tag": seen.etag}
    return listed | values


def write_inventory(folder, bucket, rows, moment, *, without=()):
    """Write an inventory below ``folder`` as S3 lays it out; its manifest."""
    versioned = any("version_id" in row for row in rows)
    left_out = {*without, *(() if versioned else ("version_id", "is_latest", "is_delete_marker"))}
    schema = pa.schema([(name, kind) for name, kind in _COLUMNS.items() if name not in left_out])
    path = folder / bucket / "daily" / "data" / f"{moment:%H%M%S}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.Table.from_pylist([{"bucket": bucket, **row} for row in rows], schema), path)
    content, key = path.read_bytes(), f"lists/{path.relative_to(folder)}"
    manifest = folder / bucket / "daily" / f"{moment:%Y-%m-%dT%H-%MZ}" / "manifest.json"
    manifest.parent.mkdir(exist_ok=True)
    document = {
        "sourceBucket": bucket,
        "creationTimestamp": str(round(moment.timestamp() * 1000)),
        "fileFormat": "Parquet",
        "files": [{"key": key, "size": len(content), "MD5checksum": md5(content).hexdigest()}],
    }
    manifest.write_text(json.dumps(document))
    manifest.with_name("manifest.checksum").write_text(md5(manifest.read_bytes()).hexdigest())
    return manifest
