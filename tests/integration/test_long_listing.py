"""A listing that other processes read, when one of them, the bucket or this process goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any, cast

import psutil
import pytest

from tests.integration.scripted_server import Answer, scripted
from tests.integration.uploaded_sales import rows
from tests.memory_bucket import ForsakenBucket
from tests.waiting import wait_until
from toolkit.errors import BucketUnavailable
from toolkit.operations.observe.bucket_sync import listing, sync_bucket
from toolkit.storage import listing_processes
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database
from toolkit.storage.listing_processes import PageReaders

_SECRET = "a-secret-that-no-process-list-may-show"

_ENDLESS = b"""<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>
<NextContinuationToken>again</NextContinuationToken>
<Contents><Key>a</Key><LastModified>2026-03-02T12:00:00.000Z</LastModified><ETag>"0"</ETag><Size>1</Size></Contents>
</ListBucketResult>"""


@pytest.mark.parametrize(
    ("killed", "says"), [(True, "A process that lists the bucket .* Run it again"), (False, "The bucket is away")]
)
def test_nothing_is_taken_over_when_a_process_dies_or_finds_the_bucket_away(
    killed: bool, says: str, database: Database, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = cast("Bucket", ForsakenBucket(killed))
    readers = PageReaders(bucket)
    monkeypatch.setattr(listing, "PageReaders", lambda _: readers)
    monkeypatch.setattr(listing, "LONG_LISTING", 1)
    monkeypatch.setattr(listing_processes, "PROCESSES", 1)
    with pytest.raises(BucketUnavailable, match=says):
        sync_bucket(database, bucket, clock=clock)
    assert rows(database, "SELECT count(*) FROM audit.object_observations") == [(0,)]
    assert [process.poll() is None for process in readers._processes] == [False]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_processes_end_with_the_command_that_started_them(
    number: signal.Signals, database: Database, embedded_environment: dict[str, str]
) -> None:
    with scripted(Answer(200, _ENDLESS, {"Content-Type": "application/xml"})) as server:
        access = {"EVIDENCE_BUCKET": "evidence", "AWS_ENDPOINT_URL": server.url, "AWS_REGION": "us-east-1"}
        access |= {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": _SECRET}
        heard = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
        command = subprocess.Popen(
            [sys.executable, "-m", "toolkit", "bucket", "sync"],
            env=os.environ | embedded_environment | access,
            stderr=subprocess.DEVNULL,
        )
        signal.signal(signal.SIGINT, heard)
        began = psutil.Process(command.pid)
        wait_until(lambda: command.poll() is not None or began.children())
        readers = began.children()
        assert readers, "the listing went on until other processes read it"
        assert _SECRET not in str([reader.cmdline() for reader in readers])
        wait_until(lambda: _ended_by(number, command))
        wait_until(lambda: all(map(_ended, readers)))
    assert command.returncode == (130 if number is signal.SIGINT else -number)
    assert rows(database, "SELECT count(*) FROM audit.object_observations") == [(0,)]


def _ended_by(number: signal.Signals, command: subprocess.Popen[bytes]) -> bool:
    """Send the signal, as a person does again: Python drops an interrupt that finds it in a finalizer."""
    command.send_signal(number)
    with suppress(subprocess.TimeoutExpired):
        command.wait(timeout=5)
    return command.poll() is not None


def _ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
