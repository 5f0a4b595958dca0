"""A snapshot of made-up sales, written by DuckDB straight into the files that an export writes.

To fill PostgreSQL with ten million sales and to export them takes hours on two cores; this takes minutes. The
manifest names every file with its rows and its SHA-256, so ``snapshot verify`` holds for it, and audits read it
like any other one. Its sales have the shapes of those of ``bench_audit``, observed over 200 days; each has the
same evidence whenever it is made.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import file_digest
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from toolkit.operations.snapshot.contents import CONTENTS, Content
from toolkit.operations.snapshot.manifest import File, Manifest, stamp_of
from toolkit.operations.snapshot.reading import Snapshot, open_snapshot, verify_snapshot
from toolkit.storage import schema
from toolkit.storage.duckdb_session import duckdb_session
from toolkit.storage.file_store import FolderStore

_MEMORY = "2GB"

_TYPES = {
    pa.string(): "VARCHAR",
    pa.int64(): "BIGINT",
    pa.bool_(): "BOOLEAN",
    pa.float64(): "DOUBLE",
    pa.timestamp("us", "UTC"): "TIMESTAMPTZ",
}


def generate(home: Path, sales: int, moment: datetime) -> Snapshot:
    """Write a full snapshot of so many sales, and two and a half times as many records, into ``home/snapshot``."""
    store = FolderStore(home / "snapshot", "snapshot")
    files: list[File] = []
    with duckdb_session(home, _MEMORY) as session:
        for content in CONTENTS:
            if content.name not in _ROWS:
                continue
            folder = home / "snapshot" / content.name / "rows"
            folder.mkdir(parents=True)
            session.execute(
                f"COPY ({_query(content, sales)}) TO '{folder}' (FORMAT parquet, COMPRESSION zstd, "
                f"PARTITION_BY (month), FILENAME_PATTERN '{stamp_of(moment)}_{{i}}')"
            )
            files += [_file(home / "snapshot", path, content) for path in sorted(folder.rglob("*.parquet"))]
    manifest = Manifest(
        moment=moment,
        previous=None,
        schema=schema.newest_revision(),
        toolkit="generated",
        database="generated",
        embedded=True,
        seal=None,
        records_assumed_at=None,
        files=tuple(files),
    )
    (home / "snapshot" / manifest.name).write_text(manifest.as_json(), encoding="utf-8")
    assert not [fault for fault in verify_snapshot(store) if fault is not None]
    return open_snapshot(store, moment)


def _query(content: Content, sales: int) -> str:
    columns, rows = _ROWS[content.name]
    made = ", ".join(
        f"CAST({columns.get(field.name, 'NULL')} AS {_TYPES[field.type]}) AS {field.name}"
        for field in content.schema
    )
    month = f"strftime({content.stamp} AT TIME ZONE 'UTC', '%Y-%m') AS month"
    return f"SELECT *, {month} FROM (SELECT {made} FROM {rows.replace(':sales', str(sales))})"


def _file(root: Path, path: Path, content: Content) -> File:
    assert parquet.read_schema(path).remove_metadata().equals(content.schema), path
    with path.open("rb") as opened:
        digest = file_digest(opened, "sha256").hexdigest()
    rows = parquet.read_metadata(path).num_rows
    return File(str(path.relative_to(root)), content.name, "rows", rows, path.stat().st_size, digest)


_SEEN = "timestamptz '2026-11-20' - to_days(CAST(i % 200 AS integer))"

_RECORDS = """(
    SELECT i, i * 4 + place AS id, types[place] AS evidence_type, hash(i * 4 + place) AS chance
    FROM (
        SELECT i, types, unnest(range(1, len(types) + 1)) AS place
        FROM (
            SELECT i, CASE
                WHEN i % 100 = 1 THEN ['KYC']
                WHEN i % 4 = 0 THEN ['POV', 'AUT', 'DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO']
                WHEN i % 4 = 1 THEN ['POV', 'DOC_CONTRATANTE', 'POV']
                ELSE ['POV', 'DOC_CONTRATANTE'] END AS types
            FROM range(1, :sales + 1) AS sale(i)
        )
    )
)"""

_UPLOADED = f"(SELECT * FROM {_RECORDS} WHERE chance % 100 < 97)"

_ROWS = {
    "sale_observations": (
        {
            "id": "i",
            "seen_at": _SEEN,
            "sale_id": "'S-' || i",
            "partner": "'partner ' || i % 20",
            "utility_group": "['A', 'B', 'C', 'D'][1 + i % 4]",
            "client_id": "'00000000-0000-0000-0000-' || lpad(CAST(i % 1000 AS varchar), 12, '0')",
            "is_client_financial_responsible": "i % 4 <> 0",
            "created_at": _SEEN,
            "completed_at": "CASE WHEN i % 5 = 0 THEN timestamptz '2026-11-20' END",
        },
        "range(1, :sales + 1) AS sale(i)",
    ),
    "evidence_observations": (
        {
            "id": "id",
            "seen_at": _SEEN,
            "evidence_id": "CAST(md5('record' || id) AS uuid)",
            "sale_id": "'S-' || i",
            "evidence_type": "evidence_type",
            "type": "'x'",
            "object_key": "md5('object' || id)",
            "requested_at": _SEEN,
            "expires_at": "timestamptz '2026-11-20' + to_days(CAST(i % 2 * 3 AS integer))",
        },
        _RECORDS,
    ),
    "object_observations": (
        {
            "id": "id",
            "seen_at": _SEEN,
            "gone_at": "CASE WHEN chance // 100 % 200 = 0 THEN timestamptz '2026-11-20T06:00Z' END",
            "key": "md5('object' || id)",
            "size": "1000",
            "etag": "md5('etag' || id)",
            "last_modified": _SEEN,
        },
        _UPLOADED,
    ),
    "content_checks": (
        {
            "id": "id",
            "observation_id": "id",
            "kind": "CASE WHEN chance // 20000 % 200 = 0 THEN 'other' "
            "WHEN evidence_type IN ('POV', 'AUT') THEN 'audio' ELSE 'pdf' END",
            "problem": "CASE WHEN chance // 4000000 % 200 = 0 THEN 'DAMAGED' END",
            "sha256": "CASE WHEN chance // 800000000 % 10 > 0 THEN sha256('object' || id) END",
            "checked_at": _SEEN,
        },
        f"(SELECT * FROM {_UPLOADED} WHERE chance // 8000000000 % 100 < 97)",
    ),
}
"""Of each table, its columns that are not null, and the rows that they are made from."""
