"""Listings and inventories of the bucket become observations, and never undo what was observed later."""

import re
from datetime import UTC, datetime, timedelta
from unittest.mock import ANY, Mock

import pytest

from tests.support.audits import audited
from tests.support.buckets import MemoryBucket, row_of, write_inventory
from tests.support.uploaded_sales import MP3, PDF, add_sale, rows
from toolkit.audit import observe_bucket
from toolkit.audit.inventory import find_inventory
from toolkit.audit.object_history import Synced
from toolkit.audit.observe_bucket import sync_bucket
from toolkit.bucket.client import Area, Page, list_objects
from toolkit.bucket.file_store import FolderStore
from toolkit.errors import (
    BucketError,
    BucketUnavailable,
    InvalidInput,
    MassDisappearance,
    UnreadableFile,
    WrongBucket,
)

KEY = "evidences/2026/03/02/0199c0de-0000-7000-8000-000000000001/contract.pdf"
ODD = 'evidences/2026/03/02/x/ação\t & "quote", \\N %41+ b.pdf'
KEYS = (KEY, ODD, "notes/other.txt")


def test_an_object_is_observed_and_examined_once_and_anew_when_it_changes(sync, put, delete, database, clock):
    put(KEY, PDF)
    put(ODD, MP3)
    put("notes/other.txt", b"not evidence")
    assert sync() == Synced(listed=3, appeared=3, changed=0, vanished=0, examined=2)
    assert sync() == Synced(listed=3, appeared=0, changed=0, vanished=0, examined=0)
    delete(ODD)
    delete("notes/other.txt")
    first_seen = clock.now
    clock.now += timedelta(hours=1)
    put(KEY, b"something else")
    assert sync() == Synced(listed=1, appeared=0, changed=1, vanished=2, examined=1, asked=2)
    put(ODD, MP3)
    assert sync() == Synced(listed=2, appeared=1, changed=0, vanished=0, examined=1)
    query = """
        SELECT key, size, kind, seen_at, gone_at FROM audit.object_observations AS seen
        LEFT JOIN audit.content_checks ON observation_id = seen.id ORDER BY key COLLATE "C", seen.id
    """
    assert rows(database, query) == [
        (KEY, len(PDF), "pdf", first_seen, clock.now),
        (KEY, 14, "other", clock.now, None),
        (ODD, len(MP3), "audio", first_seen, clock.now),
        (ODD, len(MP3), "audio", ANY, None),
        ("notes/other.txt", 12, None, first_seen, clock.now),
    ]


@pytest.fixture
def _large_bucket(monkeypatch):
    """Make every bucket count as one that is not read whole each time."""
    monkeypatch.setattr(observe_bucket, "FEW_PAGES", -1)


def key(day, number=1):
    return f"evidences/{day}/0199c0de-0000-7000-8000-{number:012d}/contract.pdf"


@pytest.mark.usefixtures("_large_bucket")
def test_a_nightly_reading_lists_only_the_days_that_can_have_changed(sync, put, clock):
    put(key("2026/02/28"), PDF)
    put(key("2026/03/01"), PDF)
    assert sync().full
    clock.now += timedelta(days=1)  # to Tuesday noon; forms of Sunday 23:00 may have been alive at the reading
    put(key("2026/03/02"), PDF)
    put(key("2026/03/03"), PDF)
    assert sync() == Synced(listed=3, appeared=2, changed=0, vanished=0, examined=2, full=False)


@pytest.mark.usefixtures("_large_bucket")
@pytest.mark.parametrize("key_of_file", [None, "sales/S-1/voice.mp3"])
def test_a_file_of_an_open_sale_that_vanished_is_noticed_by_the_next_reading(
    sync, put, add_file, clock, delete, database, key_of_file
):
    add_sale(database)
    _, own = add_file(evidence_type="POV", requested_at=clock.now - timedelta(days=11), key=key_of_file)
    for number in range(3):
        put(key("2026/01/01", number), MP3)
    assert sync().examined == 4
    clock.now += timedelta(days=1)
    delete(own)
    seen = sync()
    assert (seen.vanished, seen.full) == (1, False)
    found = audited(database)
    assert found.rows["reasons"].tolist() == ["VANISHED|NEVER_REQUESTED"]


@pytest.mark.usefixtures("_large_bucket")
def test_an_object_of_no_open_sale_is_looked_at_again_within_the_days_that_are_set(sync, put, clock, delete):
    put(key("2026/01/01"), PDF)
    first = clock.now
    assert sync().full
    delete(key("2026/01/01"))
    seen = [sync() for clock.now in (first + timedelta(days=number) for number in range(1, 9))]
    assert [each.vanished for each in seen] == [0] * 6 + [1, 0]
    assert [each.full for each in seen] == [False] * 6 + [True, False]
    assert [each.listed_since - first for each in seen] == [timedelta()] * 6 + [timedelta(days=7)] * 2


def test_only_the_area_is_listed_and_a_key_that_a_record_names_is_asked_for_anyway(
    sync, put, add_file, database, bucket, delete
):
    bucket.area = Area(prefixes=("evidences/", "sales/"), ignored=("sales/tmp/",))
    add_sale(database)
    _, outside = add_file(key="elsewhere/voice.mp3")
    for each in (KEY, "sales/S-1/a.pdf", "sales/tmp/b.pdf", "logs/c.txt"):
        put(each, PDF)
    assert sync().listed == 3
    delete(outside)
    assert sync().vanished == 1


def test_a_mass_disappearance_stops_before_anything_is_written(sync, take, deliver, put, delete, database, clock):
    keys = [key("2026/03/02", number) for number in range(12)]
    for each in keys:
        put(each, PDF)
    sync()
    clock.now += timedelta(minutes=1)
    deliver(clock.now, leave_out=keys[1:])
    with pytest.raises(MassDisappearance):
        take()
    for each in keys[1:]:
        delete(each)
    with pytest.raises(MassDisappearance, match=r"11 of the 12 objects .* --confirm-disappearance"):
        sync()
    assert rows(database, "SELECT count(*) FROM audit.object_observations WHERE gone_at IS NOT NULL") == [(0,)]
    assert sync(confirmed=True).vanished == 11


@pytest.mark.usefixtures("_large_bucket")
def test_what_a_killed_reading_left_unexamined_is_examined_by_the_next(sync, put, clock, bucket, monkeypatch):
    sync()
    put(key("2026/03/02"), PDF)
    with monkeypatch.context() as patch:
        patch.setattr(bucket, "read", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            sync()
    clock.now += timedelta(days=3)
    assert sync() == Synced(listed=1, appeared=0, changed=0, vanished=0, examined=1, full=False)


def test_lost_objects_are_named_and_a_bucket_that_gives_none_ends_the_reading(sync, put, bucket, monkeypatch):
    monkeypatch.setattr(observe_bucket, "_BATCH", 2)
    read, lost = bucket.read, ["evidences/a"]

    def broken(key, length):
        if key in lost:
            raise BucketError("The bucket is failing.")
        return read(key, length)

    monkeypatch.setattr(bucket, "read", broken)
    for key in ("evidences/a", "evidences/b"):
        put(key)
    found = sync()
    assert (found.unreadable, found.examined) == (("evidences/a",), 1)
    put("evidences/b", b"written anew")
    lost.append("evidences/b")
    with pytest.raises(BucketError, match="is failing"):
        sync()


def test_a_key_that_no_database_can_hold_stops_no_reading(database):
    bucket = MemoryBucket()
    for key in ("evidences/2026/03/02/a", "evidences/2026/03/02/b\0c"):
        bucket.put(key, PDF)
    assert sync_bucket(database, bucket).listed == 1


@pytest.fixture
def place(tmp_path, clock):
    """A folder whose name is a pattern to DuckDB; it is now, as for the bucket, which dates objects."""
    clock.now = datetime.now(UTC).replace(microsecond=0)
    return tmp_path / "key=of another's [1]"


@pytest.fixture
def take(sync, place, tmp_path):
    """Take over the newest inventory."""

    def taken(**options):
        return sync(inventory=find_inventory(FolderStore(place, "inventory"), tmp_path), **options)

    return taken


@pytest.fixture
def deliver(bucket, place):
    """Write an inventory of what lies in the bucket now."""

    def delivered(moment, *, leave_out=(), **options):
        listed = [
            row_of(seen) for page in list_objects(bucket, [""]) for seen in page if seen.key not in leave_out
        ]
        return write_inventory(place, bucket.name, listed, moment, **options)

    return delivered


def seen(database):
    return rows(database, "SELECT key, gone_at FROM audit.object_observations ORDER BY id")


def test_what_a_listing_lacks_is_asked_for_before_it_counts_as_gone(
    put, delete, sync, add_file, database, bucket, monkeypatch
):
    for key in KEYS:
        put(key)
    sync()
    delete(KEY)
    add_sale(database)
    add_file()  # which a listing that lacks what is there may lack as well
    monkeypatch.setattr(bucket, "page", lambda *_, **__: Page([]))
    found = sync()
    assert (found.asked, found.appeared, found.vanished) == (len(KEYS) + 1, 1, 1)
    assert [key for key, gone_at in seen(database) if gone_at] == [KEY]


def test_what_an_inventory_lacks_is_asked_for_before_it_counts_as_gone(
    put, delete, sync, take, deliver, database, bucket, clock, monkeypatch
):
    for key in KEYS:
        put(key)
    sync()
    delete(KEY)
    clock.now += timedelta(minutes=1)
    deliver(clock.now, leave_out=(ODD,))
    with monkeypatch.context() as patch, pytest.raises(BucketUnavailable):
        patch.setattr(bucket, "head", Mock(side_effect=BucketUnavailable))
        take()
    taken = take()
    assert (taken.asked, taken.vanished) == (2, 1)
    assert [key for key, gone_at in seen(database) if gone_at] == [KEY]


def test_what_an_inventory_alone_knows_is_asked_for_where_the_bucket_was_looked_at_since(
    put, delete, sync, take, deliver, database, clock, monkeypatch
):
    """The listing since showed some days only, and not this key."""
    monkeypatch.setattr(observe_bucket, "FEW_PAGES", -1)
    put(KEY)
    assert sync().full
    put("notes/other.txt")
    clock.now += timedelta(minutes=1)
    deliver(clock.now)
    delete("notes/other.txt")
    clock.now += timedelta(minutes=1)
    assert not sync().full
    assert take().asked == 1
    assert [key for key, _ in seen(database)] == [KEY]


def test_what_is_another_object_in_an_inventory_is_asked_for(put, sync, take, deliver, database, clock):
    put(KEY)
    sync()
    put(KEY, b"the second")
    clock.now += timedelta(minutes=1)
    deliver(clock.now)
    put(KEY, b"the third one")
    assert take().asked == 1
    assert rows(database, "SELECT size FROM audit.object_observations WHERE gone_at IS NULL") == [(13,)]


def test_the_current_version_of_a_versioned_inventory_counts_once(put, take, database, bucket, clock, place):
    put(KEY)
    (item,) = [item for page in list_objects(bucket, [""]) for item in page]
    older = row_of(item, version_id="v1", is_latest=False, is_delete_marker=False, size=1)
    newest = row_of(item, version_id="v2", is_latest=True, is_delete_marker=False)
    marker = {"key": "notes/gone.txt", "version_id": "v3", "is_latest": True, "is_delete_marker": True}
    write_inventory(place, bucket.name, [older, newest, newest, marker], clock.now)
    take()
    assert rows(database, "SELECT key, size, version_id FROM audit.object_observations") == [(KEY, len(PDF), "v2")]


def test_a_delivery_that_is_not_whole_or_of_now_is_told_in_a_sentence(
    put, sync, take, deliver, database, clock, place
):
    def refused(error, told):
        with pytest.raises(error, match=told):
            take()

    put(KEY)
    place.mkdir()
    refused(InvalidInput, "inventory holds no folder with the manifest.json of an S3 Inventory")
    manifest = deliver(clock.now - timedelta(minutes=9))
    written, [data] = manifest.read_text(), place.rglob("*.parquet")
    manifest.write_text(f"{written} ")
    refused(UnreadableFile, "not the file that its manifest.checksum was made of")
    manifest.with_name("manifest.checksum").unlink()
    manifest.write_text(re.sub('"key": "[^"]*"', '"key": 5', written))
    refused(UnreadableFile, "inventory lacks the file 5")
    manifest.write_text(written)
    data.write_bytes(data.read_bytes()[::-1])
    refused(UnreadableFile, "its size or its MD5 differs")
    data.unlink()
    refused(UnreadableFile, "inventory lacks the file ")
    write_inventory(place, "other", [], clock.now - timedelta(minutes=6))
    refused(WrongBucket, "lists the bucket other")
    deliver(clock.now - timedelta(minutes=3), without=("e_tag",))
    refused(InvalidInput, "lacks ETag. Add these fields to its configuration")
    assert seen(database) == []
    deliver(clock.now - timedelta(minutes=1))
    sync()
    known = seen(database)
    refused(InvalidInput, "every key was looked at since")
    deliver(clock.now + timedelta(days=1))
    refused(InvalidInput, "in the future")
    assert seen(database) == known


@pytest.mark.parametrize("inside", [False, True])
def test_the_command_takes_the_newest_inventory_over(run, put, deliver, monkeypatch, inside):
    put(KEY)
    days = deliver(datetime.fromisoformat("2026-03-01T00:00:00+00:00")).parent.parent
    monkeypatch.chdir(days if inside else days.parent)
    named = "." if inside else days.name
    told = run("bucket", "sync", "--inventory", named, "--json").told
    assert (told["appeared"], told["listedSince"]) == (1, "2026-02-28T21:00:00-03:00")
    run("bucket", "sync", "--inventory", "x", "--full", ends=2)
