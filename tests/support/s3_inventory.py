"""Inventories as Amazon S3 delivers them, made of what a test says."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import md5
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pyarrow as pa
from pyarrow import orc, parquet

from toolkit.bucket.client import ObjectSeen

_COLUMNS = {
    "bucket": ("Bucket", pa.string()),
    "key": ("Key", pa.string()),
    "version_id": ("VersionId", pa.string()),
    "is_latest": ("IsLatest", pa.bool_()),
    "is_delete_marker": ("IsDeleteMarker", pa.bool_()),
    "size": ("Size", pa.int64()),
    "last_modified_date": ("LastModifiedDate", pa.timestamp("ms", "UTC")),
    "e_tag": ("ETag", pa.string()),
}


def row_of(seen: ObjectSeen, **values: Any) -> dict[str, Any]:
    """An object as a row of an inventory."""
    listed = {"key": seen.key, "size": seen.size, "last_modified_date": seen.last_modified, "e_tag": seen.etag}
    return listed | values


def write_inventory(
    folder: Path,
    bucket: str,
    rows: Sequence[Mapping[str, Any]],
    moment: datetime,
    *,
    kind: str = "Parquet",
    without: Sequence[str] = (),
    files: int = 1,
) -> Path:
    """Write an inventory below ``folder`` as S3 lays it out; its manifest."""
    versioned = any("version_id" in row for row in rows)
    used = [name for name in _COLUMNS if versioned or name not in {"version_id", "is_latest", "is_delete_marker"}]
    names = [name for name in used if name not in without]
    data = folder / bucket / "daily" / "data"
    data.mkdir(parents=True, exist_ok=True)
    described = []
    for number in range(files):
        part = [{"bucket": bucket, **row} for row in rows[number::files]]
        path = data / f"{moment:%H%M%S}-{number}.{'csv.gz' if kind == 'CSV' else kind.lower()}"
        _write(path, part, names, kind)
        content = path.read_bytes()
        key = f"lists/{path.relative_to(folder)}"
        described.append({"key": key, "size": len(content), "MD5checksum": md5(content).hexdigest()})
    manifest = folder / bucket / "daily" / f"{moment:%Y-%m-%dT%H-%MZ}" / "manifest.json"
    manifest.parent.mkdir(exist_ok=True)
    document = {
        "sourceBucket": bucket,
        "destinationBucket": "arn:aws:s3:::lists",
        "version": "2016-11-30",
        "creationTimestamp": str(round(moment.timestamp() * 1000)),
        "fileFormat": kind,
        "fileSchema": ", ".join(_COLUMNS[name][0] for name in names),
        "files": described,
    }
    manifest.write_text(json.dumps(document))
    manifest.with_name("manifest.checksum").write_text(md5(manifest.read_bytes()).hexdigest())
    return manifest


def _write(path: Path, rows: Sequence[Mapping[str, Any]], names: Sequence[str], kind: str) -> None:
    if kind == "CSV":
        lines = [",".join(f'"{_text(name, row.get(name))}"' for name in names) for row in rows]
        path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
        return
    schema = pa.schema([(name, _COLUMNS[name][1]) for name in names])
    table = pa.Table.from_pylist([dict(row) for row in rows], schema)
    (parquet.write_table if kind == "Parquet" else orc.write_table)(table, path)


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return (
        quote_plus(value, safe="/")
        if name == "key"
        else str(value).lower()
        if value in {True, False}
        else str(value)
    )
