"""The bucket's listing becomes observations, on a real PostgreSQL and a real S3 interface."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from hashlib import md5
from typing import Any, cast
from unittest.mock import ANY, Mock

import pytest
import sqlalchemy as sa

from tests.conftest import Run
from tests.support.audits import audited
from tests.support.fake_bucket import MemoryBucket
from tests.support.process_pool import start_command
from tests.support.uploaded_sales import MP3, PDF, add_record, add_sale, rows
from tests.support.waiting import wait_until
from toolkit.audit import bucket_scope as scope
from toolkit.audit.observe_bucket import Synced, sync_bucket
from toolkit.bucket import client
from toolkit.bucket.client import Area, Bucket
from toolkit.bucket.listing import list_objects
from toolkit.contract.evidence import EvidenceType
from toolkit.database.connection import Database
from toolkit.database.observations import Tolerance
from toolkit.database.tables import sales
from toolkit.errors import MassDisappearance

KEY = "evidences/2026/03/02/0199c0de-0000-7000-8000-000000000001/contract.pdf"
OTHER_KEY = "evidences/2026/03/02/0199c0de-0000-7000-8000-000000000002/voice.mp3"


@pytest.fixture
def sync(database: Database, bucket: Bucket, clock: Any) -> Any:
    return lambda **options: sync_bucket(database, bucket, clock=clock, **options)


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


def test_keys_with_unusual_characters_are_observed(sync: Any, put: Any, database: Database) -> None:
    keys = ["a\tb\\N\nc", 'evidences/2026/03/02/x/ação & "quote" %41+.pdf', "😀"]
    for key in keys:
        put(key, PDF)
    sync()
    assert sorted(key for (key,) in rows(database, "SELECT key FROM audit.object_observations")) == sorted(keys)


@pytest.fixture
def _large_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every bucket count as one that is not read whole each time."""
    monkeypatch.setattr(scope, "_pages", lambda _: 1000)


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


FOREIGN = "sales/S-1/voice.mp3"


@pytest.mark.usefixtures("_large_bucket")
@pytest.mark.parametrize("key_of_file", [None, FOREIGN])
def test_a_file_of_an_open_sale_that_vanished_is_noticed_by_the_next_reading(
    sync: Any, put: Any, clock: Any, s3: Any, bucket: Bucket, database: Database, key_of_file: str | None
) -> None:
    add_sale(database)
    requested_at = clock.now - timedelta(days=11)
    _, own = add_record(database, evidence_type=EvidenceType.POV, requested_at=requested_at, key=key_of_file)
    for each in (own, *(key("2026/01/01", number) for number in range(3))):
        put(each, MP3)
    assert sync().examined == 4
    clock.now += timedelta(days=1)
    s3.delete_object(Bucket=bucket.name, Key=own)
    seen = sync()
    assert (seen.vanished, seen.full) == (1, False)
    found = audited(database, clock=clock)
    assert found.rows["reasons"].tolist() == ["VANISHED|NEVER_REQUESTED"]


@pytest.mark.usefixtures("_large_bucket")
def test_an_object_of_no_open_sale_is_looked_at_again_within_the_days_that_are_set(
    sync: Any, put: Any, clock: Any, s3: Any, bucket: Bucket
) -> None:
    put(key("2026/01/01"), PDF)
    first = clock.now
    assert sync().full
    s3.delete_object(Bucket=bucket.name, Key=key("2026/01/01"))
    seen = [sync() for clock.now in (first + timedelta(days=number) for number in range(1, 9))]
    assert [each.vanished for each in seen] == [0] * 6 + [1, 0]
    assert [each.full for each in seen] == [False] * 6 + [True, False]
    assert [each.listed_since - first for each in seen] == [timedelta()] * 6 + [timedelta(days=7)] * 2


def test_where_it_costs_less_every_key_is_listed(
    sync: Any, clock: Any, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_sale(database)
    for number in range(17):
        add_record(database, requested_at=clock.now - timedelta(days=30 + number))
    sync()
    for pages in (4, 5):  # two days are a page each, and the time of another one suffices for eight keys
        monkeypatch.setattr(scope, "_pages", lambda _: pages)  # noqa: B023
        clock.now += timedelta(minutes=1)
        assert sync().full is (pages == 4)


def test_only_the_area_is_listed_and_a_key_that_a_record_names_is_asked_for_anyway(
    sync: Any, put: Any, database: Database, bucket: Bucket, s3: Any
) -> None:
    bucket.area = Area(prefixes=("evidences/", "sales/"), ignored=("sales/tmp/",))
    add_sale(database)
    _, outside = add_record(database, key="elsewhere/voice.mp3")
    for each in (KEY, "sales/S-1/a.pdf", "sales/tmp/b.pdf", "logs/c.txt", outside):
        put(each, PDF)
    assert sync().listed == 3
    s3.delete_object(Bucket=bucket.name, Key=outside)
    assert sync().vanished == 1


def test_a_file_that_is_listed_and_asked_for_in_turn_is_the_same_one(
    sync: Any, put: Any, database: Database, bucket: Bucket
) -> None:
    """An answer tells the time of an object to the second, and listings of some servers tell parts of it."""
    add_sale(database)
    put(add_record(database)[1], PDF)
    sync()
    for bucket.area in (Area(prefixes=("elsewhere/",)), Area()):
        found = sync()
        assert (found.listed, found.changed, found.examined) == (1, 0, 0)


def test_a_mass_disappearance_of_objects_stops_before_anything_is_written(
    sync: Any, put: Any, s3: Any, bucket: Bucket, database: Database
) -> None:
    for number in range(12):
        put(key("2026/03/02", number), PDF)
    sync()
    for number in range(11):
        s3.delete_object(Bucket=bucket.name, Key=key("2026/03/02", number))
    with pytest.raises(MassDisappearance, match=r"11 of the 12 objects .* --confirm-disappearance"):
        sync()
    assert rows(database, "SELECT count(*) FROM audit.object_observations WHERE gone_at IS NOT NULL") == [(0,)]
    assert sync(tolerance=Tolerance(confirmed=True)).vanished == 11


def test_a_mass_disappearance_of_sales_stops_before_anything_is_written(sync: Any, database: Database) -> None:
    for number in range(12):
        add_sale(database, f"S-{number}")
    sync()
    with database.transaction() as connection:
        connection.execute(sa.delete(sales))
    with pytest.raises(MassDisappearance, match=r"12 of the 12 sales"):
        sync()
    assert rows(database, "SELECT count(*) FROM audit.sale_observations WHERE gone_at IS NOT NULL") == [(0,)]


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


@pytest.mark.parametrize("names", ["{0:06}", "{1}", "{1}/ação", "x/{0:06}/ação"])
def test_a_part_of_many_pages_is_listed_folder_by_folder(
    names: str, put: Any, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PAGE", 20)
    keys = [f"all/of/it/{names.format(number, md5(bytes([number])).hexdigest())}" for number in range(60)]
    for each in keys:
        put(each, PDF)
    listed = [item.key for page in list_objects(bucket, ["all/", "all/of/it/"]) for item in page]
    assert set(listed) == set(keys)


WRITING = """
    SELECT count(*) > 0 FROM pg_stat_activity
    WHERE datname = current_database() AND backend_xid IS NOT NULL AND pid <> pg_backend_pid()
"""


def test_readings_killed_while_they_write_or_examine_lose_nothing_and_keep_nothing_twice(
    run: Run, put: Any, database: Database, embedded_environment: dict[str, str]
) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: put(key("2026/03/02", number), PDF), range(300)))
    observed, examined = (
        f"SELECT count(*) > 0 FROM audit.{table}" for table in ("object_observations", "content_checks")
    )
    for moment in (WRITING, observed, examined):
        reading = start_command(os.environ | embedded_environment, "bucket", "sync")
        wait_until(lambda: reading.exitcode is not None or rows(database, moment) == [(True,)])  # noqa: B023
        reading.kill()
        reading.join()
    run("bucket", "sync")
    assert rows(database, "SELECT count(*), count(DISTINCT key) FROM audit.object_observations") == [(300, 300)]
    assert rows(database, "SELECT count(*), count(DISTINCT observation_id) FROM audit.content_checks") == [
        (300, 300)
    ]


def test_the_command_tells_what_it_found(run: Run, put: Any) -> None:
    put(KEY, PDF)
    assert run("bucket", "sync", "--json").told == {
        "full": True,
        "listed": 1,
        "appeared": 1,
        "changed": 0,
        "vanished": 0,
        "examined": 1,
        "asked": 0,
        "lacking": 0,
        "archived": 0,
        "unreadable": 0,
        "listedSince": ANY,
    }
    assert run("bucket", "sync", "--full").out == "1 object: 0 new, 0 overwritten, 0 vanished; 0 examined\n"


def test_a_key_that_no_database_can_hold_is_counted_and_named(database: Database, clock: Any) -> None:
    bucket = MemoryBucket()
    bucket.put("evidences/2026/03/02/a", PDF)
    bucket.put("evidences/2026/03/02/b\0c", PDF)
    synced = sync_bucket(database, cast("Bucket", bucket), clock=clock)
    assert (synced.listed, synced.unstorable) == (1, ("evidences/2026/03/02/b\\x00c",))
    with database.transaction() as connection:
        assert connection.scalar(sa.text("SELECT unreadable FROM audit.bucket_syncs")) == 1
