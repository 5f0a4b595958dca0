"""The bucket's listing becomes observations, on a real PostgreSQL and a real S3 interface."""

from datetime import timedelta
from unittest.mock import ANY, Mock

import pytest

from tests.support.audits import audited
from tests.support.fake_bucket import MemoryBucket
from tests.support.uploaded_sales import MP3, PDF, add_sale, execute, rows
from toolkit.audit import observe_bucket
from toolkit.audit.object_history import Synced
from toolkit.audit.observe_bucket import sync_bucket
from toolkit.bucket.client import Area
from toolkit.contract.evidence import EvidenceType
from toolkit.errors import MassDisappearance

KEY = "evidences/2026/03/02/0199c0de-0000-7000-8000-000000000001/contract.pdf"


def test_an_object_is_observed_and_examined_once_and_anew_when_it_changes(sync, put, delete, database, clock):
    odd = 'evidences/2026/03/02/x/ação\t & "quote" \\N %41+.pdf'
    put(KEY, PDF)
    put(odd, MP3)
    put("notes/other.txt", b"not evidence")
    assert sync() == Synced(listed=3, appeared=3, changed=0, vanished=0, examined=2)
    assert sync() == Synced(listed=3, appeared=0, changed=0, vanished=0, examined=0)
    delete(odd)
    delete("notes/other.txt")
    first_seen = clock.now
    clock.now += timedelta(hours=1)
    put(KEY, b"something else")
    assert sync() == Synced(listed=1, appeared=0, changed=1, vanished=2, examined=1)
    put(odd, MP3)
    assert sync() == Synced(listed=2, appeared=1, changed=0, vanished=0, examined=1)
    query = """
        SELECT key, size, kind, seen_at, gone_at FROM audit.object_observations AS seen
        LEFT JOIN audit.content_checks ON observation_id = seen.id ORDER BY key COLLATE "C", seen.id
    """
    assert rows(database, query) == [
        (KEY, len(PDF), "pdf", first_seen, clock.now),
        (KEY, 14, "other", clock.now, None),
        (odd, len(MP3), "audio", first_seen, clock.now),
        (odd, len(MP3), "audio", ANY, None),
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


FOREIGN = "sales/S-1/voice.mp3"


@pytest.mark.usefixtures("_large_bucket")
@pytest.mark.parametrize("key_of_file", [None, FOREIGN])
def test_a_file_of_an_open_sale_that_vanished_is_noticed_by_the_next_reading(
    sync, put, add_file, clock, delete, database, key_of_file
):
    add_sale(database)
    _, own = add_file(evidence_type=EvidenceType.POV, requested_at=clock.now - timedelta(days=11), key=key_of_file)
    for number in range(3):
        put(key("2026/01/01", number), MP3)
    assert sync().examined == 4
    clock.now += timedelta(days=1)
    delete(own)
    seen = sync()
    assert (seen.vanished, seen.full) == (1, False)
    found = audited(database, clock=clock)
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


def test_a_mass_disappearance_of_objects_stops_before_anything_is_written(sync, put, delete, database):
    for number in range(12):
        put(key("2026/03/02", number), PDF)
    sync()
    for number in range(11):
        delete(key("2026/03/02", number))
    with pytest.raises(MassDisappearance, match=r"11 of the 12 objects .* --confirm-disappearance"):
        sync()
    assert rows(database, "SELECT count(*) FROM audit.object_observations WHERE gone_at IS NOT NULL") == [(0,)]
    assert sync(confirmed=True).vanished == 11


def test_a_mass_disappearance_of_sales_stops_before_anything_is_written(sync, database):
    for number in range(12):
        add_sale(database, f"S-{number}")
    sync()
    execute(database, "DELETE FROM sales")
    with pytest.raises(MassDisappearance, match=r"12 of the 12 sales"):
        sync()
    assert rows(database, "SELECT count(*) FROM audit.sale_observations WHERE gone_at IS NOT NULL") == [(0,)]


@pytest.mark.usefixtures("_large_bucket")
def test_what_a_killed_reading_left_unexamined_is_examined_by_the_next(
    sync, put, clock, database, bucket, monkeypatch
):
    sync()
    put(key("2026/03/02"), PDF)
    interrupted = Mock(side_effect=KeyboardInterrupt)
    with monkeypatch.context() as patch:
        patch.setattr(bucket, "read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sync()
    clock.now += timedelta(days=3)
    assert sync() == Synced(listed=1, appeared=0, changed=0, vanished=0, examined=1, full=False)


def test_the_command_tells_what_it_found(run, put):
    put(KEY)
    counts = {"listed": 1, "appeared": 1, "changed": 0, "vanished": 0, "examined": 1, "asked": 0, "lacking": 0}
    told = {"full": True, "listedSince": ANY, **counts, "archived": 0, "unreadable": 0}
    assert run("bucket", "sync", "--json").told == told
    assert run("bucket", "sync", "--full").out == "1 object: 0 new, 0 overwritten, 0 vanished, 0 examined\n"


def test_a_key_that_no_database_can_hold_stops_no_reading(database, clock):
    bucket = MemoryBucket()
    for key in ("evidences/2026/03/02/a", "evidences/2026/03/02/b\0c"):
        bucket.put(key, PDF)
    assert sync_bucket(database, bucket, clock=clock).listed == 1
