"""The bucket's listing becomes observations, on a real PostgreSQL and a real S3 interface."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest

from tests.integration.uploaded_sales import MP3, PDF, add_record, add_sale, rows
from toolkit.entrypoints.cli import main
from toolkit.errors import BucketUnavailable
from toolkit.operations.observe.bucket_sync import Synced, scope, sync_bucket
from toolkit.storage import listing
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


@pytest.fixture
def _large_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every bucket count as one that is not read whole each time."""
    monkeypatch.setattr(scope, "SMALL", -1)


def key(day: str, number: int = 1) -> str:
    return f"evidences/{day}/0199c0de-0000-7000-8000-{number:012d}/contract.pdf"


@pytest.mark.usefixtures("_large_bucket")
def test_a_nightly_reading_lists_only_the_days_that_can_have_changed(sync: Any, put: Any, clock: Any) -> None:
    put(key("2026/02/28"), PDF)
    put(key("2026/03/01"), PDF)
    assert sync().full
    clock.now += timedelta(days=1)  # to Tuesday noon; forms of Sunday 23:00 may have been alive at the reading
    put(key("2026/03/02"), PDF)
    put(key("2026/03/03"), PDF)
    assert sync() == Synced(listed=3, appeared=2, changed=0, vanished=0, examined=2, full=False)
    clock.now += timedelta(hours=1)
    assert sync() == Synced(listed=2, appeared=0, changed=0, vanished=0, examined=0, full=False)


@pytest.mark.usefixtures("_large_bucket")
def test_an_older_object_that_vanished_is_noticed_by_the_next_full_reading(
    sync: Any, put: Any, clock: Any, s3: Any, bucket: Bucket
) -> None:
    put(key("2026/01/01"), PDF)
    put(key("2026/03/02"), PDF)
    sync()
    s3.delete_object(Bucket=bucket.name, Key=key("2026/01/01"))
    s3.delete_object(Bucket=bucket.name, Key=key("2026/03/02"))
    clock.now += timedelta(hours=1)
    assert sync() == Synced(listed=0, appeared=0, changed=0, vanished=1, examined=0, full=False)
    assert sync(full=True) == Synced(listed=0, appeared=0, changed=0, vanished=1, examined=0)


@pytest.mark.usefixtures("_large_bucket")
def test_a_reading_is_full_by_itself_once_a_week_and_after_another_bucket(
    sync: Any, clock: Any, database: Database, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = clock.now
    assert [sync().full for clock.now in (start + timedelta(days=day) for day in (0, 1, 6, 7, 8))] == [
        True,
        False,
        False,
        True,
        False,
    ]
    monkeypatch.setattr(bucket, "endpoint", "elsewhere")
    assert [sync().full, sync().full] == [True, False]


@pytest.mark.usefixtures("_large_bucket")
def test_what_a_killed_reading_left_unexamined_is_examined_by_the_next(
    sync: Any, put: Any, clock: Any, database: Database, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync()
    put(key("2026/03/02"), PDF)
    interrupted = Mock(side_effect=KeyboardInterrupt)
    with monkeypatch.context() as patch:
        patch.setattr(bucket, "read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sync()
    clock.now += timedelta(days=3)
    assert sync() == Synced(listed=1, appeared=0, changed=0, vanished=0, examined=1, full=False)


def test_a_full_reading_in_parts_lists_every_key_once(
    sync: Any, put: Any, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "PAGE", 2)
    add_sale(database)
    stored = ["a", "evidences", "evidences/2026/03/03/", "evidences/2026/03/03/x", "zz", "\ue000", "😀"]
    for day in (1, 2, 2, 3, 4, 5, 6, 6, 6, 7):
        moment = datetime(2026, 3, day, 1, 0, tzinfo=UTC)
        stored.append(add_record(database, requested_at=moment)[1])
    for each in stored:
        put(each, PDF)
    assert sync().listed == len(stored)
    assert sorted(key for (key,) in rows(database, "SELECT key FROM audit.object_observations")) == sorted(stored)


def test_a_bucket_that_goes_away_while_objects_are_examined_loses_nothing(
    sync: Any, put: Any, database: Database, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(KEY, PDF)

    with monkeypatch.context() as patch:
        patch.setattr(bucket, "read", Mock(side_effect=BucketUnavailable))
        with pytest.raises(BucketUnavailable):
            sync()
    assert rows(database, "SELECT count(*) FROM audit.bucket_syncs") == [(0,)]
    assert sync() == Synced(listed=1, appeared=0, changed=0, vanished=0, examined=1)


def test_readings_killed_at_any_moment_lose_nothing_and_keep_nothing_twice(
    put: Any, database: Database, embedded_environment: dict[str, str]
) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: put(key("2026/03/02", number), PDF), range(300)))
    command = [sys.executable, "-m", "toolkit", "bucket", "sync"]
    environ = {**os.environ, **embedded_environment}
    for seconds in (0.9, 1.2, 1.5):
        process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=seconds)
        process.kill()
        process.wait()
    assert subprocess.run(command, env=environ, capture_output=True).returncode == 0
    assert rows(database, "SELECT count(*), count(DISTINCT key) FROM audit.object_observations") == [(300, 300)]
    assert rows(database, "SELECT count(*), count(DISTINCT observation_id) FROM audit.content_checks") == [
        (300, 300)
    ]


def test_the_command_tells_what_it_found(
    put: Any, embedded_environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    put(KEY, PDF)
    assert main(["bucket", "sync", "--json"], embedded_environment) == 0
    assert json.loads(capsys.readouterr().out) == {
        "full": True,
        "listed": 1,
        "appeared": 1,
        "changed": 0,
        "vanished": 0,
        "examined": 1,
    }
    assert main(["bucket", "sync", "--full"], embedded_environment) == 0
    assert capsys.readouterr().out == "1 objects: 0 new, 0 overwritten, 0 vanished; 0 examined\n"
