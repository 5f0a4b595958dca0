"""Inventories as Amazon S3 delivers them, made of what a test says."""

import json
from hashlib import md5

import pyarrow as pa
from pyarrow import parquet

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


def write_inventory(folder, bucket, rows, moment, *, without=(), files=1):
    """Write an inventory below ``folder`` as S3 lays it out; its manifest."""
    versioned = any("version_id" in row for row in rows)
    left_out = {*without, *(() if versioned else ("version_id", "is_latest", "is_delete_marker"))}
    schema = pa.schema([(name, kind) for name, kind in _COLUMNS.items() if name not in left_out])
    data = folder / bucket / "daily" / "data"
    data.mkdir(parents=True, exist_ok=True)
    described = []
    for number in range(files):
        path = data / f"{moment:%H%M%S}-{number}.parquet"
        part = [{"bucket": bucket, **row} for row in rows[number::files]]
        parquet.write_table(pa.Table.from_pylist(part, schema), path)
        content = path.read_bytes()
        key = f"lists/{path.relative_to(folder)}"
        described.append({"key": key, "size": len(content), "MD5checksum": md5(content).hexdigest()})
    manifest = folder / bucket / "daily" / f"{moment:%Y-%m-%dT%H-%MZ}" / "manifest.json"
    manifest.parent.mkdir(exist_ok=True)
    document = {
        "sourceBucket": bucket,
        "creationTimestamp": str(round(moment.timestamp() * 1000)),
        "fileFormat": "Parquet",
        "files": described,
    }
    manifest.write_text(json.dumps(document))
    manifest.with_name("manifest.checksum").write_text(md5(manifest.read_bytes()).hexdigest())
    return manifest
