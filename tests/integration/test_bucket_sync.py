"""The bucket's listing becomes observations, on a real PostgreSQL and a real S3 interface."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.integration.custody import MP3, PDF, rows
from toolkit.errors import BucketUnavailable
from toolkit.operations.bucket_sync import Synced, sync_bucket
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database

KEY = "evidences/2026/03/02/0199c0de-0000-7000-8000-000000000001/contract.pdf"
OTHER_KEY = "evidences/2026/03/02/0199c0de-0000-7000-8000-000000000002/voice.mp3"


@pytest.fixture
def put(bucket: Bucket, s3: Any) -> Any:
    return lambda key, body: s3.put_object(Bucket=bucket.name, Key=key, Body=body)


@pytest.fixture
def sync(database: Database, bucket: Bucket, clock: Any) -> Any:
    return lambda **options: sync_bucket(database, bucket, clock=clock, **options)


def test_an_empty_bucket_gives_an_empty_picture(sync: Any, database: Database) -> None:
    assert sync() == Synced(listed=0, appeared=0, changed=0, vanished=0, examined=0)
    assert rows(database, "SELECT listed, appeared, vanished FROM audit.bucket_syncs") == [(0, 0, 0)]


def test_objects_are_observed_once_and_examined_once(sync: Any, put: Any, database: Database) -> None:
    put(KEY, PDF)
    put(OTHER_KEY, MP3)
    put("notes/other.txt", b"not evidence")
    assert sync() == Synced(listed=3, appeared=3, changed=0, vanished=0, examined=2)
    assert sync() == Synced(listed=3, appeared=0, changed=0, vanished=0, examined=0)
    assert rows(
        database,
        """
        SELECT key, size, kind, problem FROM audit.object_observations
        LEFT JOIN audit.content_checks ON observation_id = object_observations.id ORDER BY key
        """,
    ) == [
        (KEY, len(PDF), "pdf", None),
        (OTHER_KEY, len(MP3), "audio", None),
        ("notes/other.txt", 12, None, None),
    ]


def test_an_overwritten_object_is_a_new_observation(sync: Any, put: Any, database: Database, clock: Any) -> None:
    put(KEY, PDF)
    sync()
    first_seen = clock.now
    clock.now += timedelta(hours=1)
    put(KEY, b"something else")
    assert sync() == Synced(listed=1, appeared=0, changed=1, vanished=0, examined=1)
    assert rows(
        database,
        """
        SELECT seen_at, gone_at, kind FROM audit.object_observations
        JOIN audit.content_checks ON observation_id = object_observations.id ORDER BY object_observations.id
        """,
    ) == [(first_seen, clock.now, "pdf"), (clock.now, None, "other")]


def test_a_vanished_object_is_closed_and_may_come_back(
    sync: Any, put: Any, s3: Any, bucket: Bucket, database: Database
) -> None:
    put(KEY, PDF)
    sync()
    s3.delete_object(Bucket=bucket.name, Key=KEY)
    assert sync() == Synced(listed=0, appeared=0, changed=0, vanished=1, examined=0)
    assert sync() == Synced(listed=0, appeared=0, changed=0, vanished=0, examined=0)
    put(KEY, PDF)
    assert sync() == Synced(listed=1, appeared=1, changed=0, vanished=0, examined=1)
    assert rows(database, "SELECT gone_at IS NULL FROM audit.object_observations ORDER BY id") == [
        (False,),
        (True,),
    ]


def test_an_empty_object_has_a_problem(sync: Any, put: Any, database: Database) -> None:
    put(KEY, b"")
    sync()
    assert rows(database, "SELECT kind, problem FROM audit.content_checks") == [("other", "EMPTY")]


def test_keys_with_unusual_characters_are_observed(sync: Any, put: Any, database: Database) -> None:
    keys = ["a\tb\\N\nc", 'evidences/2026/03/02/x/ação & "quote" %41+.pdf', "😀"]
    for key in keys:
        put(key, PDF)
    sync()
    assert sorted(key for (key,) in rows(database, "SELECT key FROM audit.object_observations")) == sorted(keys)


def test_a_bucket_that_goes_away_while_objects_are_examined_loses_nothing(
    sync: Any, put: Any, database: Database, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(KEY, PDF)

    def away(*_: object) -> bytes:
        raise BucketUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(bucket, "read", away)
        with pytest.raises(BucketUnavailable):
            sync()
    assert rows(database, "SELECT count(*) FROM audit.bucket_syncs") == [(0,)]
    assert sync() == Synced(listed=1, appeared=0, changed=0, vanished=0, examined=1)
