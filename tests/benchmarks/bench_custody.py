"""Custody of evidence: listing, incremental sync and uploads, on the RADOS Gateway where it is installed.

Goals at scale 1: 100,000 objects listed at least 4 times as fast as boto3's paginator, and faster than s5cmd and
rclone; a nightly sync that costs the same with 10,000 and with 1,000,000 older objects; 2,000 files of 100 kB
uploaded at no less than 0.8 of the rate of s5cmd or rclone with as many transfers at a time. Each of these two is
left out where it is not installed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import sqlalchemy as sa
from botocore.config import Config

from tests import gateway
from tests.benchmarks.timing import timed
from tests.own_services import own_database
from toolkit.domain.evidence import object_key
from toolkit.operations.observe.bucket_sync import sync_bucket
from toolkit.operations.observe.bucket_sync.listing import Part, pages_of, side_by_side
from toolkit.operations.observe.bucket_sync.scope import Scope
from toolkit.operations.observe.disappearance import Tolerance
from toolkit.operations.upload.sending import upload_files
from toolkit.settings import Settings
from toolkit.storage import embedded
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database
from toolkit.storage.identifiers import new_id
from toolkit.storage.listing_processes import MOST, PageReaders
from toolkit.storage.tables import evidences, sales

_OBJECTS = 100_000
_OLDER = 1_000_000
_FEW_OLDER = 10_000
_ROUND = timedelta(days=3650)
"""Older objects are known and not there: a night reads as few of them as it may, and finds these gone."""

_NEW = 1_000
_FILES = 2_000
_FILE_BYTES = 100_000
_TRANSFERS = 8
_S5CMD = shutil.which("s5cmd", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
_NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


@dataclass(frozen=True)
class _Server:
    name: str
    environ: dict[str, str]
    client: Any

    def bucket(self) -> Bucket:
        name = f"bench-{uuid4().hex[:12]}"
        self.client.create_bucket(Bucket=name)
        return Bucket.open(Settings.from_environment({**self.environ, "EVIDENCE_BUCKET": name}))

    def s5cmd(self, *words: str) -> None:
        environ = {"PATH": os.environ["PATH"], **self.environ}
        command = [_S5CMD or "", "--endpoint-url", self.environ["AWS_ENDPOINT_URL"], *words]
        subprocess.run(command, check=True, env=environ, stdout=subprocess.DEVNULL)

    def rclone(self, *words: str) -> None:
        environ = {
            "PATH": os.environ["PATH"],
            "RCLONE_CONFIG_BENCH_TYPE": "s3",
            "RCLONE_CONFIG_BENCH_PROVIDER": "Ceph",
            "RCLONE_CONFIG_BENCH_ENDPOINT": self.environ["AWS_ENDPOINT_URL"],
            "RCLONE_CONFIG_BENCH_ACCESS_KEY_ID": self.environ["AWS_ACCESS_KEY_ID"],
            "RCLONE_CONFIG_BENCH_SECRET_ACCESS_KEY": self.environ["AWS_SECRET_ACCESS_KEY"],
        }
        command = ["rclone", "--config", os.devnull, "--s3-no-check-bucket", *words]
        subprocess.run(command, check=True, env=environ, stdout=subprocess.DEVNULL)


def main(scale: float) -> None:
    """Print seconds and rates, and what each is to its peer."""
    with own_database() as (database, home):
        server = _server(home)
        print(f"on {server.name}")
        _listing(server, database, max(1000, int(_OBJECTS * scale)))
        _incremental(server, database, [_FEW_OLDER, max(2 * _FEW_OLDER, int(_OLDER * scale))])
        _uploads(server, home, max(50, int(_FILES * scale)))


def _listing(server: _Server, database: Database, objects: int) -> None:
    bucket = server.bucket()
    _fill(server, database, bucket, objects)
    paginator = server.client.get_paginator("list_objects_v2")
    ways: list[tuple[str, Callable[[], object]]] = [
        ("boto3's paginator", lambda: _count(page["Contents"] for page in paginator.paginate(Bucket=bucket.name))),
        ("one page after another", lambda: _count(bucket.seen())),
        ("parts side by side", lambda: _count(pages_of(bucket, Scope(), []))),
    ]
    if shutil.which("rclone"):
        target = f"bench:{bucket.name}"
        words = ("lsf", "-R", "--files-only", "--fast-list", "--format", "ps")
        ways.insert(1, ("rclone", lambda: server.rclone(*words, target)))
    if _S5CMD:
        ways.insert(1, ("s5cmd", lambda: server.s5cmd("ls", f"s3://{bucket.name}/*")))
    peer = None
    print(f"\nlisting {objects:,} objects     keys a second   to boto3")
    with ThreadPoolExecutor(MOST) as threads, PageReaders(bucket) as readers:
        readers.start()
        readers.wait()
        parts = partial(Part, readers.read, "", "", None)
        ways.append(("in several processes", lambda: _count(side_by_side(threads, readers, [parts()]))))
        for name, way in ways:
            rate = objects / min(timed(way).seconds, timed(way).seconds)
            peer = peer or rate
            print(f"{name:<28}{rate:14,.0f}{rate / peer:11.1f}")


def _incremental(server: _Server, database: Database, sizes: list[int]) -> None:
    bucket = server.bucket()
    new = [object_key(new_id(), "contract.pdf", _NOW) for _ in range(_NEW)]
    _put_all(server, bucket, new)
    print(f"\nnightly sync, {_NEW:,} new objects        seconds")
    for older in sizes:
        _know_older(database, bucket, older)
        for what in ("new", "again"):
            sync = partial(sync_bucket, database, bucket, clock=lambda: _NOW, every_key_within=_ROUND)
            sync = partial(sync, tolerance=Tolerance(confirmed=True))
            seconds = timed(sync).seconds
            print(f"{f'beside {older:,} older ones, {what}':<38}{seconds:9.2f}")


def _uploads(server: _Server, home: Path, files: int) -> None:
    folder = home / "files"
    folder.mkdir()
    for number in range(files):
        (folder / f"{number}.pdf").write_bytes(b"%PDF-1.4\n" + os.urandom(_FILE_BYTES - 9))
    credentials = _credentials(server.bucket(), home, files)
    ways: list[tuple[str, Callable[[], object]]] = []
    if shutil.which("rclone"):
        words = ("copy", str(folder), f"bench:{server.bucket().name}", "--no-traverse")
        ways.append(("rclone copy", lambda: server.rclone(*words, "--transfers", str(_TRANSFERS))))
    if _S5CMD:
        files_of = f"{folder}/*"
        target = f"s3://{server.bucket().name}/"
        ways.append(("s5cmd cp", lambda: server.s5cmd("--numworkers", str(_TRANSFERS), "cp", files_of, target)))
    ways.append(("toolkit", lambda: upload_files(credentials, folder, concurrency=_TRANSFERS)))
    peer = None
    print(f"\nuploading {files:,} files of 100 kB  files a second  to the first")
    for name, way in ways:
        rate = files / timed(way).seconds
        peer = peer or rate
        print(f"{name:<32}{rate:15,.0f}{rate / peer:14.2f}")


def _server(home: Path) -> _Server:
    if gateway.reason_without() is None:
        found = gateway.find(os.getpid())
        name, access = "the RADOS Gateway", (found.endpoint_url, found.access_key, found.secret_key)
    else:
        ours = embedded.bucket_access(home)
        name, access = "the embedded bucket", (ours.endpoint_url, ours.access_key, ours.secret_key)
    names = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    environ = dict(zip(names, access, strict=True)) | {"AWS_REGION": "us-east-1", "TOOLKIT_HOME": str(home)}
    client = boto3.client(
        "s3",
        endpoint_url=access[0],
        region_name="us-east-1",
        aws_access_key_id=access[1],
        aws_secret_access_key=access[2],
        config=Config(s3={"addressing_style": "path"}, max_pool_connections=32),
    )
    return _Server(name, environ, client)


def _fill(server: _Server, database: Database, bucket: Bucket, objects: int) -> None:
    """Objects of four weeks, with the records that the parts of a listing are cut by."""
    moments = [_NOW - timedelta(days=number % 28) for number in range(objects)]
    keys = [object_key(new_id(), f"gravação {number}.mp3", moment) for number, moment in enumerate(moments)]
    sale = {"id": "s", "utility_group": "A", "is_client_financial_responsible": True, "created_at": _NOW}
    common = {
        "sale_id": "s",
        "file_name": "a.mp3",
        "file_format": "audio/mpeg",
        "type": "audio/mpeg",
        "evidence_type": "POV",
        "requested_by": "bench",
        "expires_at": _NOW,
    }
    with database.transaction() as connection:
        connection.execute(sa.insert(sales), sale)
        connection.execute(
            sa.insert(evidences),
            [
                common | {"id": new_id(), "object_key": key, "requested_at": moment}
                for key, moment in zip(keys, moments, strict=True)
            ],
        )
    _put_all(server, bucket, keys)


def _put_all(server: _Server, bucket: Bucket, keys: list[str]) -> None:
    def put(key: str) -> None:
        server.client.put_object(Bucket=bucket.name, Key=key, Body=b"%PDF-1.4\n")

    with ThreadPoolExecutor(32) as threads:
        list(threads.map(put, keys))


def _know_older(database: Database, bucket: Bucket, older: int) -> None:
    """Forget everything, then know so many objects of the year before, as a full reading left them."""
    with database.raw() as connection:
        connection.execute("SET session_replication_role = replica")  # the triggers that forbid it
        connection.execute("TRUNCATE public.sales, public.evidences CASCADE")
        connection.execute("TRUNCATE audit.sale_observations, audit.evidence_observations CASCADE")
        connection.execute("TRUNCATE audit.object_observations, audit.content_checks, audit.bucket_syncs CASCADE")
        connection.execute("SET session_replication_role = DEFAULT")
        connection.execute(
            """
            WITH known AS (
                INSERT INTO audit.object_observations (key, size, etag, last_modified, seen_at)
                SELECT to_char(date '2025-01-01' + number %% 365, '"evidences/"YYYY/MM/DD/')
                       || gen_random_uuid() || '/a.pdf', 9, 'etag', %(now)s, %(now)s
                FROM generate_series(1, %(older)s) AS number
                RETURNING id
            )
            INSERT INTO audit.content_checks (observation_id, kind, checked_at)
            SELECT id, 'pdf', %(now)s FROM known
            """,
            {"now": _NOW, "older": older},
        )
        connection.execute(
            """
            INSERT INTO audit.bucket_syncs
                (started_at, finished_at, bucket, full_listing, listed, appeared, vanished, cycle)
            VALUES (%(then)s, %(then)s, %(bucket)s, true, 0, 0, 0, 1)
            """,
            {"then": _NOW - timedelta(days=1), "bucket": bucket.address},
        )
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.text("VACUUM ANALYZE audit.object_observations, audit.content_checks"))


def _credentials(bucket: Bucket, home: Path, files: int) -> Path:
    path, now = home / "credentials.jsonl", datetime.now(UTC)
    with path.open("w", encoding="utf-8") as file:
        for number in range(files):
            evidence_id, name = new_id(), f"{number}.pdf"
            key = object_key(evidence_id, name, now)
            form = bucket.presign_post(key, max_bytes=1_000_000, expires_at=now + timedelta(hours=1))
            line = {"saleId": "s", "fileName": name, "evidenceType": "DOC_CONTRATANTE", "id": str(evidence_id)}
            file.write(json.dumps({**line, "url": form.url, "fields": form.fields}) + "\n")
    return path


def _count(pages: Iterator[Any]) -> int:
    return sum(len(page) for page in pages)
