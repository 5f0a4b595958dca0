"""Listing a bucket beside boto3's paginator alone, on the server of ``.ci/gateway`` where it runs.

Scale 1 is 100,000 objects of four weeks. Goal: folders side by side at least as fast as the paginator.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
from botocore.config import Config

from tests.benchmarks.measuring import line, own_home, timed
from tests.support.object_gateway import gateway_access
from toolkit import embedded
from toolkit.bucket.client import Bucket, list_objects
from toolkit.contract.evidence import object_key
from toolkit.database.tables import new_id
from toolkit.settings import AwsSettings

_OBJECTS = 100_000
_NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
_BUCKET = "bench-listing"


def main(scale: float) -> None:
    """Print seconds and rates, and what each is to the paginator."""
    objects = max(1000, int(_OBJECTS * scale))
    with own_home() as home:
        ours = gateway_access() or embedded.bucket_access(home)
        keys = (ours.access_key_id, ours.secret_access_key, ours.session_token)
        config = Config(s3={"addressing_style": "path"}, max_pool_connections=32)
        session = boto3.Session(*keys, region_name=ours.region)
        client = session.client("s3", endpoint_url=ours.s3_endpoint, config=config)
        client.create_bucket(Bucket=_BUCKET)
        _fill(client, objects)
        paginator = client.get_paginator("list_objects_v2")
        bucket = Bucket(_BUCKET, AwsSettings(*keys, s3_endpoint=ours.s3_endpoint, region=ours.region))
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


def _fill(client: Any, objects: int) -> None:
    def put(number: int) -> None:
        key = object_key(new_id(), f"gravação {number}.mp3", _NOW - timedelta(days=number % 28))
        client.put_object(Bucket=_BUCKET, Key=key, Body=b"%PDF-1.4\n")

    with ThreadPoolExecutor(32) as threads:
        list(threads.map(put, range(objects)))


def _count(pages: Iterator[Any]) -> int:
    return sum(len(page) for page in pages)
