"""Listing a bucket beside boto3's paginator alone, on the RADOS Gateway where it is installed.

Scale 1 is 100,000 objects of four weeks. Goal: folders side by side at least as fast as the paginator.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from tests import gateway
from tests.benchmarks.measuring import line, own_home, timed
from toolkit import embedded
from toolkit.bucket.client import Bucket
from toolkit.bucket.listing import list_objects
from toolkit.contract.evidence import object_key
from toolkit.database.tables import new_id
from toolkit.settings import Settings

_OBJECTS = 100_000
_NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
_BUCKET = "bench-listing"


def main(scale: float) -> None:
    """Print seconds and rates, and what each is to the paginator."""
    objects = max(1000, int(_OBJECTS * scale))
    with own_home() as home:
        environ = _server(home)
        client = boto3.client(
            "s3", config=Config(s3={"addressing_style": "path"}, max_pool_connections=32), **environ
        )
        client.create_bucket(Bucket=_BUCKET)
        _fill(client, objects)
        paginator = client.get_paginator("list_objects_v2")
        bucket = Bucket.open(Settings.from_environment(_variables(home, environ)))
        ways = {
            "floor: boto3's paginator": lambda: _count(
                page["Contents"] for page in paginator.paginate(Bucket=_BUCKET)
            ),
            "folders side by side": lambda: _count(list_objects(bucket, [""])),
        }
        floor = 0.0
        for name, way in ways.items():
            rounds = [timed(way) for _ in range(2)]
            assert {each.answer for each in rounds} == {objects}
            seconds = min(each.seconds for each in rounds)
            floor = floor or seconds
            line(name, seconds, objects, f"{floor / seconds:.1f} times the rate of the floor")


def _server(home: Path) -> dict[str, str]:
    if gateway.reason_without() is None:
        found = gateway.find(os.getpid())
        print("on the RADOS Gateway")
        access = (found.endpoint_url, found.access_key, found.secret_key)
    else:
        ours = embedded.bucket_access(home)
        print("on the embedded bucket")
        access = (ours.endpoint_url, ours.access_key, ours.secret_key)
    names = ("endpoint_url", "aws_access_key_id", "aws_secret_access_key")
    return dict(zip(names, access, strict=True)) | {"region_name": "us-east-1"}


def _variables(home: Path, access: dict[str, str]) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": access["endpoint_url"],
        "AWS_ACCESS_KEY_ID": access["aws_access_key_id"],
        "AWS_SECRET_ACCESS_KEY": access["aws_secret_access_key"],
        "AWS_REGION": access["region_name"],
        "TOOLKIT_HOME": str(home),
        "EVIDENCE_BUCKET": _BUCKET,
    }


def _fill(client: Any, objects: int) -> None:
    def put(number: int) -> None:
        key = object_key(new_id(), f"gravação {number}.mp3", _NOW - timedelta(days=number % 28))
        client.put_object(Bucket=_BUCKET, Key=key, Body=b"%PDF-1.4\n")

    with ThreadPoolExecutor(32) as threads:
        list(threads.map(put, range(objects)))


def _count(pages: Iterator[Any]) -> int:
    return sum(len(page) for page in pages)
