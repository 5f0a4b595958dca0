"""Inventories become observations as a listing does, and never undo what was observed later."""

from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest

from tests.conftest import SettableClock
from tests.support.s3_inventory import row_of, write_inventory
from tests.support.uploaded_sales import PDF, rows
from toolkit.audit import observe_bucket
from toolkit.audit.inventory import find_inventory
from toolkit.bucket.client import list_objects
from toolkit.bucket.file_store import FolderStore
from toolkit.errors import BucketUnavailable, InvalidInput, MassDisappearance, UnreadableFile, WrongBucket

KEY = "evidences/2026/03/02/0199c0de-0000-7000-8000-000000000001/contract.pdf"
ODD = 'evidences/2026/03/02/x/ação & "quote", %41+ b.pdf'
KEYS = (KEY, ODD, "notes/other.txt")


@pytest.fixture
def tmp_path(tmp_path):
    """A folder whose name is a pattern to DuckDB, and the values of a column."""
    place = tmp_path / "key=of another's [1]"
    place.mkdir()
    return place


@pytest.fixture
def clock():
    """The clock begins now, as that of the bucket does, which dates the objects."""
    return SettableClock(datetime.now(UTC).replace(microsecond=0))


@pytest.fixture
def take(sync, tmp_path):
    """Take over the newest inventory in ``tmp_path``."""

    def taken(**options):
        found = find_inventory(FolderStore(tmp_path / "inventory", "inventory"), None, tmp_path)
        return sync(inventory=found, **options)

    return taken


@pytest.fixture
def deliver(bucket, tmp_path):
    """Write an inventory of what lies in the bucket now."""

    def delivered(moment, *, leave_out=(), **options):
        listed = [
            row_of(seen) for page in list_objects(bucket, [""]) for seen in page if seen.key not in leave_out
        ]
        return write_inventory(tmp_path / "inventory", bucket.name, listed, moment, **options)

    return delivered


def seen(database):
    return rows(
        database,
        "SELECT key, size, etag, last_modified, seen_at, gone_at FROM audit.object_observations ORDER BY id",
    )


def test_an_older_inventory_undoes_nothing(put, sync, take, deliver, database, clock):
    put(KEY)
    deliver(clock.now + timedelta(minutes=1))
    clock.now += timedelta(minutes=2)
    put(KEY, b"a later version")
    sync()
    known = seen(database)
    with pytest.raises(InvalidInput, match="every key was looked at since"):
        take()
    assert seen(database) == known


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
    assert [row[0] for row in seen(database) if row[5] is not None] == [KEY]


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
    assert [row[0] for row in seen(database)] == [KEY]


def test_the_current_version_of_a_versioned_inventory_counts_once(put, take, database, bucket, clock, tmp_path):
    put(KEY)
    (item,) = [item for page in list_objects(bucket, [""]) for item in page]
    older = row_of(item, version_id="v1", is_latest=False, is_delete_marker=False, size=1)
    newest = row_of(item, version_id="v2", is_latest=True, is_delete_marker=False)
    marker = {"key": "notes/gone.txt", "version_id": "v3", "is_latest": True, "is_delete_marker": True}
    write_inventory(tmp_path / "inventory", bucket.name, [older, newest, newest, marker], clock.now)
    take()
    assert rows(database, "SELECT key, size, version_id FROM audit.object_observations") == [(KEY, len(PDF), "v2")]


@pytest.mark.parametrize("what", ["missing", "changed", "manifest", "column", "none", "future", "bucket"])
def test_a_delivery_that_is_not_whole_is_told_in_a_sentence(what, put, take, deliver, database, clock, tmp_path):
    put(KEY)
    expected = {
        "missing": "inventory lacks the file ",
        "changed": "its size or its MD5 differs",
        "manifest": "not the file that its manifest.checksum was made of",
        "column": "lacks ETag. Add these fields to its configuration",
        "none": "inventory holds no manifest.json of an S3 Inventory",
        "future": "in the future",
        "bucket": "lists the bucket other",
    }[what]
    if what == "none":
        (tmp_path / "inventory").mkdir()
    elif what == "bucket":
        write_inventory(tmp_path / "inventory", "other", [], clock.now)
    else:
        moment = clock.now + timedelta(days=what == "future")
        manifest = deliver(moment, without=("e_tag",) if what == "column" else ())
        (data,) = (tmp_path / "inventory").rglob("*.parquet")
        if what == "missing":
            data.unlink()
        elif what == "changed":
            data.write_bytes(data.read_bytes()[::-1])
        elif what == "manifest":
            manifest.write_text(manifest.read_text() + " ")
    with pytest.raises((UnreadableFile, InvalidInput, WrongBucket), match=expected):
        take()
    assert rows(database, "SELECT FROM audit.object_observations") == []


def test_an_inventory_that_lacks_most_objects_is_not_taken_over(put, sync, take, deliver, database, clock):
    keys = [f"notes/{number}" for number in range(12)]
    for key in keys:
        put(key)
    sync()
    clock.now += timedelta(minutes=1)
    deliver(clock.now, leave_out=tuple(keys[1:]))
    with pytest.raises(MassDisappearance):
        take()
    assert rows(database, "SELECT FROM audit.object_observations WHERE gone_at IS NOT NULL") == []


@pytest.mark.parametrize("beside", [False, True])
def test_the_command_takes_a_manifest_over(run, put, deliver, monkeypatch, beside):
    put(KEY)
    manifest = deliver(datetime.fromisoformat("2026-03-01T00:00:00+00:00"))
    monkeypatch.chdir(manifest.parent)
    named = manifest.name if beside else str(manifest)
    told = run("bucket", "sync", "--inventory", named, "--json").told
    assert (told["appeared"], told["listedSince"]) == (1, "2026-03-01T00:00:00+00:00")
    run("bucket", "sync", "--inventory", "x", "--full", ends=2)
